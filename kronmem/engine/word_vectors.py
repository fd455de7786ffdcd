"""Meaning without a model: a text's vector is the sum of its words' rows in a table that ships with the package.

Pure apart from the table, which is mapped from the package at the first word and read row by row. The rows carry each
word's weight, so that nothing but a sum is left to do. `tests/tables` makes the table; words.NOTICE names its
sources. A vector is `SIZE` signed bytes of length `UNIT`; it lies in the index: change the table or the way a word is
looked up and every database has to be indexed again.
"""

from __future__ import annotations

import math
import mmap
import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import resources
from itertools import chain, islice
from types import ModuleType

from kronmem.engine import terms

SIZE = 256
"""Dimensions, and bytes of a vector."""
UNIT = 400.0
"""The length of every vector in steps of a signed byte: the largest part of a unit vector is about 0.3."""
MAX_WORDS = 257
"""Of a longer text the beginning counts: so many bytes, -127 to 127 each, can be summed in sixteen bits."""

_BIAS = 128  # rows are stored as unsigned bytes, 128 more than they mean: that lets whole rows be added as integers
_LANES = int.from_bytes(b"\xff\x00" * (SIZE // 2), "little")
_ONES = int.from_bytes(b"\x01\x00" * SIZE, "little")
_MINUS = _ONES << 15
# A small number added to it is rounded as `round` would, and stands in the low bytes of the sum, _BIAS more.
_ROUNDER = 1.5 * 2**52 + _BIAS
_LOW, _HIGH = (0, 1) if sys.byteorder == "little" else (7, 6)
_MAGIC = b"kronmem words 1\n"
_BIASED = bytes((byte + _BIAS) % 256 for byte in range(256))
_SIGNS = bytes(b"01"[0 < byte < 128] for byte in range(256))

Vector = bytes


def vector(text: str) -> Vector:
    """The meaning of `text`; empty if the table knows none of its words."""
    return vector_of(terms.tokens(text))


def vector_of(words: Iterable[str]) -> Vector:
    """The meaning of a text of these tokens."""
    rows = list(islice(chain.from_iterable(map(_rows_of, words)), MAX_WORDS))
    if not rows:
        return b""
    signed = (sum(rows) + _ONES * ((1 << 15) - _BIAS * len(rows))) ^ _MINUS
    return scaled(_numbers("h", signed.to_bytes(2 * SIZE, "little")).tolist())


def code(vector: Vector) -> int:
    """The signs of a vector as bits of an integer: vectors close in meaning differ in few of them."""
    return int(vector.translate(_SIGNS), 2)


CODE_BYTES = SIZE // 8
UNKNOWN = 0xFF
"""In place of a kind: no word of the passage is in the table, so it has no code."""


def pack_codes(kinds: Iterable[int], vectors: Iterable[Vector]) -> bytes:
    """The kinds and codes of a memory's passages as they are stored; a passage without a known word has no code."""
    return b"".join(
        bytes([kind]) + code(vector).to_bytes(CODE_BYTES, "little") if vector else bytes([UNKNOWN]) + bytes(CODE_BYTES)
        for kind, vector in zip(kinds, vectors, strict=True)
    )


class Comparison:
    """A question's vector, ready to be compared with many."""

    def __init__(self, question: Vector) -> None:
        self._question = memoryview(question).cast("b").tolist()
        self._bias = _BIAS * sum(self._question)

    def closeness(self, vectors: Sequence[Vector], numpy: ModuleType | None = None) -> list[float]:
        """The cosine with each of the texts, 0 where it is negative. With and without numpy the answer is the same."""
        if numpy is not None:
            rows = numpy.frombuffer(b"".join(vectors), dtype="i1").reshape(-1, SIZE)
            products: list[int] = (rows.astype("i4") @ numpy.array(self._question, dtype="i4")).tolist()
        elif _sumprod is not None:
            # Iterating over unsigned bytes is several times as fast as over signed ones.
            products = [_sumprod(self._question, vector.translate(_BIASED)) - self._bias for vector in vectors]
        else:
            products = self._all_products(vectors)
        return [min(max(product / (UNIT * UNIT), 0.0), 1.0) for product in products]

    def _all_products(self, vectors: Sequence[Vector]) -> list[int]:
        """Products of all at once, dimension by dimension: each vector has three bytes of one large integer."""
        biased = b"".join(vectors).translate(_BIASED)
        column = bytearray(3 * len(vectors))
        total = int.from_bytes(b"\x00\x00\x80" * len(vectors), "little")  # 256 * 128 * 255 is less: no sum is negative
        for dimension, weight in enumerate(self._question):
            column[::3] = biased[dimension::SIZE]
            total += weight * int.from_bytes(column, "little")
        sums, bias = total.to_bytes(len(column), "little"), (1 << 23) + self._bias
        lanes = zip(sums[::3], sums[1::3], sums[2::3], strict=True)
        return [low + (middle << 8) + (high << 16) - bias for low, middle, high in lanes]


_sumprod: Callable[[Iterable[int], Iterable[int]], int] | None = getattr(math, "sumprod", None)  # from Python 3.12 on


def scaled(parts: Sequence[int]) -> Vector:
    """The vector in the direction of a sum of rows; empty if that is zero."""
    length = math.sqrt(round(math.hypot(*parts) ** 2))  # of the exact sum of squares, in a tenth of the time
    if not length:
        return b""
    scale = UNIT / length
    rounded, fits = _rounded(parts, scale)
    if not fits:  # one part is nearly all of it
        rounded, _ = _rounded(parts, min(scale, 127 / max(max(parts), -min(parts))))
    return rounded


def _rounded(parts: Sequence[int], scale: float) -> tuple[Vector, bool]:
    """The parts times `scale` as signed bytes, and whether all are surely less than 127. It is most of an add."""
    numbers = array("d", [scale * part + _ROUNDER for part in parts]).tobytes()  # without a call for each
    low = numbers[_LOW::8]
    fits = numbers[_HIGH::8].count(0) == len(low) and not (low.count(0) + low.count(1) + low.count(255))
    return low.translate(_BIASED), fits


@lru_cache(maxsize=16384)  # at most 12 MB
def _rows_of(word: str) -> tuple[int, ...]:
    """The rows that stand for a word, each as one integer of sixteen-bit lanes: the even bytes, then the odd ones."""
    table = _table()
    packed = (table.row(known) for known in spelled(word, table.__contains__))
    return tuple(row & _LANES | (row >> 8 & _LANES) << 8 * SIZE for row in packed)


_ENDINGS = (
    *(("ies", "y"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", ""), ("ed", "e"), ("ing", ""), ("ing", "e")),
    *(("ly", ""), ("er", ""), ("er", "e"), ("est", ""), ("ness", ""), ("less", "")),
)


def spelled(word: str, known: Callable[[str], bool]) -> Sequence[str]:
    """The entries that stand for `word`: itself, its number class, another form of it, or the two words in it."""
    if known(word):
        return (word,)
    if word.isdigit():
        return (number_class(word),)
    if not word.isascii() or len(word) < 3:
        return ()
    other = next((form for form in _forms(word) if known(form)), None)
    return (other,) if other else _halves(word, known)


def number_class(digits: str) -> str:
    """Numbers are distinguished by words in the index; to their meaning only the kind matters: a year, or how large."""
    return "#year" if len(digits) == 4 and digits[:2] in ("19", "20") else f"#{min(len(digits), 5)}"


def _forms(word: str) -> Iterator[str]:
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) >= len(ending) + 2:
            start = word[: -len(ending)]
            yield start + instead
            if not instead and len(start) > 3 and start[-1] == start[-2]:
                yield start[:-1]  # stopped, running


def _halves(word: str, known: Callable[[str], bool]) -> Sequence[str]:
    for at in range(len(word) - 3, 2, -1):
        if known(word[:at]) and known(word[at:]):
            return word[:at], word[at:]
    return ()


class Table:
    """Rows by word. A row is found by the checksum of its word; the words themselves are not stored."""

    def __init__(self, buffer: bytes | mmap.mmap) -> None:
        start = len(_MAGIC)
        if buffer[:start] != _MAGIC:
            raise ValueError("not a table of word vectors of this version")
        count = int.from_bytes(buffer[start : start + 4], "little")
        self._buffer = buffer
        self._first = start + 4 + 4 * count
        self._sums = _numbers("I", buffer[start + 4 : self._first])

    def __len__(self) -> int:
        return len(self._sums)

    def __contains__(self, word: str) -> bool:
        return self._find(word) is not None

    def row(self, word: str) -> int:
        """The row of a word that is in the table, as one integer of biased bytes."""
        at = self._find(word)
        if at is None:
            raise KeyError(word)
        start = self._first + SIZE * at
        return int.from_bytes(self._buffer[start : start + SIZE], "little")

    def _find(self, word: str) -> int | None:
        wanted = checksum(word)
        at = bisect_left(self._sums, wanted)
        return at if at < len(self._sums) and self._sums[at] == wanted else None


def checksum(word: str) -> int:
    """The key of a word: forty thousand words have forty thousand of them, and another word has one in 1e5."""
    return zlib.crc32(word.encode())


def packed(rows: Iterable[tuple[str, bytes]]) -> bytes:
    """The table as a file: words with their rows of signed bytes, each `SIZE` long."""
    ordered = sorted((checksum(word), row) for word, row in rows)
    sums = array("I", [key for key, _ in ordered])
    if sys.byteorder == "big":
        sums.byteswap()
    head = _MAGIC + len(sums).to_bytes(4, "little") + sums.tobytes()
    return head + b"".join(row.translate(_BIASED) for _, row in ordered)


def _numbers(kind: str, packed: bytes) -> array[int]:
    numbers = array(kind, packed)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


@lru_cache(maxsize=1)
def _table() -> Table:
    file = resources.files("kronmem.engine").joinpath("words.table")
    try:
        with open(str(file), "rb") as opened:  # where the package lies in a folder, as nearly always: map it
            return Table(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError:
        return Table(file.read_bytes())
