"""New rows that wait to be sent to PostgreSQL together: a round trip for each would be most of the work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from kronmem.engine.columns import CHANGING, changing
from kronmem.engine.postgres.inverted_index import add_blocks, rewrite
from kronmem.engine.postgres.posting_blocks import first_of, pack
from kronmem.engine.postgres.transaction import Transaction, Value
from kronmem.engine.postings import digest, posted
from kronmem.engine.store import Indexed, Receipt, Row


@dataclass
class Batch:
    """Rows not yet sent, and the names under which they will be found."""

    memories: list[Sequence[Value]] = field(default_factory=lambda: list[Sequence[Value]]())
    postings: dict[tuple[str, int, int], list[bytes]] = field(
        default_factory=lambda: defaultdict[tuple[str, int, int], list[bytes]](list)
    )
    """By term, space and first number: entries of new memories."""
    changes: dict[tuple[int, int], dict[str, dict[int, bytes]]] = field(
        default_factory=lambda: dict[tuple[int, int], dict[str, dict[int, bytes]]]()
    )
    """By space, first number, term and number: entries of older memories that have changed; none if they go."""
    unindexed: dict[int, set[int]] = field(default_factory=lambda: defaultdict[int, set[int]](set))
    """By space, the memories whose meanings go; before new ones come."""
    unembedded: dict[int, set[int]] = field(default_factory=lambda: defaultdict[int, set[int]](set))
    """By space, the memories whose text has changed or that go: a model's vector is of the text alone."""
    meanings: dict[tuple[int, int], Sequence[Value]] = field(
        default_factory=lambda: dict[tuple[int, int], Sequence[Value]]()
    )
    receipts: list[Sequence[Value]] = field(default_factory=lambda: list[Sequence[Value]]())
    names: set[object] = field(default_factory=lambda: set[object]())

    def __bool__(self) -> bool:
        """Is there anything to send?"""
        return bool(self.memories or self.postings or self.changes or self.unindexed or self.meanings or self.receipts)

    def add_memory(self, space: int, row: Row, passages: int) -> None:
        """Let a memory wait."""
        values = (space, row.number, row.id, row.created_at, row.access_count, row.role, row.superseded_by, passages)
        self.memories.append((*values, *changing(row, row.said_at)))
        self.names |= {(space, row.id), (space, row.session_id, row.key), text_name(space, row)}

    def add_index(self, space: int, number: int, indexed: Indexed) -> None:
        """Let the index entries of a new memory wait."""
        first = first_of(number, len(indexed.lengths))
        for term, entries in pack(number, indexed):
            self.postings[term, space, first].append(entries)
        self._add_meaning(space, number, indexed)

    def replace_index(self, space: int, old: Row, indexed: Indexed, *, reworded: bool) -> int:
        """Let the index entries of a changed memory wait; how many terms it had."""
        words = self._unindex(space, old)
        if reworded:
            self.unembedded[space].add(old.number)
        changed = self._changed(space, old.number, len(indexed.lengths))
        for term, entries in pack(old.number, indexed):
            changed.setdefault(term, {})[old.number] = entries
        self._add_meaning(space, old.number, indexed)
        return words

    def remove_index(self, space: int, row: Row) -> int:
        """Let the removal of a memory's index entries wait; how many terms it had."""
        self.unembedded[space].add(row.number)
        return self._unindex(space, row)

    def _unindex(self, space: int, row: Row) -> int:
        terms, words = posted(row)
        changed = self._changed(space, row.number, row.passages)
        for term in terms:
            changed.setdefault(term, {})[row.number] = b""
        self.unindexed[space].add(row.number)
        self.meanings.pop((space, row.number), None)
        return words

    def _changed(self, space: int, number: int, passages: int) -> dict[str, dict[int, bytes]]:
        return self.changes.setdefault((space, first_of(number, passages)), {})

    def _add_meaning(self, space: int, number: int, indexed: Indexed) -> None:
        if indexed.codes:
            self.meanings[space, number] = (space, number, indexed.codes, indexed.vectors)

    def add_receipt(self, space: int, client_id: str, receipt: Receipt, now: float) -> None:
        """Let a receipt wait."""
        self.receipts.append((space, client_id, receipt.memory_id, receipt.body, receipt.deduplicated, now))
        self.names.add((space, client_id, "receipt"))

    def send(self, session: Transaction) -> None:
        """Write everything."""
        if self.memories:
            session.run_many(_MEMORY, self.memories)
        if self.postings:
            waiting = self.postings.items()
            add_blocks(session, ((*at, len(entries), b"".join(reversed(entries))) for at, entries in waiting))
        for (space, first), changed in self.changes.items():
            rewrite(session, space, first, changed)
        for table, gone in (("meanings", self.unindexed), ("embeddings", self.unembedded)):
            for space, numbers in gone.items():
                session.run(
                    f"DELETE FROM kronmem.{table} WHERE space = %s AND number = ANY(%s)", (space, sorted(numbers))
                )
        if self.meanings:
            session.run_many(_MEANING, self.meanings.values())
        if self.receipts:
            session.run_many(_RECEIPT, self.receipts)


_INSERTED = ("space", "number", "id", "created", "accessed", "role", "successor", "passages", *CHANGING)
_MEMORY = f"INSERT INTO kronmem.memories({', '.join(_INSERTED)}) VALUES ({', '.join(['%s'] * len(_INSERTED))})"
_MEANING = """INSERT INTO kronmem.meanings VALUES (%s, %s, %s, %s)
    ON CONFLICT(space, number) DO UPDATE SET codes = excluded.codes, vectors = excluded.vectors"""
_RECEIPT = """INSERT INTO kronmem.receipts(space, client, memory, body, deduplicated, at)
    VALUES (%s, %s, %s::uuid, %s, %s, %s) ON CONFLICT(space, client) DO UPDATE SET
    memory = excluded.memory, body = excluded.body, deduplicated = excluded.deduplicated, at = excluded.at"""


def text_name(space: int, row: Row) -> object:
    """The key under which a memory is found by its text."""
    return (space, row.session_id, row.key, digest(row.content))
