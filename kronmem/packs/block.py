"""The injected block: the question of a turn, and recalled memories as one fenced text for that turn of a model."""

from __future__ import annotations

from collections.abc import Sequence

from kronmem.models import Hit
from kronmem.packs.message_log import UNSTORABLE
from kronmem.text.fence import fence, is_fenced, render_hits, without_fences
from kronmem.text.fence import named as fence_named


def render_block(hits: Sequence[Hit], source: str, *, named: bool = False) -> str:
    """Write hits as one fenced block of bounded size; "" without hits. With `named` each names its agent."""
    return render_hits([fence_named(hit) for hit in hits] if named else hits, source=source)


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
