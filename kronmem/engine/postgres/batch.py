"""New rows that wait to be sent to PostgreSQL together: a round trip for each would be most of the work."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from kronmem.engine.postgres.pool import Session, Value
from kronmem.engine.store import Receipt, Row

Posting = tuple[str, tuple[int, int, int, int]]
"""A term, and: space, number of the memory, how many times among how many terms."""


@dataclass
class Batch:
    """Rows not yet sent, and the names under which they will be found."""

    memories: list[Sequence[Value]] = field(default_factory=lambda: list[Sequence[Value]]())
    postings: list[Posting] = field(default_factory=lambda: list[Posting]())
    receipts: list[Sequence[Value]] = field(default_factory=lambda: list[Sequence[Value]]())
    names: set[object] = field(default_factory=lambda: set[object]())

    def __bool__(self) -> bool:
        """Is there anything to send?"""
        return bool(self.memories or self.postings or self.receipts)

    def add_memory(self, space: int, row: Row, digest: bytes) -> None:
        """Let a memory wait."""
        values: tuple[Value, ...] = (
            space,
            row.number,
            row.id,
            row.content,
            row.memory_type,
            row.session_id or "",
            json.dumps(row.tags) if row.tags else "[]",
            json.dumps(row.metadata) if row.metadata else "{}",
            row.created_at,
            row.expires_at,
            row.pinned,
            row.access_count,
            digest,
            space,
        )
        self.memories.append(values)
        self.names |= {(space, row.id), (space, row.session_id, digest)}

    def add_receipt(self, owner: str, name: str, client_id: str, receipt: Receipt, now: float) -> None:
        """Let a receipt wait."""
        self.receipts.append((owner, name, client_id, receipt.memory_id, receipt.body, receipt.deduplicated, now))
        self.names.add((owner, name, client_id))

    def send(self, session: Session) -> None:
        """Insert everything."""
        if self.memories:
            session.run_many(_MEMORY, self.memories)
        if self.postings:
            terms = [term for term, _ in self.postings]
            session.run(_POSTING, (terms, *([where[at] for _, where in self.postings] for at in range(4))))
        if self.receipts:
            session.run_many(_RECEIPT, self.receipts)


_MEMORY = """INSERT INTO kronmem.memory(space, number, id, content, type, session, tags, metadata, created, expires,
        pinned, accessed, digest, owner)
    VALUES (%s, %s, %s::uuid, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,
        (SELECT owner FROM kronmem.space WHERE id = %s))"""
_POSTING = """INSERT INTO kronmem.posting(term, space, number, times, length)
    SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])"""
_RECEIPT = """INSERT INTO kronmem.receipt(owner, name, client, memory, body, deduplicated, at)
    VALUES (%s, %s, %s, %s::uuid, %s, %s, %s) ON CONFLICT(owner, name, client) DO UPDATE SET
    memory = excluded.memory, body = excluded.body, deduplicated = excluded.deduplicated, at = excluded.at"""
