"""What is kept of a chat, by a table of labelled messages; lines marked `!` are known to go wrong, and are few."""

from __future__ import annotations

from pathlib import Path

import pytest

from kronmem.text.statements import statements

SAMPLES = Path(__file__).parent.parent / "samples" / "statements.txt"
RESTATED = [
    ("we meet on Tuesdays at nine from now on", "Agreed: you meet on Tuesdays at nine from now on."),
    ("I'm going to use Rust for the parser", "Noted, decided: the parser will be in Rust."),
    ("swap with Ida, she takes the 24th", "Done: Ida takes the 24th."),
    ("Wir nehmen den blauen Entwurf von Huber", "Beschlossen: der blaue Entwurf von Huber."),
]


def load() -> dict[str, list[str]]:
    """The lines of each section."""
    sections: dict[str, list[str]] = {}
    for line in SAMPLES.read_text("utf-8").splitlines():
        if line.startswith("["):
            lines = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("# "):
            lines.append(line)
    return sections


TABLE = load()


def right(section: str) -> list[str]:
    return [line for line in TABLE[section] if not line.startswith("! ")]


def kept(text: str, role: str = "user") -> list[str]:
    return [str(one) for one in statements(text.replace("\\n", "\n"), role)]


def test_the_table_is_large_and_little_of_it_goes_wrong() -> None:
    for section, least in {"kept": 300, "left": 400, "cut": 12, "decided": 14, "undecided": 50}.items():
        assert len(TABLE[section]) >= least
        assert len(right(section)) >= 0.95 * len(TABLE[section])


def test_what_a_user_states_is_kept_whole() -> None:
    found = {text: kept(text) for text in right("kept")}
    assert [text for text, rows in found.items() if len(rows) != 1 or len(rows[0]) < 0.5 * len(text)] == []


def test_small_talk_questions_requests_suppositions_and_code_are_left() -> None:
    assert [text for text in right("left") if kept(text)] == []


def test_of_a_message_the_statements_are_kept_as_written() -> None:
    lines = [line.split(" => ") for line in right("cut")]
    assert [kept(text) for text, _ in lines] == [wanted.split(" | ") for _, wanted in lines]


def test_of_an_assistant_what_it_decides_or_commits_to_is_kept_and_nothing_else() -> None:
    assert {one.memory_type for text in right("decided") for one in statements(text, "assistant")} == {"decision"}
    assert [text for text in right("decided") if len(kept(text, "assistant")) != 1] == []
    assert [text for text in right("undecided") if kept(text, "assistant")] == []


@pytest.mark.parametrize(("told", "answer"), RESTATED)
def test_an_assistant_that_repeats_what_it_answers_has_decided_nothing(told: str, answer: str) -> None:
    assert statements(answer, "assistant", [told]) == []


def test_of_a_pasted_document_only_durable_facts_are_kept() -> None:
    page = "The harbour was built in 1911. It has two cranes. " * 40
    assert kept(f"{page} I'm allergic to nuts.") == ["I'm allergic to nuts."]
    assert kept("The harbour was built in 1911.") != []
