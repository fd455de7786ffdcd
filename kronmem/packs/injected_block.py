"""The injected block: recalled memories as one fenced text for one turn of a model."""

from __future__ import annotations

from collections.abc import Sequence

from kronmem.models import Hit
from kronmem.packs.storable_json import UNSTORABLE
from kronmem.text.fence import fence, is_fenced, render, without_fences

MAX_BLOCK_CHARS = 12_000
"""Five memories, the default limit, at the 2,000 characters that one may take, with their labels: 3,000 tokens."""


def render_block(hits: Sequence[Hit], source: str, *, named: bool = False) -> str:
    """Write hits as one fenced block of bounded size; "" without hits. With `named` each tells its agent."""
    return render([_named(hit) for hit in hits] if named else hits, source=source, max_chars=MAX_BLOCK_CHARS)


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


def _named(hit: Hit) -> Hit:
    memory = hit.memory
    speaker = memory.metadata.get("speaker")
    name = f"{speaker} of {memory.agent_id}" if isinstance(speaker, str) and speaker.strip() else memory.agent_id
    return hit.model_copy(
        update={"memory": memory.model_copy(update={"metadata": {**memory.metadata, "speaker": name}})}
    )
