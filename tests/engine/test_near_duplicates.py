"""Near duplicates take one place among the hits and in a block; none of them is deleted."""

from __future__ import annotations

import pytest

from tests.engine.calling import Caller

ALIKE = (
    "The user prefers tea over coffee",
    "the user prefers TEA over coffee!",
    "Over coffee, the user prefers tea.",
    "Well, the user really prefers tea over coffee",
)
ASKED = "does the user prefer tea or coffee?"


def test_the_newest_stands_for_the_same_words_in_another_order_case_or_punctuation(call: Caller) -> None:
    for text in ALIKE:
        call.remember(text)
        call.clock.time += 10
    assert call.recall(ASKED) == [ALIKE[-1]]
    assert sorted(call.contents()) == sorted(ALIKE)


def test_a_pinned_one_stands_before_the_newest(call: Caller) -> None:
    call.remember(ALIKE[0], pinned=True)
    call.clock.time += 10
    call.remember(ALIKE[1])
    assert call.recall(ASKED) == [ALIKE[0]]


def test_the_limit_still_fills_and_a_block_holds_each_once(call: Caller) -> None:
    for number in range(6):
        call.remember(f"the user drank tea with guest {number}")
    for text in ALIKE:
        call.remember(text)
    hits = call.recall(ASKED, limit=5, threshold=0)
    assert len(hits) == 5
    assert len([text for text in hits if text in ALIKE]) == 1
    _, reply = call("POST", "inject-context", {"query": ASKED, "limit": 8, "kronmem": {"fill": True}})
    texts = [one["memory"]["content"] for one in reply["memories"]]
    assert len(texts) == 7  # six guests and one of the four
    assert len([text for text in texts if text in ALIKE]) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the user prefers tea over coffee", "the user does not prefer tea over coffee"),
        ("the server listens on port 8080", "the server listens on port 9090"),
        ("Ada likes Bob", "Bob likes Ann"),
    ],
)
def test_texts_that_say_something_else_keep_their_places(call: Caller, one: str, other: str) -> None:
    call.remember(one)
    call.remember(other)
    assert sorted(call.recall(one, threshold=0)) == sorted([one, other])
