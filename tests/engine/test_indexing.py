from __future__ import annotations

import pytest

from kronmem.engine import index
from kronmem.engine.index import QUESTION, REPLY, entries, excerpt, kind, number_of, place

LONG = "We talked about the garden and about the weather for a while. " * 12 + "The plumber charged ninety euros."


def test_a_short_memory_is_one_entry() -> None:
    (entry,) = entries("I like green tea", "user", (), "fact")
    assert (entry.passage, entry.kind, entry.length) == (0, 0, 3)
    assert {"like", "green", "tea"} <= set(entry.terms)
    assert len(entry.vector) == 256


def test_tags_and_type_are_found_by_their_words_but_make_the_text_no_longer() -> None:
    (entry,) = entries("I like green tea", None, ("hot drinks", "tea"), "preference")
    assert entry.terms == {"like": 1, "green": 1, "tea": 1, "hot": 1, "drink": 1, "prefer": 1}
    assert entry.length == 3


def test_only_the_first_passage_carries_tags() -> None:
    found = list(entries(LONG, None, ("household",), "fact"))
    assert [entry.passage for entry in found] == list(range(len(found)))
    assert ["household" in entry.terms for entry in found] == [True] + [False] * (len(found) - 1)


@pytest.mark.parametrize(
    ("role", "content", "expected"),
    [
        ("user", "I moved to Porto.", 0),
        (None, "I moved to Porto.", 0),
        ("system", "Be brief.", 0),
        ("assistant", "Noted.", REPLY),
        ("tool", "rows: 3", REPLY),
        ("user", "Where do I live?", QUESTION),
        ("user", "我住在哪里？", QUESTION),
        ("assistant", "Anything else?", REPLY | QUESTION),
        ("user", "I moved to Porto. Can you find a gym?", 0),
        ("user", "I moved to Porto for a new job last week, can you find me a gym there?", 0),
    ],
)
def test_a_kind_says_who_spoke_and_whether_they_only_asked(role: str | None, content: str, expected: int) -> None:
    assert kind(role, content) == expected


def test_a_place_names_memory_passage_and_kind() -> None:
    assert number_of(place(77, 1023, 3)) == 77
    assert place(1, 0, 0) < place(1, 0, 1) < place(1, 1, 0) < place(2, 0, 0)


def test_an_excerpt_is_the_passage() -> None:
    last = len(list(entries(LONG, None, (), "fact"))) - 1
    assert excerpt(LONG, place(5, last, 2)).endswith("The plumber charged ninety euros.")
    assert len(excerpt(LONG, place(5, last, 2)).split()) <= 72
    assert excerpt("short", place(5, 3, 0)) == "short"


def test_a_text_of_any_length_has_a_bounded_number_of_passages() -> None:
    found = list(entries("word " * 60_000, None, (), "fact"))
    assert len(found) == index.MAX_PASSAGES
