"""The codes and vectors of recently asked spaces, kept in memory within bounds and brought up to date before each scan.

Locks are held only for steps that ask the store for nothing: a store that hangs holds up nobody but those that it hangs
for.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from kronmem.engine.store import Reader, Space
from kronmem.engine.vector_scan import Codes
from kronmem.engine.word_vectors import SIZE, Vector

MOST_PASSAGES = 400_000
"""Of all spaces together, about 60 MB: the space that was asked longest ago makes room.

A space with more of its own is not scanned: there, only passages that the words find are compared by meaning.
"""
VECTOR = 2
"""The vector of a passage takes as much room as the codes of so many."""


@dataclass
class CachedCodes:
    """The codes of one space as of a state of it, and the vectors that were compared. Safe for any thread."""

    state: tuple[int, int]
    _codes: Codes = field(default_factory=Codes)
    _last: int = 0
    _vectors: dict[int, bytes] = field(default_factory=lambda: dict[int, bytes]())
    _held: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def size(self) -> int:
        """The room that it takes, in passages."""
        return len(self._codes) + VECTOR * self._held

    def catch_up(self, rows: Reader, space: Space) -> None:
        """Read what was stored since. Threads that do so at once read the same rows, and add each of them once."""
        if self._last >= space.last:
            return
        for number, packed in rows.codes(space, self._last):
            with self._lock:
                if number > self._last:
                    self._codes.add(number, packed)
                    self._last = number
        with self._lock:
            self._last = max(self._last, space.last)

    def nearest(self, question: Vector, count: int, within: Collection[int] | None) -> list[int]:
        """The places of the `count` closest passages (`Codes.nearest`)."""
        with self._lock:
            return self._codes.nearest(question, count, within)

    def vectors(self, rows: Reader, space: Space, numbers: Sequence[int]) -> dict[int, bytes]:
        """By memory that is there still, one vector for each of its passages: those seen before are not read again."""
        known = {number: kept for number in numbers if (kept := self._vectors.get(number)) is not None}
        found = rows.vectors(space, numbers, known.keys())
        new = {number: vectors for number, vectors in found.items() if vectors is not None}
        with self._lock:
            self._vectors |= new
            self._held += sum(map(len, new.values())) // SIZE
        return {number: known[number] if vectors is None else vectors for number, vectors in found.items()}

    def discard(self, numbers: Collection[int]) -> None:
        """Drop the passages of these memories."""
        with self._lock:
            self._codes.discard(numbers)

    def drop_vectors(self) -> None:
        """Make room: the vectors can be read again."""
        with self._lock:
            self._vectors, self._held = {}, 0


class CodeCache:
    """Codes by space. A memory's codes never change under its number unless the space says so."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, CachedCodes] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, rows: Reader, space: Space) -> CachedCodes:
        """The codes of a space with everything that is in it now."""
        state = (space.generation, space.revised)
        if space.passages > MOST_PASSAGES:
            return CachedCodes(state)
        with self._lock:
            kept = self._kept.get(space.id)
            if kept is None or kept.state != state:
                kept = self._kept[space.id] = CachedCodes(state)
            self._kept.move_to_end(space.id)
        kept.catch_up(rows, space)
        self._make_room()
        return kept

    def _make_room(self) -> None:
        with self._lock:
            while len(self._kept) > 1 and sum(one.size for one in self._kept.values()) > MOST_PASSAGES:
                self._kept.popitem(last=False)
            if (newest := next(reversed(self._kept.values()))).size > MOST_PASSAGES:
                newest.drop_vectors()
