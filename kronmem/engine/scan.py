"""The passages closest in meaning to a question, by the signs of their vectors. Pure; numpy only speeds it up.

A scan costs about 0.1 microseconds a passage and finds more than nine of the ten closest among its first two hundred;
those are then compared exactly. With and without numpy the answer is the same.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Collection, Sequence
from importlib import import_module, util
from types import ModuleType

from kronmem.engine.indexing import number_of, place
from kronmem.engine.store import PLACE_BITS
from kronmem.engine.word_vectors import CODE_BYTES, UNKNOWN, Vector, code

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
            if (said := packed[start]) != UNKNOWN:
                self._places.append(place(number, passage, said))
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
        found = closest(asked, [self._codes[at] for at in chosen], count)
        return [self._places[chosen[at]] for at in found]

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
    found = [match.start() for match in _NEAR.finditer(near)]
    spare = frozenset([at for at in found if apart[at] == least][: seen - count])
    return [at for at in found if at not in spare]


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
    found: list[int] = numpy.flatnonzero(apart < least).tolist()
    level: list[int] = numpy.flatnonzero(apart == least).tolist()
    return sorted(found + level[len(found) - count :])


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
