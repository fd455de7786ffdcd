"""The tables of the PostgreSQL store, in a schema of their own, their keys, migrations and checks.

The first client creates or migrates them under a lock, forwards only; the others wait and find them ready.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from kronmem.engine.postgres.pool import PostgresPool
from kronmem.engine.postgres.transaction import Transaction
from kronmem.engine.store import TOO_OLD
from kronmem.errors import KronmemError, StoreError

# Numbers that every client computes alike: the key of a space and the keys of advisory locks. Pure.

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


PARTITIONS = 16
"""Each holds whole spaces, so that a recall reads one of them; more would cost every plan, fewer every vacuum."""
_LOCK = lock_key("schema")
ADD_SALT = "INSERT INTO kronmem.settings VALUES ('salt', %s) ON CONFLICT(name) DO NOTHING"
"""The salt of the hashes of erased ids."""

# Sorted and compared by bytes: the same order as SQLite's, whatever the database's language.
_TEXT = 'text COLLATE "C"'


# Room for access counts in the one, for blocks that grow in the other.
_STORAGE = {"memories": "fillfactor = 85", "postings": "fillfactor = 90"}


def _parts(name: str, partitions: int) -> list[str]:
    storage = _STORAGE[name]
    if not partitions:
        return [f"ALTER TABLE kronmem.{name} SET ({storage})"]
    return [
        f"CREATE TABLE kronmem.{name}_{n} PARTITION OF kronmem.{name} "
        f"FOR VALUES WITH (MODULUS {partitions}, REMAINDER {n}) WITH ({storage})"
        for n in range(partitions)
    ]


_CREATE = (
    "CREATE TABLE kronmem.version(number integer NOT NULL)",
    "CREATE TABLE kronmem.settings(name text PRIMARY KEY, value text NOT NULL)",
)
# Every table of memories begins with the space, a hash of owner and name that the client computes: a call about one
# agent needs no other table to find its rows, and a distributed database keeps them together on one node.
_TABLES = (
    # Half a page is left free: the counters of a space change with every memory, in place if there is room.
    f"""CREATE TABLE kronmem.spaces(
        id bigint PRIMARY KEY, owner {_TEXT} NOT NULL, name {_TEXT} NOT NULL, gone boolean NOT NULL DEFAULT false,
        description text, metadata text NOT NULL, created float8 NOT NULL, count integer NOT NULL,
        passages integer NOT NULL, words bigint NOT NULL, last integer NOT NULL, generation integer NOT NULL,
        revised integer NOT NULL) WITH (fillfactor = 50)""",
    "CREATE INDEX spaces_owner ON kronmem.spaces(owner, name)",
    f"""CREATE TABLE kronmem.memories(
        space bigint NOT NULL, created float8 NOT NULL, expires float8, said float8 NOT NULL, updated float8,
        id uuid NOT NULL, successor uuid, number integer NOT NULL, accessed integer NOT NULL,
        passages smallint NOT NULL, pinned boolean NOT NULL, digest bytea NOT NULL, session {_TEXT} NOT NULL,
        about {_TEXT} NOT NULL, role {_TEXT}, type {_TEXT} NOT NULL, tags text NOT NULL, metadata text NOT NULL,
        content {_TEXT} NOT NULL, PRIMARY KEY(space, number)) PARTITION BY HASH (space)""",
    "CREATE UNIQUE INDEX memories_id ON kronmem.memories(space, id)",
    # A text is there once among the current memories of a session and a key, and a key once: history may repeat both.
    "CREATE UNIQUE INDEX memories_text ON kronmem.memories(space, session, about, digest) WHERE successor IS NULL",
    """CREATE UNIQUE INDEX memories_about ON kronmem.memories(space, session, about)
        WHERE successor IS NULL AND about <> ''""",
    "CREATE INDEX memories_successor ON kronmem.memories(space, successor) WHERE successor IS NOT NULL",
    "CREATE INDEX memories_expiry ON kronmem.memories(expires, space) WHERE expires IS NOT NULL",
    "CREATE INDEX memories_created ON kronmem.memories(space, created)",
    "CREATE INDEX memories_pinned ON kronmem.memories(space, number) WHERE pinned",
    "CREATE INDEX memories_unfilled ON kronmem.memories(space, number) WHERE passages = 0 AND successor IS NULL",
    # Postings are packed (posting_blocks.py): a row and an index entry for each would be three times their size. No
    # indexed column changes when a memory is added, so that a block grows within its page.
    f"""CREATE TABLE kronmem.postings(
        space bigint NOT NULL, first integer NOT NULL, memories smallint NOT NULL, term {_TEXT} NOT NULL,
        packed bytea NOT NULL) PARTITION BY HASH (space)""",
    "CREATE UNIQUE INDEX postings_term ON kronmem.postings(space, term, first)",
    # Tables of their own: an access count rewrites its row, and a vector is larger than the memory it belongs to.
    """CREATE TABLE kronmem.meanings(
        space bigint NOT NULL, number integer NOT NULL, codes bytea NOT NULL, vectors bytea NOT NULL,
        PRIMARY KEY(space, number))""",
    """CREATE TABLE kronmem.embeddings(
        space bigint NOT NULL, number integer NOT NULL, vector bytea NOT NULL, PRIMARY KEY(space, number))""",
    f"""CREATE TABLE kronmem.receipts(
        space bigint NOT NULL, client {_TEXT} NOT NULL, memory uuid NOT NULL, body bytea NOT NULL,
        deduplicated boolean NOT NULL, at float8 NOT NULL, PRIMARY KEY(space, client))""",
    "CREATE INDEX receipts_at ON kronmem.receipts(at)",
    """CREATE TABLE kronmem.erased(
        space bigint NOT NULL, digest bytea NOT NULL, at float8 NOT NULL, PRIMARY KEY(space, digest))""",
    "CREATE INDEX erased_at ON kronmem.erased(at)",
    f"""CREATE TABLE kronmem.states(
        space bigint NOT NULL, key {_TEXT} NOT NULL, value text NOT NULL, created float8 NOT NULL,
        updated float8 NOT NULL, PRIMARY KEY(space, key))""",
)
_PARTITIONED = " PARTITION BY HASH (space)"
GROUP = ("memories", "postings", "meanings", "embeddings", "receipts", "erased", "states")
"""The tables that are distributed by their space, beside `spaces` itself."""
# The shards of a distributed database are the partitions: both together would be hundreds of tables. Everything of one
# agent is in one shard group on one node, a call about it a transaction there; settings stay with the coordinator.
DISTRIBUTE = (
    "SELECT create_distributed_table('kronmem.spaces', 'id')",
    *(f"SELECT create_distributed_table('kronmem.{t}', 'space', colocate_with => 'kronmem.spaces')" for t in GROUP),
)


Step = Callable[[Transaction], None]


@dataclass(frozen=True)
class PostgresSchema:
    """The tables of a database and, from each older version, the step that leads to the next."""

    version: int
    create: tuple[str, ...]
    distribute: tuple[str, ...] = ()
    """Instead of `create` where the database has the extension for it."""
    migrations: dict[int, Step] = field(default_factory=lambda: dict[int, Step]())


def schema(partitions: int = PARTITIONS) -> PostgresSchema:
    """The tables in so many parts. An existing database keeps its own."""
    return PostgresSchema(2, (*_CREATE, *_tables_in(partitions)), (*_CREATE, *_tables_in(0), *DISTRIBUTE))


def _tables_in(partitions: int) -> tuple[str, ...]:
    tables = _TABLES if partitions else tuple(sql.replace(_PARTITIONED, "") for sql in _TABLES)
    return (*tables, *(part for name in _STORAGE for part in _parts(name, partitions)))


SCHEMA = schema()


def is_ready(session: Transaction, place: str, schema: PostgresSchema) -> bool:
    """Is everything there? `StoreError` for tables that a newer kronmem, 0.1 or another program made."""
    version = _version(session, place)
    if 0 < version < schema.version and version not in schema.migrations:
        raise StoreError(f"{place} {TOO_OLD}")
    if version > schema.version:
        raise StoreError(f"{place} was written by a newer kronmem (schema {version}, known {schema.version}): upgrade")
    return version == schema.version


def prepare(session: Transaction, place: str, schema: PostgresSchema) -> None:
    """Create or migrate the tables, unless another process did while we waited for the lock."""
    session.run("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    session.without_timeout()  # a migration takes as long as it takes; only the wait for others was bounded
    if is_ready(session, place, schema):
        return
    if session.ask("SHOW server_encoding") != [("UTF8",)]:
        raise StoreError(f"{place} is not in UTF8 and cannot keep every text: create the database with ENCODING 'UTF8'")
    version = _version(session, place)
    if not session.ask("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = 'kronmem'"):
        session.run("CREATE SCHEMA kronmem")
    for step in _steps(schema, version):
        step(session)
    session.run(ADD_SALT, (secrets.token_hex(16),))
    session.run("DELETE FROM kronmem.version")
    session.run("INSERT INTO kronmem.version VALUES (%s)", (schema.version,))


def _steps(schema: PostgresSchema, version: int) -> list[Step]:
    if version == 0:
        return [lambda session: _run_all(session, schema.distribute if session.distributed else schema.create)]
    return [schema.migrations[older] for older in range(version, schema.version)]


def _run_all(session: Transaction, statements: Iterable[str]) -> None:
    for statement in statements:
        session.run(statement)


def _version(session: Transaction, place: str) -> int:
    """The version of the tables; 0 where there are none."""
    tables = _tables(session)
    if tables and "version" not in tables:
        raise StoreError(f"{place} has a schema kronmem of another program: choose another database")
    rows = session.ask("SELECT number FROM kronmem.version") if tables else []
    version: int = rows[0][0] if rows else 0
    return version


def _tables(session: Transaction) -> set[str]:
    # Not to_regclass(): it may answer from a cache without the tables made while we waited for the lock.
    sql = """SELECT relname FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE nspname = 'kronmem' AND relkind IN ('r', 'p')"""
    return {str(row[0]) for row in session.ask(sql)}


# Is a PostgreSQL database fit for kronmem? Looks, and changes nothing: tables that are missing stay missing.

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
_READ_TABLES = """SELECT relname, has_table_privilege(c.oid, 'SELECT'),
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
    rights = session.ask(_READ_TABLES)
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
