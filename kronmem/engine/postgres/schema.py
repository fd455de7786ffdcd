"""The tables of the PostgreSQL store, in a schema of their own, and the way to them.

Whoever comes first creates or migrates them under a lock, forwards only; the others wait and find them ready.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kronmem.engine.postgres.pool import Session, lock_key
from kronmem.errors import StoreError

PARTITIONS = 16
"""Each holds whole spaces, so that a recall reads one of them; more would cost every plan, fewer every vacuum."""
_LOCK = lock_key("schema")

# Sorted and compared by bytes: the same order as SQLite's, whatever the database's language.
_TEXT = 'text COLLATE "C"'


def _parts(name: str, storage: str, partitions: int) -> list[str]:
    return [
        f"CREATE TABLE kronmem.{name}_{n} PARTITION OF kronmem.{name} "
        f"FOR VALUES WITH (MODULUS {partitions}, REMAINDER {n}) WITH ({storage})"
        for n in range(partitions)
    ]


_CREATE = (
    "CREATE TABLE kronmem.version(number integer NOT NULL)",
    # Half a page is left free: the counters of a space change with every memory, in place if there is room.
    f"""CREATE TABLE kronmem.space(
        id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, owner {_TEXT} NOT NULL, name {_TEXT} NOT NULL,
        description text, metadata text NOT NULL, created float8 NOT NULL, count integer NOT NULL,
        words bigint NOT NULL, last integer NOT NULL, UNIQUE(owner, name)) WITH (fillfactor = 50)""",
    f"""CREATE TABLE kronmem.memory(
        space integer NOT NULL, number integer NOT NULL, id uuid NOT NULL, created float8 NOT NULL, expires float8,
        accessed integer NOT NULL, pinned boolean NOT NULL, digest bytea NOT NULL, owner {_TEXT} NOT NULL,
        session {_TEXT} NOT NULL, type {_TEXT} NOT NULL, tags text NOT NULL, metadata text NOT NULL,
        content {_TEXT} NOT NULL, PRIMARY KEY(space, number)) PARTITION BY HASH (space)""",
    "CREATE UNIQUE INDEX memory_id ON kronmem.memory(space, id)",
    "CREATE UNIQUE INDEX memory_text ON kronmem.memory(space, session, digest)",
    "CREATE INDEX memory_expiry ON kronmem.memory(expires, space) WHERE expires IS NOT NULL",
    "CREATE INDEX memory_pinned ON kronmem.memory(space, number) WHERE pinned",
    f"""CREATE TABLE kronmem.posting(
        space integer NOT NULL, number integer NOT NULL, times integer NOT NULL, length integer NOT NULL,
        term {_TEXT} NOT NULL) PARTITION BY HASH (space)""",
    # Everything in the index: a recall reads a few short runs of it and never the table, however large the others are.
    "CREATE UNIQUE INDEX posting_term ON kronmem.posting(space, term, number) INCLUDE (times, length)",
    # By name, not by space: what became of a client's id outlives the agent.
    f"""CREATE TABLE kronmem.receipt(
        owner {_TEXT} NOT NULL, name {_TEXT} NOT NULL, client {_TEXT} NOT NULL, memory uuid NOT NULL,
        body bytea NOT NULL, deduplicated boolean NOT NULL, at float8 NOT NULL, PRIMARY KEY(owner, name, client))""",
    "CREATE INDEX receipt_at ON kronmem.receipt(at)",
    f"""CREATE TABLE kronmem.state(
        space integer NOT NULL, key {_TEXT} NOT NULL, owner {_TEXT} NOT NULL, value text NOT NULL,
        created float8 NOT NULL, updated float8 NOT NULL, PRIMARY KEY(space, key))""",
)


@dataclass(frozen=True)
class Schema:
    """The tables of a database and, from each older version, the statements that lead to the next."""

    version: int
    create: tuple[str, ...]
    migrations: dict[int, tuple[str, ...]] = field(default_factory=lambda: dict[int, tuple[str, ...]]())


def schema(partitions: int = PARTITIONS) -> Schema:
    """The tables in so many parts. What an existing database has, it keeps."""
    # Room for access counts in the one; in the other, an index-only scan reads what a vacuum has seen: do not wait
    # for it until a fifth of a large table is new.
    memory = _parts("memory", "fillfactor = 85", partitions)
    posting = _parts("posting", "autovacuum_vacuum_insert_scale_factor = 0.05", partitions)
    return Schema(1, (*_CREATE, *memory, *posting))


SCHEMA = schema()


def is_ready(session: Session, place: str, schema: Schema) -> bool:
    """Is everything there? `StoreError` for what a newer kronmem or somebody else made."""
    version = _version(session, place)
    if version > schema.version:
        raise StoreError(f"{place} was written by a newer kronmem (schema {version}, known {schema.version}): upgrade")
    return version == schema.version


def prepare(session: Session, place: str, schema: Schema) -> None:
    """Create or migrate the tables, unless somebody else did while we waited for the lock."""
    session.run("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    session.unhurried()  # a migration takes as long as it takes; only the wait for others was bounded
    if is_ready(session, place, schema):
        return
    if session.ask("SHOW server_encoding") != [("UTF8",)]:
        raise StoreError(f"{place} is not in UTF8 and cannot keep every text: create the database with ENCODING 'UTF8'")
    version = _version(session, place)
    if not session.ask("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = 'kronmem'"):
        session.run("CREATE SCHEMA kronmem")
    for statement in _steps(schema, version):
        session.run(statement)
    session.run("DELETE FROM kronmem.version")
    session.run("INSERT INTO kronmem.version VALUES (%s)", (schema.version,))


def _steps(schema: Schema, version: int) -> list[str]:
    if version == 0:
        return list(schema.create)
    return [step for older in range(version, schema.version) for step in schema.migrations[older]]


def _version(session: Session, place: str) -> int:
    """The version of the tables; 0 where there are none."""
    tables = _tables(session)
    if tables and "version" not in tables:
        raise StoreError(f"{place} has a schema kronmem of something else: choose another database")
    found = session.ask("SELECT number FROM kronmem.version") if tables else []
    version: int = found[0][0] if found else 0
    return version


def _tables(session: Session) -> set[str]:
    # Not to_regclass(): it may answer from a cache that has not heard of what was made while we waited for the lock.
    sql = """SELECT relname FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE nspname = 'kronmem' AND relkind IN ('r', 'p')"""
    return {str(row[0]) for row in session.ask(sql)}


def vector_type(session: Session) -> str | None:
    """How vectors are kept: as pgvector's `vector`, as `bytea` where that is missing, or not at all yet."""
    sql = """SELECT typname FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
        JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE nspname = 'kronmem' AND relname = 'embedding' AND attname = 'vector'"""
    found = session.ask(sql)
    return str(found[0][0]) if found else None


def prepare_vectors(session: Session) -> None:
    """Make room for vectors, unless somebody else did while we waited for the lock."""
    session.run("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    if vector_type(session) is not None:
        return
    kind = "vector" if _has_pgvector(session) else "bytea"
    # A table of its own: an access count rewrites its row, and a vector is larger than the memory it belongs to.
    session.run(
        f"""CREATE TABLE kronmem.embedding(
            space integer NOT NULL, number integer NOT NULL, vector {kind} NOT NULL, PRIMARY KEY(space, number),
            FOREIGN KEY(space, number) REFERENCES kronmem.memory ON DELETE CASCADE)"""
    )


def _has_pgvector(session: Session) -> bool:
    if session.ask("SELECT 1 FROM pg_available_extensions WHERE name = 'vector' AND installed_version IS NULL"):
        session.attempt("CREATE EXTENSION vector")  # not everybody may
    return bool(session.ask("SELECT 1 WHERE to_regtype('vector') IS NOT NULL"))
