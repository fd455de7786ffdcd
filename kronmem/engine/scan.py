"""The passages closest in meaning to a question, by the signs of their vectors; the vectors are cached by space.

A scan costs about 0.1 microseconds a passage and finds more than nine of the ten closest among its first two hundred;
those are then compared exactly. numpy only speeds it up: with and without it the answer is the same.
"""

from __future__ import annotations

import re
import sys
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module, util
from types import ModuleType

from kronmem.engine.index import number_of, place
from kronmem.engine.store import PLACE_BITS, Reader, Space
from kronmem.engine.succession import Changes
from kronmem.engine.word_vectors import CODE_BYTES, SIZE, UNKNOWN, Vector, code

WORTH_NUMPY = 1_000_000
"""After so many passages scanned in this process, importing numpy (about 0.1 s) has cost less than doing without."""
COMPARED = 16
"""Comparing two vectors exactly costs as much as so many codes."""
SEEK = 8
"""Finding the codes of one memory costs as much as looking at so many in a row."""
_scanned = 0


class Codes:
    """The sign codes of one space, the newest last, in memory: about 150 bytes a passage. Not safe for threads."""

    def __init__(self) -> None:
        self._places: list[int] = []
        self._codes: list[int] = []
        self._packed = bytearray()

    def __len__(self) -> int:
        return len(self._places)

    def add(self, number: int, packed: bytes) -> None:
        """Add a memory newer than all before, with the kinds and codes of its passages (`pack_codes`)."""
        for passage, start in enumerate(range(0, len(packed), 1 + CODE_BYTES)):
            if (speaker := packed[start]) != UNKNOWN:
                self._places.append(place(number, passage, speaker))
                self._codes.append(int.from_bytes(packed[start + 1 : start + 1 + CODE_BYTES], "little"))

    def discard(self, numbers: Collection[int]) -> None:
        """Drop the passages of these memories."""
        if not numbers:
            return
        kept = [at for at, place in enumerate(self._places) if number_of(place) not in numbers]
        self._places = [self._places[at] for at in kept]
        self._codes = [self._codes[at] for at in kept]
        self._packed.clear()

    def nearest(
        self,
        question: Vector,
        count: int,
        within: Collection[int] | None = None,
        without: Collection[int] = frozenset(),
    ) -> list[int]:
        """The places of the `count` closest passages, oldest first; of equally close ones, the newest."""
        if not question or not self._codes:
            return []
        asked = code(question)
        if within is None and len(self._codes) > SEEK * len(without):
            # So few are left out that as many more are looked for, instead of looking at each.
            spare = sum(last - first for first, last in map(self._span, without))
            chosen: Sequence[int] = self._closest(asked, count + spare)
        else:
            chosen = range(len(self._places))
        if within is not None:
            chosen = [at for at in chosen if number_of(self._places[at]) in within]
        if without:
            chosen = [at for at in chosen if number_of(self._places[at]) not in without]
        places = closest(asked, [self._codes[at] for at in chosen], count)
        return [self._places[chosen[at]] for at in places]

    def _closest(self, asked: int, count: int) -> list[int]:
        numpy = numpy_for(len(self._codes)) if len(self._codes) > count else None
        return self._by_numpy(numpy, asked, count) if numpy else closest(asked, self._codes, count)

    def first(self, number: int) -> int | None:
        """The code of a memory's first passage that has one."""
        at = bisect_left(self._places, number << PLACE_BITS)
        return self._codes[at] if at < len(self._places) and self._places[at] >> PLACE_BITS == number else None

    def _span(self, number: int) -> tuple[int, int]:
        """Where the codes of a memory begin and end."""
        first = bisect_left(self._places, place(number, 0, 0))
        last = first
        while last < len(self._places) and number_of(self._places[last]) == number:
            last += 1
        return first, last

    def _by_numpy(self, numpy: ModuleType, asked: int, count: int) -> list[int]:
        for number in self._codes[len(self._packed) // CODE_BYTES :]:
            self._packed += number.to_bytes(CODE_BYTES, "little")
        return closest_by_numpy(numpy, asked, self._packed, count)


def closest(question: int, codes: Sequence[int], count: int) -> list[int]:
    """The indexes of the `count` codes that differ in the fewest bits, in order; of equally close ones, the last."""
    if len(codes) <= count:
        return list(range(len(codes)))
    apart = _distances(question, codes)
    least, seen = min(apart), 0
    while (seen := seen + apart.count(least)) < count:
        least += 1
    near = apart.translate(bytes(bits <= least for bits in range(256)))
    places = [match.start() for match in _NEAR.finditer(near)]
    spare = frozenset([at for at in places if apart[at] == least][: seen - count])
    return [at for at in places if at not in spare]


_NEAR = re.compile(b"\x01")


def _distances(question: int, codes: Sequence[int]) -> bytes:
    """In how many bits each code differs, without a step of Python for each."""
    try:
        return bytes(map(int.bit_count, map(question.__xor__, codes)))
    except ValueError:  # one differs in all 256
        return bytes(min((question ^ other).bit_count(), 255) for other in codes)


def closest_by_numpy(numpy: ModuleType, question: int, packed: bytearray, count: int) -> list[int]:
    """The same as `closest`, over codes packed into 32 bytes each."""
    rows = numpy.frombuffer(packed, dtype="<u8").reshape(-1, CODE_BYTES // 8)
    asked = numpy.frombuffer(question.to_bytes(CODE_BYTES, "little"), dtype="<u8")
    bits = numpy.bitwise_count(rows ^ asked)
    numpy.minimum(bits[:, 3], 63, out=bits[:, 3])  # 255, should all 256 differ: a byte holds it
    apart = bits[:, 0] + bits[:, 1] + bits[:, 2] + bits[:, 3]  # ten times as fast as a sum over four
    least = numpy.searchsorted(numpy.bincount(apart).cumsum(), count)  # three times as fast as a partition
    places: list[int] = numpy.flatnonzero(apart < least).tolist()
    level: list[int] = numpy.flatnonzero(apart == least).tolist()
    return sorted(places + level[len(places) - count :])


def numpy_for(passages: int) -> ModuleType | None:
    """numpy, if the program uses it already or scans so much that importing it pays; one that can count bits."""
    global _scanned
    _scanned += passages
    if "numpy" not in sys.modules and (_scanned < WORTH_NUMPY or util.find_spec("numpy") is None):
        return None
    try:
        numpy = import_module("numpy")
    except ImportError:  # broken, or blocked by the program
        return None
    return numpy if hasattr(numpy, "bitwise_count") else None


# The codes and vectors of recently asked spaces, kept in memory within bounds and brought up to date before each scan.
#
# Locks are held only for steps that ask the store for nothing: a store that hangs holds up nobody but those that it
# hangs for.

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
        """Read the memories stored since. Threads that do so at once read the same rows, and add each of them once."""
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
        numbers = list(map(known.get, ids))
        if None in numbers:
            unknown = [one for one in ids if one not in known]
            new = {**dict.fromkeys(unknown, _NONE), **rows.numbers(space, unknown)}
            self._numbers = known | new if len(known) < MOST_IDS else new
            numbers = [number for one in ids if (number := known.get(one, new.get(one))) is not None]
        return frozenset(number for number in numbers if number)

    def vectors(self, rows: Reader, space: Space, numbers: Sequence[int]) -> dict[int, bytes]:
        """By memory that is there still, one vector for each of its passages: those seen before are not read again."""
        known = {number: kept for number in numbers if (kept := self._vectors.get(number)) is not None}
        stored = rows.vectors(space, numbers, known.keys())
        new = {number: vectors for number, vectors in stored.items() if vectors is not None}
        with self._lock:
            self._vectors |= new
            self._held += sum(map(len, new.values())) // SIZE
        return {number: known[number] if vectors is None else vectors for number, vectors in stored.items()}

    def discard(self, numbers: Collection[int]) -> None:
        """Drop the passages of these memories."""
        with self._lock:
            self._codes.discard(numbers)

    def drop_vectors(self) -> None:
        """Make room: the vectors can be read again."""
        with self._lock:
            self._vectors, self._held = {}, 0


class CodeCache:
    """Codes by space. A memory's codes never change under its number unless the space reports it."""

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
                kept = self._kept[space.id] = CachedCodes(state, changes=Changes())
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
