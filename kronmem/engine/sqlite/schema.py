"""The tables of the SQLite store.

`space` is the memory space of one agent of one owner ('' when embedded). A memory's key is its space's id and its
number within the space: one integer that keeps a space's memories together on disk, newest last, and a posting small.
"""

from __future__ import annotations

from kronmem.sqlite_file import Schema

_CREATE = (
    # AUTOINCREMENT: a late write to a dropped space must not reach whatever came after it.
    """CREATE TABLE space(
        id INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, name TEXT NOT NULL, description TEXT,
        metadata TEXT NOT NULL, created REAL NOT NULL, count INTEGER NOT NULL, words INTEGER NOT NULL,
        last INTEGER NOT NULL, UNIQUE(owner, name))""",
    """CREATE TABLE memory(
        key INTEGER PRIMARY KEY, owner TEXT NOT NULL, space INTEGER NOT NULL, id TEXT NOT NULL, session TEXT NOT NULL,
        digest BLOB NOT NULL, type TEXT NOT NULL, content TEXT NOT NULL, tags TEXT NOT NULL, metadata TEXT NOT NULL,
        created REAL NOT NULL, expires REAL, pinned INTEGER NOT NULL, accessed INTEGER NOT NULL, vector BLOB)""",
    "CREATE UNIQUE INDEX memory_id ON memory(space, id)",
    "CREATE UNIQUE INDEX memory_text ON memory(space, session, digest)",
    "CREATE INDEX memory_expiry ON memory(expires, space) WHERE expires IS NOT NULL",
    # Clustered by space and term: a recall reads a few short runs of one partition, however large the others are.
    """CREATE TABLE posting(
        space INTEGER NOT NULL, term TEXT NOT NULL, number INTEGER NOT NULL, worth INTEGER NOT NULL,
        PRIMARY KEY(space, term, number)) WITHOUT ROWID""",
    # By name, not by space: what became of a client's id outlives the agent.
    """CREATE TABLE receipt(
        owner TEXT NOT NULL, name TEXT NOT NULL, client TEXT NOT NULL, memory TEXT NOT NULL, body BLOB NOT NULL,
        deduplicated INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY(owner, name, client)) WITHOUT ROWID""",
    "CREATE INDEX receipt_at ON receipt(at)",
    """CREATE TABLE state(
        owner TEXT NOT NULL, space INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, created REAL NOT NULL,
        updated REAL NOT NULL, PRIMARY KEY(space, key))""",
)

SCHEMA = Schema(application_id=0x6B726F6E, version=1, create=_CREATE)  # "kron"
