"""The injected block: recalled memories as one fenced text for one turn of a model."""

from __future__ import annotations

from collections.abc import Sequence

from kronmem.models import Hit
from kronmem.packs.storable_json import UNSTORABLE
from kronmem.text.fence import fence, is_fenced, render_hits, without_fences
from kronmem.text.fence import named as fence_named


def render_block(hits: Sequence[Hit], source: str, *, named: bool = False) -> str:
    """Write hits as one fenced block of bounded size; "" without hits. With `named` each tells its agent."""
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
