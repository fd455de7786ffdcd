from __future__ import annotations

import math
import random
from array import array

import pytest

from kronmem.engine import word_vectors
from kronmem.engine.word_vectors import SIZE, UNIT, Comparison, Table, code, packed, vector


def close(question: str, text: str) -> float:
    return Comparison(vector(question)).closeness([vector(text)])[0]


def signed(vector: bytes) -> list[int]:
    return memoryview(vector).cast("b").tolist()


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
        numbers = signed(vector(text))
        assert len(numbers) == SIZE
        assert math.hypot(*numbers) == pytest.approx(word_vectors.UNIT, rel=0.02)


@pytest.mark.parametrize("text", ["", "?!", "ズドラ", "zzxqv"])
def test_a_text_without_a_known_word_has_no_vector(text: str) -> None:
    assert vector(text) == b""


def test_numpy_compares_as_exactly_as_python() -> None:
    numpy = pytest.importorskip("numpy")
    chance = random.Random(3)
    vectors = [chance.randbytes(SIZE) for _ in range(50)] + [vector("a walk in the park")]
    asked = Comparison(vector("a stroll in the garden"))
    assert asked.closeness(vectors, numpy) == asked.closeness(vectors)
    assert asked.closeness([], numpy) == asked.closeness([]) == []
    by_hand = sum(a * b for a, b in zip(signed(vector("a stroll in the garden")), signed(vectors[-1]), strict=True))
    assert asked.closeness(vectors)[-1] == by_hand / word_vectors.UNIT**2


def test_a_code_holds_the_signs() -> None:
    numbers = signed(vector("a walk in the park"))
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


def test_a_sum_is_brought_to_one_length_and_rounded_as_plain_arithmetic_does() -> None:
    chosen = random.Random(5)
    sums = [[chosen.randrange(-reach, reach + 1) for _ in range(SIZE)] for reach in (1, 3, 40, 900, 32639) * 20]
    sums += [[part, *([0] * (SIZE - 2)), other] for part in (1, -1, 5, 32639, -32639) for other in (0, 1, 2, -4)]
    sums += [[2] * 4 + [1] * 240 + [0] * 12]  # 400 / 16 = 25 a step
    assert [word_vectors.scaled(parts) for parts in sums] == [_plainly_scaled(parts) for parts in sums]
    assert word_vectors.scaled([0] * SIZE) == b""


def _plainly_scaled(parts: list[int]) -> bytes:
    scale = min(UNIT / math.sqrt(sum(part * part for part in parts)), 127 / max(map(abs, parts)))
    return array("b", [round(scale * part) for part in parts]).tobytes()
