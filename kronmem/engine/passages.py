"""Cut a text into passages of about sixty words, as spans of the text. Pure.

A memory is found by its best passage: in a reply of three hundred words, the one sentence that answers would drown.
The spans lie in the index: change them and every database has to be indexed anew.
"""

from __future__ import annotations

import re
from functools import lru_cache

WORDS = 60
"""A passage closes before the sentence that would take it past this: long enough for an answer and its subject."""
OVERLAP = 12
"""A sentence longer than a passage is cut into windows that share so many words, so that no phrase is torn."""
STUB = 12
"""A last passage shorter than this joins the one before it: a parting "Let me know!" is no passage."""

Span = tuple[int, int]

# A word, or two characters of a script without spaces (about the length of a word there).
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = rf"[{_UNSPACED}]{{1,2}}|[^\s{_UNSPACED}]+"
_ASCII_WORD = re.compile(r"\S+")
_SENTENCE_END = re.compile("[.!?\u2026]+[\"')\\]\u201d\u2019]*(?=\\s)|[\u3002\uff01\uff1f]+[\u300d\u300f]?|\n+")


def split(text: str) -> list[Span]:
    """The passages of `text` in order, as (start, end); a short text is one passage, a blank one none."""
    if len(text) <= WORDS * 2:  # cannot hold more than sixty words of any script
        return _trimmed(text, 0, len(text))
    words = [match.span() for match in (_ASCII_WORD if text.isascii() else _word()).finditer(text)]
    if len(words) <= WORDS + STUB:
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
    found: list[Span] = []
    first = at = 0
    for match in _SENTENCE_END.finditer(text):
        while at < len(words) and words[at][0] < match.end():
            at += 1
        if at > first:
            found.append((first, at))
            first = at
    return [*found, (first, len(words))] if first < len(words) else found


def _windows(first: int, last: int) -> list[Span]:
    """A sentence as it is, or cut into overlapping windows when it is longer than a passage."""
    if last - first <= WORDS + STUB:
        return [(first, last)]
    step = WORDS - OVERLAP
    return [(start, min(start + WORDS, last)) for start in range(first, last - OVERLAP, step)]


def _packed(sentences: list[Span]) -> list[Span]:
    """Sentences put together while they fit."""
    passages: list[Span] = []
    for first, last in sentences:
        if passages and last - passages[-1][0] <= WORDS:
            passages[-1] = (passages[-1][0], last)
        else:
            passages.append((first, last))
    if len(passages) > 1 and passages[-1][1] - passages[-1][0] < STUB:
        _, last = passages.pop()
        passages[-1] = (passages[-1][0], last)
    return passages
