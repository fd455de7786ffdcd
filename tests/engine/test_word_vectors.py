from __future__ import annotations

import math

import pytest

from kronmem.engine import word_vectors
from kronmem.engine.word_vectors import SIZE, Table, closeness, code, packed, unpacked, vector


def close(question: str, text: str) -> float:
    return closeness(unpacked(vector(question)), vector(text))


@pytest.mark.parametrize(
    ("question", "answer", "others"),
    [
        (
            "Which instrument does she play?",
            "Lena took up the violin.",
            "Nightly backups are kept for a month.",
        ),
        ("Which food makes me ill?", "I am allergic to peanuts.", "The invoice is due on Friday."),
        ("Who looks after the kids?", "Our babysitter is called Ines.", "The server runs Debian."),
        ("Which database did we pick?", "We chose PostgreSQL over MySQL.", "My sister plays the cello."),
    ],
)
def test_an_answer_in_other_words_is_closer_than_a_text_about_something_else(
    question: str, answer: str, others: str
) -> None:
    assert close(question, answer) > 0.1 + close(question, others)


def test_a_text_is_as_close_to_itself_as_can_be() -> None:
    assert close("dark mode in the editor", "dark mode in the editor") == pytest.approx(1, abs=0.01)


def test_a_vector_is_a_fixed_number_of_bytes_of_one_length() -> None:
    for text in ("tea", "The quick brown fox", "word " * 1000):
        numbers = unpacked(vector(text))
        assert len(numbers) == SIZE
        assert math.hypot(*numbers) == pytest.approx(word_vectors.UNIT, rel=0.02)


@pytest.mark.parametrize("text", ["", "?!", "ズドラ", "zzxqv"])
def test_a_text_without_a_known_word_has_no_vector_and_is_close_to_nothing(text: str) -> None:
    assert vector(text) == b""
    assert closeness(unpacked(vector("tea")), b"") == 0
    assert closeness(unpacked(b""), vector("tea")) == 0


def test_a_code_holds_the_signs() -> None:
    numbers = unpacked(vector("a walk in the park"))
    assert f"{code(vector('a walk in the park')):0{SIZE}b}" == "".join("01"[number > 0] for number in numbers)


@pytest.mark.parametrize(
    ("word", "entries"),
    [
        ("tea", ["tea"]),
        ("teas", ["tea"]),
        ("stopped", ["stop"]),
        ("cities", ["city"]),
        ("baking", ["bake"]),
        ("teacity", ["tea", "city"]),
        ("1999", ["#year"]),
        ("42", ["#2"]),
        ("1234567", ["#5"]),
        ("unknown", []),
        ("té", []),
    ],
)
def test_an_unknown_word_is_another_form_or_made_of_two(word: str, entries: list[str]) -> None:
    known = {"tea", "stop", "city", "bake", "#year", "#2", "#5"}
    assert list(word_vectors.spelled(word, known.__contains__)) == entries


def test_a_table_gives_back_the_rows_it_was_made_of() -> None:
    rows = {word: bytes((at * 7 + n) % 256 for n in range(SIZE)) for at, word in enumerate(("tea", "city", "#2"))}
    table = Table(packed(rows.items()))
    assert len(table) == 3
    assert "tea" in table
    assert "coffee" not in table
    for word, row in rows.items():
        biased = table.row(word).to_bytes(SIZE, "little")
        assert bytes((byte - 128) % 256 for byte in biased) == row
    with pytest.raises(KeyError):
        table.row("coffee")


def test_another_file_is_refused() -> None:
    with pytest.raises(ValueError, match="word vectors"):
        Table(b"something else")
