"""AutoGen's MemoryContent as kronmem stores it, and back. Pure; the caller's objects are never changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from autogen_core.memory import MemoryContent, MemoryMimeType
from pydantic import JsonValue

from kronmem import Hit, InvalidInputError

TEXT, MARKDOWN, JSON = "text/plain", "text/markdown", "application/json"
MIME_TYPE = "mime_type"
"""The metadata key that keeps the type of content other than plain text."""
OURS = "kronmem"
"""The metadata key of recalled content that holds id, agent, type and scores. No user's key is called so."""


def as_text(content: MemoryContent) -> str:
    """The text to store or to ask: text as it is, JSON as text."""
    inner: object = content.content
    mime_type = _mime_type(content)
    if mime_type == JSON:
        return _json_text(inner)
    if mime_type not in (TEXT, MARKDOWN):
        raise InvalidInputError(f"memory keeps {TEXT}, {MARKDOWN} and {JSON}, not {mime_type}")
    if not isinstance(inner, str):
        raise InvalidInputError(f"{mime_type} must be a string, not {type(inner).__name__}")
    return inner


def as_metadata(content: MemoryContent) -> dict[str, JsonValue]:
    """The metadata to store; keys that an earlier answer added are left out."""
    given = cast("Mapping[str, JsonValue]", content.metadata or {})
    kept = {name: value for name, value in given.items() if name not in (OURS, MIME_TYPE)}
    mime_type = _mime_type(content)
    return kept if mime_type == TEXT else {**kept, MIME_TYPE: mime_type}


def as_content(hit: Hit) -> MemoryContent:
    """A recalled memory as AutoGen knows it, with its own metadata and ours under "kronmem"."""
    memory = hit.memory
    theirs = {name: value for name, value in memory.metadata.items() if name not in (OURS, MIME_TYPE)}
    mime_type = memory.metadata.get(MIME_TYPE)
    content = _object(memory.content) if mime_type == JSON else None
    ours: dict[str, JsonValue] = {
        "id": memory.id,
        "agent_id": memory.agent_id,
        "memory_type": memory.memory_type,
        "similarity": hit.similarity,
        "confidence": hit.confidence,
        "created_at": memory.created_at.isoformat() if memory.created_at else None,
    }
    return MemoryContent(
        content=memory.content if content is None else content,
        mime_type=mime_type if isinstance(mime_type, str) else MemoryMimeType.TEXT,
        metadata={**theirs, OURS: ours},
    )


def _mime_type(content: MemoryContent) -> str:
    # Compared by value: after a dump and a load it is a plain string, not the enum's member.
    given = content.mime_type
    return (given.value if isinstance(given, MemoryMimeType) else given).partition(";")[0].strip().lower()


def _json_text(inner: object) -> str:
    try:
        if isinstance(inner, str):
            json.loads(inner)
            return inner
        if isinstance(inner, dict):
            return json.dumps(inner, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInputError("the content is not JSON") from None
    raise InvalidInputError(f"JSON content must be an object or a string, not {type(inner).__name__}")


def _object(text: str) -> dict[str, JsonValue] | None:
    """The object in the text; None where it is other JSON, or no longer JSON after the user's redaction."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, JsonValue]", found) if isinstance(found, dict) else None
