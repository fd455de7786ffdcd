"""The PostgreSQL store beside SQLite's and beside an earlier commit's: speed, room, and what a transaction costs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_SERVER = ("shared_buffers=1GB", "max_wal_size=4GB")


def report(sizes_: Sequence[int], commit: str | None, copied: int | None = None) -> Iterator[str]:
    """Everything at each size, on a server of its own; from `copied` memories on, agents are copied."""
    from tests.benchmarks.baseline import against
    from tests.benchmarks.engine_scale import side_by_side
    from tests.services.postgres import some_server

    with tempfile.TemporaryDirectory() as folder, some_server(_SERVER) as url:
        if commit:
            yield from against(commit, sizes_, url)
            return
        yield from side_by_side(Path(folder), url, [size for size in sizes_ if size <= (copied or size)])
        yield from grow_by_copies(url, [size for size in sizes_ if copied and size > copied], sizes_[0])
        yield "room, bytes a memory: " + ", ".join(
            f"{name} {size / sizes_[-1]:.0f}" for name, size in sizes(url).items() if size >= sizes_[-1]
        )
        yield transaction_cost(url)


def grow_by_copies(url: str, sizes_: Sequence[int], smallest: int) -> Iterator[str]:
    """Copy the agents within the database up to each size, and measure it in turns with one of the smallest size."""
    from kronmem.engine.engine import Engine
    from kronmem.engine.postgres.store import PostgresStore
    from tests.benchmarks.engine_scale import PARTITION, Language, asker, fill_all, single_writes, timed
    from tests.services.postgres import new_database

    for size in sizes_:
        copy_agents(url, size // PARTITION)
        stored = settled_size(url)
        with new_database(url, "kronmem_small") as other:
            small, large = Engine(PostgresStore(other)), Engine(PostgresStore(url))
            fill_all({"PostgreSQL": small}, Language(smallest), 0, smallest)
            settled_size(other)
            asked = {small: smallest // PARTITION, large: size // PARTITION}
            rounds = [
                {engine: timed(asker(engine), parts, Language(r), 200) for engine, parts in asked.items()}
                for r in range(5)
            ]
            p50, p95 = min(one[large] for one in rounds[1:])
            growth = median(one[large][0] / one[small][0] for one in rounds[1:])
            yield f"{size:,} memories in partitions of {PARTITION}, copied"
            yield (
                f"  PostgreSQL recall p50 {p50:6.2f} ms  p95 {p95:6.2f} ms  ({growth:.2f}x of {smallest:,} in turns)  "
                f"single durable adds/s {single_writes(large, 300, size + 1):,.0f}  {stored / size:,.0f} bytes a memory"
            )
            small.close()
            large.close()


def copy_agents(url: str, agents: int) -> None:
    """Copy the agents that are there, under new names and ids, until there are so many."""
    import psycopg

    from kronmem.engine.postgres.schema import space_key

    with psycopg.connect(url, autocommit=True) as connection:
        there = connection.execute("SELECT id FROM kronmem.spaces WHERE name LIKE 'agent-%' ORDER BY id").fetchall()
        for first in range(len(there), agents, len(there)):
            with connection.transaction():
                connection.execute("CREATE TEMPORARY TABLE copied(old bigint, new bigint, name text) ON COMMIT DROP")
                with connection.cursor() as cursor:
                    names = [f"agent-{first + n}" for n in range(min(len(there), agents - first))]
                    rows = [(old[0], space_key("", name), name) for old, name in zip(there, names, strict=False)]
                    cursor.executemany("INSERT INTO copied VALUES (%s, %s, %s)", rows)
                for sql in _COPY:
                    connection.execute(sql)


_COPY = (
    b"""INSERT INTO kronmem.spaces SELECT new, owner, copied.name, gone, description, metadata, created, count, passages,
        words, last, generation, revised FROM copied JOIN kronmem.spaces ON id = old""",
    b"""INSERT INTO kronmem.memories(space, created, expires, said, updated, id, number, accessed, passages, pinned,
        digest, session, about, role, type, tags, metadata, content) SELECT new, created, expires, said, updated,
        gen_random_uuid(), number, accessed, passages, pinned, digest, session, about, role, type, tags, metadata,
        content FROM copied JOIN kronmem.memories ON space = old ORDER BY new, number""",
    b"""INSERT INTO kronmem.postings(space, first, memories, term, packed) SELECT new, first, memories, term, packed
        FROM copied JOIN kronmem.postings ON space = old ORDER BY new, term, first""",
    b"""INSERT INTO kronmem.meanings SELECT new, number, codes, vectors FROM copied JOIN kronmem.meanings ON space = old
        ORDER BY new, number""",
)


def transaction_cost(url: str, rounds: int = 400) -> str:
    """An empty transaction with every setting inside, as a pooler needs it, beside one with a timeout alone."""
    import psycopg

    from kronmem.engine.postgres.pool import PostgresPool

    spent: dict[str, list[float]] = {"inside": [], "alone": []}
    pool = PostgresPool(url, 1)
    with psycopg.connect(url, autocommit=True) as plain:
        for _ in range(rounds):
            began = time.perf_counter()
            with pool.transaction(_BEGIN, 10.0):
                pass
            middle = time.perf_counter()
            plain.execute(f"{_BEGIN}; SET LOCAL statement_timeout = 10000".encode(), prepare=False)
            plain.execute(b"COMMIT", prepare=False)
            spent["inside"].append(middle - began)
            spent["alone"].append(time.perf_counter() - middle)
    pool.close()
    inside, alone = (1e6 * median(spent[name]) for name in ("inside", "alone"))
    return f"a transaction: {inside:.0f} us with its settings inside, {alone:.0f} us with a timeout alone"


def settled_size(url: str) -> int:
    """Vacuum, as PostgreSQL does by itself within minutes, and measure tables and indexes in bytes."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")
        found = connection.execute(
            """SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class AS c
            JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE nspname = 'kronmem' AND relkind = 'r'"""
        ).fetchone()
    return int(found[0]) if found else 0


def sizes(url: str) -> dict[str, int]:
    """The same by table and index, partitions added up."""
    import psycopg

    with psycopg.connect(url) as connection:
        rows = connection.execute(
            """SELECT regexp_replace(c.relname, '_[0-9]+(?=_|$)', ''), sum(pg_relation_size(c.oid))::bigint
            FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE nspname = 'kronmem' AND relkind IN ('r', 'i') GROUP BY 1 ORDER BY 2 DESC"""
        ).fetchall()
    return {str(name): int(size) for name, size in rows}
