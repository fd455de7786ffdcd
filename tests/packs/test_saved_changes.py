"""Journals: a value is what its changes make of it, whatever happens in between."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kronmem import Client, InvalidInputError, KronmemError, ReplyError, State
from kronmem.packs.message_log import ChangeLog, apply, differences

KEYS = st.text("ab", max_size=2)  # few, so that old and new have some in common
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=4)


@given(OBJECTS, OBJECTS)
def test_the_differences_make_the_new_value_of_the_old_one(old: Any, new: Any) -> None:
    made = copy.deepcopy(old)
    apply(made, list(differences(old, new)))
    assert made == new


def test_of_a_list_that_grew_only_the_end_is_a_difference() -> None:
    old = {"a": {"messages": ["x"] * 1000, "turn": 3}, "b": 1}
    new = {"a": {"messages": [*["x"] * 1000, "y"], "turn": 4}, "b": 1}
    assert list(differences(old, new)) == [(["a", "messages"], 1000, ["y"]), (["a", "turn"], None, 4)]


@pytest.fixture
def state() -> Iterator[State]:
    with Client.local(":memory:") as client:
        yield client.state("ann")


def test_a_journal_is_read_back_and_gone_on_with(state: State) -> None:
    assert ChangeLog(state, "chat", "chat").read() is None
    first = ChangeLog(state, "chat", "chat")
    first.begin([(["list"], 0, [1])], {"about": "x"})
    first.append([(["list"], 1, [2])])
    second = ChangeLog(state, "chat", "chat")
    head = second.read()
    assert head is not None
    assert (head["value"], head["about"]) == ({"list": [1, 2]}, "x")
    second.append([(["list"], 2, [3])])
    head = ChangeLog(state, "chat", "chat").read()
    assert head is not None
    assert head["value"] == {"list": [1, 2, 3]}


def test_what_no_store_takes_is_replaced_and_the_rest_is_kept(state: State) -> None:
    journal = ChangeLog(state, "chat", "chat")
    journal.begin([(["list"], 0, ["a\x00b", {"half\ud83d": [float("nan"), 1.5, True, None]}])], {})
    journal.append([(["list"], 2, ["after"])])
    head = ChangeLog(state, "chat", "chat").read()
    assert head is not None
    assert head["value"] == {"list": ["a\ufffdb", {"half\ufffd": [None, 1.5, True, None]}, "after"]}


def test_a_new_value_that_cannot_be_stored_leaves_the_old_one(state: State) -> None:
    journal = ChangeLog(state, "chat", "chat")
    journal.begin([(["list"], 0, ["old"])], {})

    class Full(State):
        def __init__(self) -> None: ...

        def set(self, key: str, value: Any) -> None:
            if key == "chat":
                raise KronmemError("disk full")
            state.set(key, value)

        get, delete = state.get, state.delete  # type: ignore[assignment] # bound to the real one

    again = ChangeLog(Full(), "chat", "chat")
    again.read()
    with pytest.raises(KronmemError, match="disk full"):
        again.begin([(["list"], 0, ["new"])], {})
    head = ChangeLog(state, "chat", "chat").read()
    assert head is not None
    assert head["value"] == {"list": ["old"]}


class Faulty(State):
    """A real state of which some calls are done and fail all the same, as when a reply is lost."""

    def __init__(self, inner: State) -> None:
        self._inner, self.failing = inner, False

    def get(self, key: str, default: Any = None) -> Any:
        return self._inner.get(key, default)

    def set(self, key: str, value: Any) -> None:
        self._inner.set(key, value)
        self._lose_reply()

    def delete(self, key: str) -> None:
        self._lose_reply()
        self._inner.delete(key)

    def _lose_reply(self) -> None:
        if self.failing:
            raise KronmemError("no reply")


def test_a_write_that_failed_and_arrived_is_written_over(state: State) -> None:
    faulty = Faulty(state)
    journal = ChangeLog(faulty, "chat", "chat")
    journal.begin([(["turn"], None, 0)], {})
    faulty.failing = True
    with pytest.raises(KronmemError, match="no reply"):
        journal.append([(["turn"], None, 1)])
    faulty.failing = False
    journal.append([])  # the value is again as it was stored before
    head = ChangeLog(state, "chat", "chat").read()
    assert head is not None
    assert head["value"] == {"turn": 0}
    journal.append([])
    assert len(state.keys()) == 3


def test_what_is_no_journal_is_told_apart(state: State) -> None:
    for value in ([1, 2], {"kind": "chat", "sides": {}}, {"kind": "conversation", "journal": "x"}):
        state.set("other", value)
        with pytest.raises(InvalidInputError, match="the value saved under 'other' is not a chat"):
            ChangeLog(state, "other", "chat").read()
    with pytest.raises(ReplyError):
        apply({"list": []}, [(["list"], 3, ["a gap"])])
