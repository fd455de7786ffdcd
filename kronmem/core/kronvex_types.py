"""Types of memories at the vendor's own server: those it knows, and those that stand in for the others. Pure."""

from __future__ import annotations

# The server keeps these as they are. It re-classifies an unpinned "episodic" by a model of its own,
# and refuses every other name, so those travel in the metadata.
_KNOWN = frozenset({"semantic", "procedural", "fact", "preference", "context"})
_STAND_IN = {"decision": "fact", "episodic": "episodic"}


def is_known(memory_type: str) -> bool:
    """Does the server store this type as it is?"""
    return memory_type in _KNOWN


def is_kept(memory_type: str) -> bool:
    """Does the server know this type, once a memory is stored?"""
    return memory_type in _KNOWN or memory_type == "episodic"


def stored_type(memory_type: str) -> str:
    """The type under which the server stores a memory of this one."""
    return memory_type if memory_type in _KNOWN else _STAND_IN.get(memory_type, "context")


def sent_type(memory_type: str | None) -> str | None:
    """The type to filter by at the server; None where its own names cannot tell: it re-classifies episodic ones."""
    return None if memory_type is None or memory_type == "episodic" else stored_type(memory_type)
