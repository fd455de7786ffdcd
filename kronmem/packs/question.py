"""The question that a turn asks the memory: the words of the user, shortened to a search query. Pure."""

from __future__ import annotations

MAX_QUESTION_CHARS = 2000
"""About 500 tokens: the usual embedding models cut a text there."""
_GAP = " … "


def as_question(words: str) -> str:
    """Shorten words to a query. A long text is asked by its beginning and its end, where people put their request."""
    half = (MAX_QUESTION_CHARS - len(_GAP)) // 2
    return words if len(words) <= MAX_QUESTION_CHARS else f"{words[:half]}{_GAP}{words[-half:]}"
