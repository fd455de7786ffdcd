"""A JSON value that grows, kept as changes: one entry of the state for each, under a counter.

The head under the key names the journal; its entries are read by counting up, never by listing, since a service may
list only so many keys. An entry costs the same however long the log is.
"""

from __future__ import annotations

import asyncio
import math
import re
import threading
import uuid
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import wait
from typing import Any, Protocol, TypeVar, cast

import anyio
from pydantic import JsonValue

from kronmem.async_state import AsyncState
from kronmem.errors import DeadlineError, InvalidInputError, KronmemError, ReplyError

T = TypeVar("T")

Change = tuple[list[str], int | None, JsonValue]
"""Where, from which position of a list on (None: the value as a whole; REMOVED: it is no more), and its new content."""
REMOVED = -1


class KeyValue(Protocol):
    """The part of `State` that a journal needs."""

    def get(self, key: str) -> JsonValue:
        """The value, None when there is none."""
        ...

    def set(self, key: str, value: JsonValue) -> None:
        """Store a value."""
        ...

    def delete(self, key: str) -> None:
        """Remove a value."""
        ...


class ChangeLog:
    """The changes of one value under one key. Not for two writers at the same time."""

    def __init__(self, state: KeyValue, key: str, kind: str) -> None:
        self._state, self._key, self._kind = state, key, kind
        self._id: str | None = None
        self._entries, self._unsure = 0, False
        self._replaced, self._removing = deque[str](), threading.Lock()

    def read(self) -> dict[str, JsonValue] | None:
        """The head, with the value under "value"; None when there is nothing. Refuses any other value."""
        head = self._state.get(self._key)
        if head is None:
            return None
        journal = head.get("journal") if isinstance(head, dict) and head.get("kind") == self._kind else None
        if not isinstance(head, dict) or not isinstance(journal, str):
            raise InvalidInputError(f"the value saved under {self._key!r} is not a {self._kind}")
        self._id, self._entries = journal, 0
        value: dict[str, JsonValue] = {}
        for changes in self._stored(journal):
            apply(value, changes)
            self._entries += 1
        return {**head, "value": value}

    def append(self, changes: Sequence[Change]) -> None:
        """Store changes: on disk when this returns."""
        # An entry whose writing failed may be there all the same: it is written over, if need be with no change at all.
        if changes or self._unsure:
            self._unsure = True
            entry = storable(cast("JsonValue", [list(one) for one in changes]))
            self._state.set(self._name(self._id or "", self._entries), entry)
            self._entries, self._unsure = self._entries + 1, False

    def begin(self, changes: Sequence[Change], about: Mapping[str, JsonValue]) -> None:
        """Store a new value in the place of the old one, which stays readable until the new one is complete."""
        old = self._id, self._entries, self._unsure
        self._id, self._entries, self._unsure = uuid.uuid4().hex[:8], 0, False
        try:
            self.append(changes)
            self._state.set(self._key, {"kind": self._kind, "journal": self._id, **about})
        except BaseException:
            self._id, self._entries, self._unsure = old
            raise
        if old[0] is not None:
            self._replaced.extend(self._name(old[0], number) for number in range(old[1] + int(old[2])))

    def remove_replaced(self) -> None:
        """Remove the entries of old values, which are no longer read. Another thread may append meanwhile."""
        with self._removing:
            while self._replaced:
                self._state.delete(self._replaced[0])
                self._replaced.popleft()

    @property
    def replaced(self) -> bool:
        """Whether there is something to remove."""
        return bool(self._replaced)

    @property
    def begun(self) -> bool:
        """Whether there is something to append to."""
        return self._id is not None

    def _stored(self, journal: str) -> Iterator[list[Change]]:
        number = 0
        while (entry := self._state.get(self._name(journal, number))) is not None:
            yield cast("list[Change]", entry)
            number += 1

    def _name(self, journal: str, number: int) -> str:
        return f"{self._key}.{journal}.{number}"


def apply(value: dict[str, JsonValue], changes: Sequence[Change]) -> None:
    """Make changes in a value."""
    for path, start, new in changes:
        *parents, last = path
        inner = value
        for name in parents:
            inner = cast("dict[str, JsonValue]", inner.setdefault(name, {}))
        if start == REMOVED:
            inner.pop(last, None)
        elif start is None:
            inner[last] = new
        else:
            known = inner.setdefault(last, [])
            if not isinstance(known, list) or not isinstance(new, list) or len(known) < start:
                raise ReplyError("an entry of this journal does not follow from the ones before it")
            known[start:] = new


def differences(old: JsonValue, new: JsonValue, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """The changes that make `new` of `old`: of a list that grew only the new end."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in old.keys() - new.keys():
            yield [*path, name], REMOVED, None
        for name, inner in new.items():
            if name not in old:
                yield [*path, name], None, inner
            else:
                yield from differences(old[name], inner, (*path, name))
    elif isinstance(old, list) and isinstance(new, list):
        same = next((at for at, (one, other) in enumerate(zip(old, new)) if one != other), min(len(old), len(new)))  # noqa: B905 -- one may be longer
        if same < len(old) or same < len(new):
            yield [*path], same, new[same:]
    elif old != new:
        yield [*path], None, new


class Awaited:
    """An `AsyncState` for the blocking journal, which runs in a thread of the event loop.

    A call without a waiting caller is not cancelled: it may have arrived, and its end decides.
    """

    def __init__(self, state: AsyncState) -> None:
        self._state, self._loop = state, asyncio.get_running_loop()

    def get(self, key: str) -> JsonValue:
        """The value, None when there is none."""
        return self._result(self._state.get(key))

    def set(self, key: str, value: JsonValue) -> None:
        """Store a value."""
        self._result(self._state.set(key, value))

    def delete(self, key: str) -> None:
        """Remove a value."""
        self._result(self._state.delete(key))

    def _result(self, call: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        while not wait([future], 1.0).done:
            if self._loop.is_closed():  # no task carries it on: the process must be able to end
                raise DeadlineError("the event loop was closed before the save had ended")
        return future.result()


# Reads many values of a state at once.

_AT_ONCE = 16
"""As many as an embedded engine answers at a time."""


async def values_of(state: AsyncState, keys: Sequence[str]) -> list[JsonValue]:
    """The values under keys, in their order, without those that are not there; a failure is raised as it is."""
    values: dict[str, JsonValue] = {}
    failed: list[KronmemError] = []
    waiting = iter(keys)

    async def work() -> None:
        for key in waiting:
            try:
                values[key] = await state.get(key)
            except KronmemError as error:  # not by the task group, which would wrap it
                failed.append(error)
                group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for _ in range(min(_AT_ONCE, len(keys))):
            group.start_soon(work)
    if failed:
        raise failed[0]
    return [value for key in keys if (value := values[key]) is not None]


# Text and JSON of messages in a form that every store takes. Pure.
#
# A message may hold anything: a file that a tool read, half a character of a model. One that no store took would stand
# in the way of all that is saved after it.

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""NUL, and halves of a surrogate pair."""


def storable(value: JsonValue) -> JsonValue:
    """The value with U+FFFD in place of characters, and null in place of numbers, that no store takes."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_text(name): storable(inner) for name, inner in value.items()}
    return [storable(inner) for inner in value] if isinstance(value, list) else value


def _text(value: str) -> str:
    return UNSTORABLE.sub("\ufffd", value)
