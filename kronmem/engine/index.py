"""The index of a memory: the terms and the vector of each of its passages, and the integer that names a passage. Pure.

`place = number << 12 | passage << 2 | kind`: the memory's number in its space, the passage within the memory, and who
said it. A posting and a vector are stored under their place, so that a recall weighs passages without reading rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from kronmem.engine import passages, terms, word_vectors
from kronmem.engine.store import PLACE_BITS

KIND_BITS = 2
"""For the four kinds of `SPEAKER`."""
MAX_PASSAGES = 1 << PLACE_BITS - KIND_BITS
"""Passages beyond the 1024th (about 60,000 words) are not indexed."""
QUESTION_WORDS = 12
"""A longer text that ends with a question mark tells something too: "I moved to Porto, can you find me a gym?"."""

QUESTION = 1
REPLY = 2
"""The bits of a kind."""
_REPLYING = frozenset({"assistant", "tool"})
_ENDED_BEFORE = re.compile(r"[.!]\s|[。！]")


@dataclass(frozen=True)
class Entry:
    """One passage of a memory as it lies in the index; `vector` is empty if no word of it is known."""

    passage: int
    kind: int
    terms: Mapping[str, int]
    length: int
    vector: word_vectors.Vector


def entries(content: str, role: str | None, tags: Sequence[str], memory_type: str) -> Iterator[Entry]:
    """The passages of a memory. The words of its tags and type are found as if the first passage said them too."""
    said = kind(role, content)
    filed = _filed(tags, memory_type)
    for passage, (start, end) in enumerate(islice(passages.split(content), MAX_PASSAGES)):
        words = list(terms.tokens(content[start:end]))
        counts, length = _counts(words, () if passage else filed)
        yield Entry(passage, said, counts, length, word_vectors.vector_of(words))


def counted(content: str, tags: Sequence[str], memory_type: str) -> Iterator[tuple[Mapping[str, int], int]]:
    """Of each passage, how often each term is found in it, and how many terms it has."""
    filed = _filed(tags, memory_type)
    for passage, (start, end) in enumerate(islice(passages.split(content), MAX_PASSAGES)):
        yield _counts(list(terms.tokens(content[start:end])), () if passage else filed)


def _filed(tags: Sequence[str], memory_type: str) -> Sequence[str]:
    """The terms of tags and type. The type that every memory has by default says nothing about this one."""
    filed = tags if memory_type == "fact" else (memory_type, *tags)
    return terms.terms(" ".join(filed)) if filed else ()


def _counts(words: Sequence[str], filed: Sequence[str]) -> tuple[Mapping[str, int], int]:
    counts = Counter(terms.stems(words))
    length = sum(counts.values())
    return Counter(dict.fromkeys(filed, 1)) | counts if filed else counts, length


def kind(role: str | None, content: str) -> int:
    """Who said it, and whether it only asks: `REPLY` for an assistant or a tool, `QUESTION` for a bare question."""
    return (REPLY if role in _REPLYING else 0) | (QUESTION if _only_asks(content) else 0)


def _only_asks(content: str) -> bool:
    text = content.rstrip()
    if not text.endswith(("?", "？")) or len(text) > 40 * QUESTION_WORDS:
        return False
    return len(text.split()) <= QUESTION_WORDS and not _ENDED_BEFORE.search(text)


def place(number: int, passage: int, kind: int) -> int:
    """The integer that names a passage."""
    return number << PLACE_BITS | passage << KIND_BITS | kind


def number_of(place: int) -> int:
    """The memory that a passage belongs to."""
    return place >> PLACE_BITS


def vector_at(vectors: bytes, place: int) -> word_vectors.Vector:
    """The vector of a passage among those of its memory; empty if it has none."""
    start = (place >> KIND_BITS & (MAX_PASSAGES - 1)) * word_vectors.SIZE
    found = vectors[start : start + word_vectors.SIZE] if len(vectors) > word_vectors.SIZE or start else vectors
    return found if any(found) else b""


def excerpt(content: str, place: int) -> str:
    """The text of a passage; the whole text if it has been changed since."""
    spans = passages.split(content)
    passage = place >> KIND_BITS & (MAX_PASSAGES - 1)
    start, end = spans[passage] if passage < len(spans) else (0, len(content))
    return content[start:end]
