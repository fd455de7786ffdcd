"""The codes and vectors of recently asked spaces, kept in memory within bounds and brought up to date before each scan.

Locks are held only for steps that ask the store for nothing: a store that hangs holds up nobody but those that it hangs
for.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from kronmem import fork_safety
from kronmem.engine.store import Reader, Space
from kronmem.engine.succession import Changes
from kronmem.engine.vector_scan import Codes
from kronmem.engine.word_vectors import SIZE, Vector

MOST_PASSAGES = 400_000
"""Of all spaces together, about 60 MB: the space that was asked longest ago makes room.

A space with more of its own is not scanned: there, only passages that the words find are compared by meaning.
"""
MOST_IDS = 10_000
"""Of memories that recalls were to leave out: about 1 MB a space."""
_NONE = 0
"""In place of the number of a memory that is not there."""
ALIKE = 40
"""Codes of near duplicates differ in at most so many of 256 bits: filler words move a meaning a little."""
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
    changes: Changes | None = None
    """The statements of the space that tell of a change; None where it is too large to be kept."""
    _numbers: dict[str, int] = field(default_factory=lambda: dict[str, int]())
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

    def nearest(
        self,
        question: Vector,
        count: int,
        within: Collection[int] | None = None,
        without: Collection[int] = frozenset(),
    ) -> list[int]:
        """The places of the `count` closest passages (`Codes.nearest`)."""
        with self._lock:
            return self._codes.nearest(question, count, within, without)

    def alike(self, number: int, others: Iterable[int]) -> list[int]:
        """Those of the others that may be near duplicates of a memory: their first codes hardly differ."""
        with self._lock:
            own = self._codes.first(number)
            codes = [(other, self._codes.first(other)) for other in others]
        if own is None:  # in a language that the table does not know
            return [other for other, code in codes if code is None]
        return [other for other, code in codes if code is not None and (own ^ code).bit_count() <= ALIKE]

    def numbers(self, rows: Reader, space: Space, ids: Collection[str]) -> frozenset[int]:
        """The numbers of memories by id: those looked up before are not looked up again. Unknown ids have none.

        A memory that was stored under an id after that was looked up is not among them.
        """
        known = self._numbers
        found = list(map(known.get, ids))
        if None in found:
            unknown = [one for one in ids if one not in known]
            new = {**dict.fromkeys(unknown, _NONE), **rows.numbers(space, unknown)}
            self._numbers = known | new if len(known) < MOST_IDS else new
            found = [number for one in ids if (number := known.get(one, new.get(one))) is not None]
        return frozenset(number for number in found if number)

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
        self._begin()
        fork_safety.watch(self)

    def _begin(self) -> None:
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
                kept = self._kept[space.id] = CachedCodes(state, changes=Changes())
            self._kept.move_to_end(space.id)
        kept.catch_up(rows, space)
        self._make_room()
        return kept

    def before_fork(self) -> None:
        """Nothing: what other threads are at work on is left to them."""

    def after_fork(self, *, child: bool) -> None:
        """Read again in the child: another thread may have been in the middle of a change."""
        if child:
            self._begin()

    def _make_room(self) -> None:
        with self._lock:
            while len(self._kept) > 1 and sum(one.size for one in self._kept.values()) > MOST_PASSAGES:
                self._kept.popitem(last=False)
            if (newest := next(reversed(self._kept.values()))).size > MOST_PASSAGES:
                newest.drop_vectors()
