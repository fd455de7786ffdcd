"""New rows that wait to be sent to PostgreSQL together: a round trip for each would be most of the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from kronmem.engine.columns import changing
from kronmem.engine.postgres.transaction import Transaction, Value
from kronmem.engine.postings import LENGTH_BITS, digest, pack_parts
from kronmem.engine.store import Indexed, Receipt, Row

Waiting = tuple[str, int, int, int, int, bytes]
"""A posting: term, space, number of the memory, how many times among how many terms, and in which passages."""


@dataclass
class Batch:
    """Rows not yet sent, and the names under which they will be found."""

    memories: list[Sequence[Value]] = field(default_factory=lambda: list[Sequence[Value]]())
    postings: list[Waiting] = field(default_factory=lambda: list[Waiting]())
    meanings: list[Sequence[Value]] = field(default_factory=lambda: list[Sequence[Value]]())
    receipts: list[Sequence[Value]] = field(default_factory=lambda: list[Sequence[Value]]())
    names: set[object] = field(default_factory=lambda: set[object]())

    def __bool__(self) -> bool:
        """Is there anything to send?"""
        return bool(self.memories or self.postings or self.meanings or self.receipts)

    def add_memory(self, space: int, row: Row, passages: int) -> None:
        """Let a memory wait."""
        values = (space, row.number, row.id, row.created_at, row.access_count, row.role, row.superseded_by, passages)
        self.memories.append((*values, *changing(row, row.said_at)))
        self.names |= {(space, row.id), (space, row.session_id, row.key), text_name(space, row)}

    def add_index(self, space: int, number: int, indexed: Indexed) -> None:
        """Let the index entries of a memory wait."""
        for term, places in indexed.terms.items():
            kind, times, length, parts = pack_parts(places, indexed)
            # The kind shares a column: two bits beside a length that fits twenty.
            self.postings.append((term, space, number, times, kind << LENGTH_BITS | length, parts or b""))
        self.postings += [(label, space, number, 0, 0, b"") for label in indexed.labels]
        if indexed.codes:
            self.meanings.append((space, number, indexed.codes, indexed.vectors))

    def add_receipt(self, space: int, client_id: str, receipt: Receipt, now: float) -> None:
        """Let a receipt wait."""
        self.receipts.append((space, client_id, receipt.memory_id, receipt.body, receipt.deduplicated, now))
        self.names.add((space, client_id, "receipt"))

    def _send_postings(self, session: Transaction) -> None:
        if not session.distributed:
            # In the order of the index: its pages fill up instead of being split in the middle.
            rows = sorted(self.postings, key=itemgetter(1, 0, 2))
            session.run(_POSTING, [list(column) for column in zip(*rows, strict=True)])
            return
        # Rows from a function are copied to their shard in a two-phase commit, which a node's failure leaves unfinished
        # for a minute; rows as values go there in the node's own transaction.
        for first in range(0, len(self.postings), _ROWS):
            rows = self.postings[first : first + _ROWS]
            session.run(f"{_POSTING_ROWS} {', '.join([_ROW] * len(rows))}", [value for row in rows for value in row])

    def send(self, session: Transaction) -> None:
        """Insert everything."""
        if self.memories:
            session.run_many(_MEMORY, self.memories)
        if self.postings:
            self._send_postings(session)
        if self.meanings:
            session.run_many(_MEANING, self.meanings)
        if self.receipts:
            session.run_many(_RECEIPT, self.receipts)


CHANGING = (
    *("content", "digest", "type", "session", "tags", "metadata", "expires", "pinned", "said", "updated"),
    "about",
)
_INSERTED = ("space", "number", "id", "created", "accessed", "role", "successor", "passages", *CHANGING)
_MEMORY = f"INSERT INTO kronmem.memories({', '.join(_INSERTED)}) VALUES ({', '.join(['%s'] * len(_INSERTED))})"
_POSTING = """INSERT INTO kronmem.postings(term, space, number, times, length, parts)
    SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bytea[])"""
_POSTING_ROWS = "INSERT INTO kronmem.postings(term, space, number, times, length, parts) VALUES"
_ROW = "(%s, %s, %s, %s, %s, %s)"
_ROWS = 500
"""Postings a statement: it may have 65,535 values."""
_MEANING = """INSERT INTO kronmem.meanings VALUES (%s, %s, %s, %s)
    ON CONFLICT(space, number) DO UPDATE SET codes = excluded.codes, vectors = excluded.vectors"""
_RECEIPT = """INSERT INTO kronmem.receipts(space, client, memory, body, deduplicated, at)
    VALUES (%s, %s, %s::uuid, %s, %s, %s) ON CONFLICT(space, client) DO UPDATE SET
    memory = excluded.memory, body = excluded.body, deduplicated = excluded.deduplicated, at = excluded.at"""


def text_name(space: int, row: Row) -> object:
    """The key under which a memory is found by its text."""
    return (space, row.session_id, row.key, digest(row.content))
