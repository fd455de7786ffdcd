"""Numbers that every client computes alike: the key of a space and the keys of advisory locks. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

SpaceKey = Callable[[str, str], int]
"""Owner and name of a space to its key; a test may pass in one that collides."""


def lock_key(*words: str) -> int:
    """The number of an advisory lock."""
    return _number("\0".join(("kronmem", *words)))


def space_key(owner: str, name: str) -> int:
    """The key of a space. Neither an owner nor a name contains a NUL, so no two pairs are the same text."""
    return _number(f"{owner}\0{name}")


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)
