"""Near duplicates: of memories that say the same but for order, case, punctuation and filler, one is a hit. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from kronmem.engine import terms
from kronmem.engine.scoring import Score
from kronmem.engine.store import Row

# Words that a repeat adds or drops without printing anything else. No negation is among them, and nobody's name.
_FILLER = frozenset(
    (
        *("a", "an", "the", "so", "well", "oh", "um", "uh", "hm", "please", "just", "really", "very", "quite"),
        *("actually", "also", "too", "again", "anyway", "btw", "ok", "okay", "yes", "hi", "hey", "hello", "thanks"),
    )
)


def distinct(found: Iterable[tuple[Score, Row]], limit: int) -> list[tuple[Score, Row]]:
    """The first `limit` that say something else each: of near duplicates the pinned or newest one stands for all.

    Those score alike, so none is looked for beyond twice the limit once there are enough.
    """
    kept: dict[tuple[str, ...], tuple[Score, Row]] = {}
    for seen, (score, row) in enumerate(found, start=1):
        key = statement(row.content)
        if key in kept:
            kept[key] = max(kept[key], (score, row), key=lambda one: (one[1].pinned, one[1].number))
        elif len(kept) < limit:
            kept[key] = (score, row)
        if len(kept) == limit and seen >= 2 * limit:
            break
    return sorted(kept.values(), key=lambda one: (one[0].similarity, one[0].number), reverse=True)


def statement(content: str) -> tuple[str, ...]:
    """The words of a text but for order, case, punctuation and filler."""
    words = sorted(terms.tokens(content))
    return tuple(word for word in words if word not in _FILLER) or tuple(words)
