"""The index of a memory: its passages, the terms and the vector of each, and the integer that names a passage. Pure.

`place = number << 12 | passage << 2 | kind`: the memory's number in its space, the passage within the memory, and the
speaker. A posting and a vector are stored under their place, so that a recall weighs passages without reading rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from kronmem.engine import terms, word_vectors
from kronmem.engine.store import PLACE_BITS

KIND_BITS = 2
"""For the four kinds of `SPEAKER`."""
MAX_PASSAGES = 1 << PLACE_BITS - KIND_BITS
"""Passages beyond the 1024th (about 60,000 words) are not indexed."""
QUESTION_WORDS = 12
"""A longer text that ends with a question mark states something too: "I moved to Porto, can you find me a gym?"."""

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
    """The passages of a memory. The words of its tags and type are found as if the first passage held them too."""
    speaker = kind(role, content)
    filed = _filed(tags, memory_type)
    for passage, (start, end) in enumerate(islice(split_passages(content), MAX_PASSAGES)):
        words = list(terms.tokens(content[start:end]))
        counts, length = _counts(words, () if passage else filed)
        yield Entry(passage, speaker, counts, length, word_vectors.vector_of(words))


def counted(content: str, tags: Sequence[str], memory_type: str) -> Iterator[tuple[Mapping[str, int], int]]:
    """Of each passage, how often each term is found in it, and how many terms it has."""
    filed = _filed(tags, memory_type)
    for passage, (start, end) in enumerate(islice(split_passages(content), MAX_PASSAGES)):
        yield _counts(list(terms.tokens(content[start:end])), () if passage else filed)


def _filed(tags: Sequence[str], memory_type: str) -> Sequence[str]:
    """The terms of tags and type. The type that every memory has by default is none."""
    filed = tags if memory_type == "fact" else (memory_type, *tags)
    return terms.terms(" ".join(filed)) if filed else ()


def _counts(words: Sequence[str], filed: Sequence[str]) -> tuple[Mapping[str, int], int]:
    counts = Counter(terms.stems(words))
    length = sum(counts.values())
    return Counter(dict.fromkeys(filed, 1)) | counts if filed else counts, length


def kind(role: str | None, content: str) -> int:
    """The speaker, and whether it only asks: `REPLY` for an assistant or a tool, `QUESTION` for a bare question."""
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
    vector = vectors[start : start + word_vectors.SIZE] if len(vectors) > word_vectors.SIZE or start else vectors
    return vector if any(vector) else b""


def excerpt(content: str, place: int) -> str:
    """The text of a passage; the whole text if it has been changed since."""
    spans = split_passages(content)
    passage = place >> KIND_BITS & (MAX_PASSAGES - 1)
    start, end = spans[passage] if passage < len(spans) else (0, len(content))
    return content[start:end]


# Cut a text into passages of about sixty words, as spans of the text. Pure.
#
# A memory is found by its best passage: in a reply of three hundred words, the one sentence that answers would drown.
# The spans lie in the index: change them and every database has to be indexed again.

PASSAGE_WORDS = 60
"""A passage closes before the sentence that would take it past this: long enough for an answer and its subject."""
PASSAGE_OVERLAP = 12
"""A sentence longer than a passage is cut into windows that share so many words, so that no phrase is torn."""
PASSAGE_STUB = 12
"""A last passage shorter than this joins the one before it: a parting "Let me know!" is no passage."""

Span = tuple[int, int]

# A word, or two characters of a script without spaces (about the length of a word there).
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = rf"[{_UNSPACED}]{{1,2}}|[^\s{_UNSPACED}]+"
_ASCII_WORD = re.compile(r"\S+")
_SENTENCE_END = re.compile("[.!?\u2026]+[\"')\\]\u201d\u2019]*(?=\\s)|[\u3002\uff01\uff1f]+[\u300d\u300f]?|\n+")


def split_passages(text: str) -> list[Span]:
    """The passages of `text` in order, as (start, end); a short text is one passage, a blank one none."""
    if len(text) <= PASSAGE_WORDS * 2:  # cannot hold more than sixty words of any script
        return _trimmed(text, 0, len(text))
    words = [match.span() for match in (_ASCII_WORD if text.isascii() else _word()).finditer(text)]
    if len(words) <= PASSAGE_WORDS + PASSAGE_STUB:
        return _trimmed(text, 0, len(text))
    counts = [window for first, last in _sentences(text, words) for window in _windows(first, last)]
    return [(words[first][0], words[last - 1][1]) for first, last in _packed(counts)]


@lru_cache(maxsize=1)
def _word() -> re.Pattern[str]:
    """Takes milliseconds to compile: at the first text that needs it."""
    return re.compile(_WORD)


def _trimmed(text: str, start: int, end: int) -> list[Span]:
    start += len(text) - len(text.lstrip())
    return [(start, len(text.rstrip()))] if start < end else []


def _sentences(text: str, words: list[Span]) -> list[Span]:
    """The sentences as ranges of word numbers."""
    spans: list[Span] = []
    first = at = 0
    for match in _SENTENCE_END.finditer(text):
        while at < len(words) and words[at][0] < match.end():
            at += 1
        if at > first:
            spans.append((first, at))
            first = at
    return [*spans, (first, len(words))] if first < len(words) else spans


def _windows(first: int, last: int) -> list[Span]:
    """A sentence as it is, or cut into overlapping windows when it is longer than a passage."""
    if last - first <= PASSAGE_WORDS + PASSAGE_STUB:
        return [(first, last)]
    step = PASSAGE_WORDS - PASSAGE_OVERLAP
    return [(start, min(start + PASSAGE_WORDS, last)) for start in range(first, last - PASSAGE_OVERLAP, step)]


def _packed(sentences: list[Span]) -> list[Span]:
    """Sentences put together while they fit."""
    passages: list[Span] = []
    for first, last in sentences:
        if passages and last - passages[-1][0] <= PASSAGE_WORDS:
            passages[-1] = (passages[-1][0], last)
        else:
            passages.append((first, last))
    if len(passages) > 1 and passages[-1][1] - passages[-1][0] < PASSAGE_STUB:
        _, last = passages.pop()
        passages[-1] = (passages[-1][0], last)
    return passages
