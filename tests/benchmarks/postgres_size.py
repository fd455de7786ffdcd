"""How much room the PostgreSQL store takes."""

from __future__ import annotations


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
