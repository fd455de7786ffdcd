"""The PostgreSQL store beside SQLite's and beside an earlier commit's: speed, room, and what a transaction costs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_SERVER = ("shared_buffers=1GB", "max_wal_size=4GB")


def report(sizes_: Sequence[int], commit: str | None) -> Iterator[str]:
    """Everything at each size, on a server of its own."""
    from tests.benchmarks.baseline import against
    from tests.benchmarks.engine_scale import side_by_side
    from tests.services.postgres import some_server

    with tempfile.TemporaryDirectory() as folder, some_server(_SERVER) as url:
        if commit:
            yield from against(commit, sizes_, url)
            return
        yield from side_by_side(Path(folder), url, sizes_)
        yield "room, bytes a memory: " + ", ".join(
            f"{name} {size / sizes_[-1]:.0f}" for name, size in sizes(url).items() if size >= sizes_[-1]
        )
        yield transaction_cost(url)


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
