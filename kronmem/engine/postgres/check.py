"""Is a PostgreSQL database fit for kronmem? Looks, and changes nothing: tables that are missing stay missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kronmem.engine.postgres.pool import PostgresPool
from kronmem.engine.postgres.schema import DISTRIBUTE, SCHEMA, is_ready
from kronmem.engine.postgres.transaction import Transaction
from kronmem.errors import KronmemError, StoreError

_LOOK = "BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY"
_POOLED = """one stands between, in transaction mode or taken for it: prepared statements are off, every setting is made
inside its transaction; run a long migration at the direct address""".replace("\n", " ")
_NODES = """SELECT count(*) FILTER (WHERE shouldhaveshards), count(*) FILTER (WHERE NOT isactive) FROM pg_dist_node"""
_SHARDS = """SELECT table_name::text, shard_count FROM citus_tables
    WHERE table_name::text LIKE 'kronmem.%' AND citus_table_type = 'distributed'"""
_SIZE = """SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE nspname = 'kronmem' AND relkind = 'r'"""
_SPREAD_SIZE = """SELECT coalesce(sum(citus_total_relation_size(table_name)), 0)::bigint FROM citus_tables
    WHERE table_name::text LIKE 'kronmem.%'"""
_REST = f"{_SIZE} AND c.oid NOT IN (SELECT logicalrelid FROM pg_dist_partition)"
"""What the coordinator keeps to itself: settings, and tables from before the extension."""
_TABLES = """SELECT relname, has_table_privilege(c.oid, 'SELECT'),
    has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE')
        AND has_table_privilege(c.oid, 'DELETE')
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE nspname = 'kronmem' AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> 'version'
    ORDER BY relname"""


@dataclass(frozen=True)
class Look:
    """One thing looked at: how it is in words, and whether kronmem can work with it."""

    what: str
    words: str
    ok: bool = True


@dataclass(frozen=True)
class Examination:
    """The findings, and whether memories can be asked for without making a table first."""

    looks: tuple[Look, ...]
    ready: bool


def examine(url: str, timeout: float = 5.0, *, connections: int = 8) -> Examination:
    """Look at the server, the tables, this role's rights on them, and their size."""
    pool = PostgresPool(url, 1)
    looks: list[Look] = []
    try:
        with pool.transaction(_LOOK, timeout) as session:
            looks.extend(_server(session, pool.place, connections))
            ready, words = _schema(session, pool.place)
            looks.append(Look("tables", *words))
            if ready:
                looks.extend(_contents(session))
    except KronmemError as error:
        looks.append(Look("database", str(error), ok=False))
        ready = False
    finally:
        pool.close()
    return Examination(tuple(looks), ready and all(look.ok for look in looks))


def _server(session: Transaction, place: str, connections: int) -> Iterator[Look]:
    [(version, encoding, replica, limit, used)] = session.ask(
        """SELECT split_part(version(), ' ', 2), current_setting('server_encoding'), pg_is_in_recovery(),
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
        (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend')"""
    )
    standing = ", a replica: recall works, nothing can be stored" if replica else ""
    utf8 = encoding == "UTF8"
    wrong = "" if utf8 else f", in {encoding}: it must be created with ENCODING 'UTF8'"
    yield Look("database", f"PostgreSQL {version} at {place}{standing}{wrong}", utf8)
    room = int(limit) - int(used)
    advice = "" if room >= connections else "; raise max_connections, or put a pooler in front"
    yield Look("room", f"{used} of {limit} connections in use, a process takes up to {connections}{advice}", not advice)
    yield Look("pooler", _POOLED if session.pooled else "none seen: statements are prepared")
    if session.distributed:
        yield _nodes(session)


def _nodes(session: Transaction) -> Look:
    """The nodes of a distributed database and how the tables lie on them."""
    [(version,)] = session.ask("SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'citus'")
    [(nodes, away)] = session.ask(_NODES)
    tables = dict(session.ask(_SHARDS))
    words = f"Citus {version}: {len(tables)} tables in {sum(tables.values())} shards over {nodes} nodes"
    if away:
        return Look("nodes", f"{words}, {away} of them inactive: agents that live there cannot be reached", ok=False)
    missing = [sql for sql in DISTRIBUTE if sql.split("'")[1] not in tables]
    made = session.ask("SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'kronmem' AND tablename = 'spaces'")
    if made and missing:
        return Look("nodes", f"{words}; run as the owner of the tables: {'; '.join(missing)}", ok=False)
    return Look("nodes", f"{words}, one co-location group" if made else words)


def _schema(session: Transaction, place: str) -> tuple[bool, tuple[str, bool]]:
    [(exists, use, create, make)] = session.ask(
        """SELECT n.oid IS NOT NULL, has_schema_privilege(n.oid, 'USAGE'), has_schema_privilege(n.oid, 'CREATE'),
        has_database_privilege(current_database(), 'CREATE')
        FROM (SELECT 1) AS one LEFT JOIN pg_catalog.pg_namespace AS n ON nspname = 'kronmem'"""
    )
    if exists and not use:
        return False, ("this role may not look into the schema: GRANT USAGE ON SCHEMA kronmem", False)
    may_make = create if exists else make
    try:
        if is_ready(session, place, SCHEMA):
            return True, (f"schema version {SCHEMA.version}, as this kronmem wants it", True)
    except StoreError as error:
        return False, (str(error), False)
    if may_make:
        return False, ("not made yet, or of an older version: the first use makes them", True)
    return False, (
        "not made yet, and this role may not: GRANT CREATE ON DATABASE, or let another role start once",
        False,
    )


def _contents(session: Transaction) -> Iterator[Look]:
    rights = session.ask(_TABLES)
    closed = [name for name, reads, _ in rights if not reads]
    fixed = [name for name, _, writes in rights if not writes]
    if closed:
        yield Look("rights", f"this role may not read {', '.join(closed)}: GRANT SELECT ON ALL TABLES", ok=False)
        return
    if fixed:
        words = f"this role may read, and not write {', '.join(fixed)}: recall works, storing does not"
    else:
        words = "this role may read and write"
    yield Look("rights", words)
    sizes = (_SPREAD_SIZE, _REST) if session.distributed else (_SIZE,)
    size = sum(session.ask(sql)[0][0] for sql in sizes)
    yield Look("size", f"{size:,} bytes in tables and indexes")
