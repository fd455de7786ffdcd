"""The receipts of clients' ids: for how long they are kept, and what tells a repeat of a request. Pure."""

from __future__ import annotations

import hashlib
import hmac
import json

from kronmem.engine.store import NewRow

KEPT = 30 * 86400.0
"""Seconds for which a client's id is known: a machine that comes back within a month retries without duplicates."""
_encode = json.JSONEncoder(sort_keys=True).encode


def fingerprint(agent: str, draft: NewRow) -> bytes:
    """The hash that tells a repeat of a request from another memory under its id."""
    # Not the lifetime, and not when it was said: what waited in an outbox arrives with what is left of the one and
    # with the other, and is still the same memory.
    said: list[object] = [agent, draft.content, draft.memory_type, draft.session_id]
    said += [draft.tags, draft.metadata, draft.pinned]
    more = {"role": draft.role, "key": draft.key, "supersedes": draft.supersedes}
    if any(more.values()):  # else as before there were any of these: receipts outlive an upgrade
        said.append(more)
    return hashlib.sha256(_encode(said).encode()).digest()


def erased_digest(salt: bytes, owner: str, name: str, client_id: str) -> bytes:
    """The trace of an erased id: enough to recognise it, too little to learn it or its agent."""
    return hmac.new(salt, "\0".join((owner, name, client_id)).encode(), hashlib.sha256).digest()[:16]
