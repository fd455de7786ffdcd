"""The injected block: the question of a turn, and recalled memories as one fenced text for that turn of a model."""

from __future__ import annotations

from collections.abc import Sequence

from kronmem.api.rules import MAX_HITS
from kronmem.models import Hit
from kronmem.packs.message_log import UNSTORABLE
from kronmem.text.fence import fence, is_fenced, render_hits, without_fences
from kronmem.text.fence import named as fence_named


def render_block(hits: Sequence[Hit], source: str, *, named: bool = False) -> str:
    """Write hits as one fenced block of bounded size; "" without hits. With `named` each names its agent."""
    return render_hits([fence_named(hit) for hit in hits] if named else hits, source=source)


STANDING_PLACES = 5
"""So many more hits are asked for than a block shows: as many as there may be standing notes."""
FAINT, SHARE = 0.15, 0.25
"""A block stands in a prompt unasked: without a hit at least that similar it shows the standing notes alone, and what
has less than this share of the best one's similarity is left out."""


def places(limit: int) -> int:
    """How many hits to ask for, so that `limit` of them can be others than standing notes."""
    return min(limit + STANDING_PLACES, MAX_HITS)


def fitting(hits: Sequence[Hit], limit: int, *, weak: bool = False) -> list[Hit]:
    """The hits that a block shows: the standing notes, which take one place together, and the best of the others.

    `weak` keeps those that are far behind the best one, for callers with a threshold of their own. What is listed
    because its time was asked for has no similarity, and stays.
    """
    standing = [hit for hit in hits if hit.standing]
    others = [hit for hit in hits if not hit.standing]
    found = [hit for hit in others if hit.similarity][: max(1, limit - bool(standing))]
    best = max((hit.similarity for hit in found), default=0.0)
    least = 0.0 if weak else SHARE * best if best >= FAINT else 1.0
    shown = {hit.memory.id for hit in found if hit.similarity >= least}
    return [*standing, *(hit for hit in others if not hit.similarity or hit.memory.id in shown)]


def fence_context(text: str, source: str) -> str:
    """Fence a context that a service wrote, unless it is fenced already."""
    return text if is_fenced(text) else fence(text, source=source)


def is_block(text: str) -> bool:
    """Tell whether the text is an injected block."""
    return is_fenced(text)


def without_blocks(text: str) -> str:
    """Remove every complete block; other text stays as it was."""
    return without_fences(text)


def clean_words(text: str) -> str:
    """The words of a message without injected blocks, and without NUL and lone surrogates, which no store takes."""
    return UNSTORABLE.sub("", without_blocks(text)).strip()


# The question that a turn asks the memory: the words of the user, shortened to a search query. Pure.

MAX_QUESTION_CHARS = 2000
"""About 500 tokens: the usual embedding models cut a text there."""
_GAP = " … "


def as_question(words: str) -> str:
    """Shorten words to a query. A long text is asked by its beginning and its end, where people put their request."""
    half = (MAX_QUESTION_CHARS - len(_GAP)) // 2
    return words if len(words) <= MAX_QUESTION_CHARS else f"{words[:half]}{_GAP}{words[-half:]}"
