"""What extract_facts keeps and leaves, and how often it is right: `python -m tests.text.test_extract` prints the figures."""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kronmem import Client
from kronmem.text.extract import MAX_TEXT_CHARS, extract_facts
from kronmem.text.fence import fence
from kronmem.text.statements import statements

SAMPLES = Path(__file__).parent.parent / "samples" / "facts.json"


class Sample(TypedDict, total=False):
    """A message and either whether anything in it is worth keeping, or exactly what."""

    text: str
    keep: bool
    facts: list[str]


@dataclass
class Score:
    """How many facts were found rightly, found wrongly and missed."""

    right: int = 0
    wrong: int = 0
    missed: int = 0

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed)


def load() -> list[Sample]:
    return cast("list[Sample]", json.loads(SAMPLES.read_text(encoding="utf-8")))


def half(parity: int) -> list[Sample]:
    """Even messages are for writing rules against, odd ones for judging them."""
    return load()[parity::2]


def _bare(fact: str) -> str:
    return fact.casefold().rstrip(" .!")


def judge(sample: Sample) -> Score:
    found = [_bare(fact) for fact in extract_facts(sample["text"])]
    if "facts" in sample:
        wanted = {_bare(fact) for fact in sample["facts"]}
        right = len(wanted & set(found))
        return Score(right, len(found) - right, len(wanted) - right)
    right = min(len(found), int(sample["keep"]))
    return Score(right, len(found) - right, int(sample["keep"]) - right)


def score(samples: list[Sample]) -> Score:
    scores = [judge(sample) for sample in samples]
    return Score(sum(s.right for s in scores), sum(s.wrong for s in scores), sum(s.missed for s in scores))


def test_the_samples_are_many_and_about_half_of_them_hold_nothing() -> None:
    samples = load()
    holding = [sample for sample in samples if sample.get("keep") or sample.get("facts")]
    assert len(samples) >= 200
    assert 0.4 <= len(holding) / len(samples) <= 0.5
    assert len({sample["text"] for sample in samples}) == len(samples)


@pytest.mark.parametrize(("parity", "precision", "recall"), [(0, 0.97, 0.97), (1, 0.92, 0.92)])
def test_precision_and_recall_do_not_fall_below_what_was_measured(parity: int, precision: float, recall: float) -> None:
    measured = score(half(parity))
    assert measured.precision >= precision
    assert measured.recall >= recall


def test_facts_come_back_in_order_and_once_each() -> None:
    text = "I prefer tea.  We use\tPostgreSQL. i prefer tea\nMy name is Ana."
    assert extract_facts(text) == ["I prefer tea.", "We use PostgreSQL.", "My name is Ana."]


def test_what_is_to_be_remembered_is_stored_without_the_asking() -> None:
    assert extract_facts("Please remember that the code is 4417.") == ["the code is 4417."]
    assert extract_facts("Could you remember that I park on level 3?") == ["I park on level 3"]


def test_a_fact_has_a_type_and_is_a_plain_text_everywhere_else() -> None:
    kinds = {fact: fact.memory_type for fact in extract_facts("\n".join(TYPED))}
    assert kinds == TYPED
    fact = extract_facts("Use tabs, not spaces.")[0]
    again = pickle.loads(pickle.dumps(fact))
    assert (again, again.memory_type) == (fact, "preference")
    assert json.dumps([fact]) == '["Use tabs, not spaces."]'
    with Client.local(":memory:") as client:
        assert client.remember_many("ada", extract_facts("I prefer tea."))[0].content == "I prefer tea."


TYPED = {
    "Use tabs, not spaces.": "preference",
    "No bullet lists!": "preference",
    "it's 15 people, not 6": "fact",
    "The deploy is blocked by ticket OPS-12": "temporary",
    "We decided to use SQLite.": "decision",
    "From now on, reply in German.": "preference",
    "I run the data team at Brightloom. We're 6 people.": "fact",
}
TRAPS = """
What if I moved to Berlin? | I'm going to lunch | He said 'I love Java' | No comments on the PR yet. | No lists were found.
No problem! | Yes, not now. | Monday, not today. | Use the second option, not the first. | Use this file instead of that one.
The UI thread is blocked by a lock. | The build is blocked. | Sorry, not sure. | It's a bug, not a feature. | It's fine, not great.
If I lived in Rome I would walk more. | Suppose we use Redis. | Imagine I'm a pirate. | I'm heading out. | I'm starving.
I'd like a coffee. | Could I be allergic to this? | Should we move to Berlin? | Do you think I prefer tea? | I'm on my way.
I'm waiting for the build. | Write a function that uses tabs, not spaces. | Is it 15 people, not 6? | I wish I lived in Porto.
Maybe we'll use Postgres. | I thought I was allergic to nuts. | They asked whether we use Go. | No worries, not urgent.
Good idea, not perfect. | I was going to say the same. | We might move the launch to May. | The docs say "we use tabs".
No list of files was printed. | Works on Linux, not on Windows. | Going forward with the build now. | You should use tabs, not spaces?
"""


def test_what_only_looks_like_a_fact_is_none() -> None:
    assert [text for text in TRAPS.replace("\n", " | ").split(" | ") if extract_facts(text)] == []


def test_a_fact_before_a_question_is_kept_without_the_question() -> None:
    assert extract_facts("I'm vegetarian, can you suggest a dinner?") == ["I'm vegetarian"]


def test_a_role_in_front_is_dropped_and_a_name_is_kept() -> None:
    assert extract_facts("User: I prefer tea.") == ["I prefer tea."]
    assert extract_facts("Planner: we decided to use SQLite.") == ["Planner: we decided to use SQLite."]


def test_a_curly_apostrophe_is_read_like_a_plain_one() -> None:
    assert extract_facts("I\u2019m allergic to nuts.") == ["I'm allergic to nuts."]


@pytest.mark.parametrize(
    "text",
    [
        "My sister lives in Washington D.C. with her cat.",
        "We use Python 3.11 with app.py and https://example.com/a.b?c=d on it.",
        "Dr. Weber is my cardiologist.",
        "I work at Yahoo! and live in Sunnyvale.",
        "We use e.g. Grafana for dashboards.",
    ],
)
def test_a_dot_inside_a_sentence_does_not_end_it(text: str) -> None:
    assert extract_facts(text) == [text]


def test_initials_at_the_end_of_a_sentence_end_it() -> None:
    assert extract_facts("I live in Washington D.C. My name is Bo.") == ["I live in Washington D.C.", "My name is Bo."]


def test_bullets_and_bold_are_taken_off() -> None:
    assert extract_facts("- **We use Terraform**\n2) Our deadline is May 5") == [
        "We use Terraform",
        "Our deadline is May 5",
    ]


def test_lines_wrapped_by_a_mail_client_are_one_sentence() -> None:
    text = "We decided to move every service that still runs on the old\ncluster to the new one."
    assert extract_facts(text) == [text.replace("\n", " ")]


@pytest.mark.parametrize(
    "text",
    [
        "```\nI prefer tea.\n```",
        "~~~\nI prefer tea.",
        "> I prefer tea.",
        '"I prefer tea."',
        "2026-11-01 10:22:31 INFO we use the fallback",
        "Traceback (most recent call last):\n  we use x\nValueError: my name is Bo",
        '{"fact": "my name is Bo"}',
        "If I were you, I would use Redis.",
        "Do I prefer tea?",
    ],
)
def test_code_logs_quotes_suppositions_and_questions_hold_no_facts(text: str) -> None:
    assert extract_facts(text) == []


def test_recalled_memories_are_not_learned_again() -> None:
    block = fence("My name is Bo.", source="kronmem:team")
    assert extract_facts(f"{block}\n\nI prefer tea.") == ["I prefer tea."]


def test_a_sentence_beyond_the_cap_and_text_beyond_the_cap_are_left() -> None:
    assert extract_facts("I prefer " + "very " * 100 + "strong tea.") == []
    assert extract_facts("x " * (MAX_TEXT_CHARS // 2) + "\nI prefer tea.") == []


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\x00\ud800", "Remember that", "remember:", "User:", "...", "I", "- ", "FYI"]
)
def test_next_to_nothing_holds_nothing(text: str) -> None:
    assert extract_facts(text) == []


# The timeout is the assertion: a rule that backtracks without bound takes minutes on one of these, not milliseconds.
@pytest.mark.slow
@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "piece",
    [
        *(
            "a",
            " ",
            "\n",
            ".",
            "<",
            "I ",
            "the ",
            "I a. ",
            "we use, ",
            "my a a a a ",
            "remember the ",
            "please ",
            "so ",
        ),
        *(
            "```\n",
            '<memory source="',
            "for a a a a a a a a a a, ",
            "our a a a a a is down and ",
            "x" * 70 + "\na\na\n",
        ),
    ],
)
def test_a_lot_of_hostile_text_is_read_quickly(piece: str) -> None:
    assert extract_facts(piece * (200_000 // len(piece))) == []
    for role in ("user", "assistant"):
        statements(piece * (60_000 // len(piece)), role, ["x " * 500])
        statements(piece * (1_400 // len(piece)), role)


WORDS = [
    "I",
    "we",
    "my",
    "our",
    "the",
    "prefer",
    "use",
    "name",
    "is",
    "Bo.",
    "tea",
    "remember",
    "that",
    "?",
    ",",
    "User:",
    "API",
    "\n",
    "\u2003",
]


@settings(deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS)).map(" ".join)))
def test_any_text_is_read_and_every_fact_is_one_clean_line(text: str) -> None:
    facts = extract_facts(text)
    assert facts == [" ".join(fact.split()) for fact in facts]
    assert len(set(facts)) == len(facts)


if __name__ == "__main__":
    for name, parity in (("dev", 0), ("held-out", 1)):
        s = score(half(parity))
        sys.stdout.write(f"{name:9} precision {s.precision:.3f}  recall {s.recall:.3f}  ({s})\n")
