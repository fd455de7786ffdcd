"""The tables of the SQLite store.

`space` is the memory space of one agent of one owner ('' when embedded). A memory's key is its space's id and its
number within the space: one integer that keeps a space's memories together on disk, newest last, and a posting small.
"""

from __future__ import annotations

from kronmem.engine.store import TOO_OLD
from kronmem.sqlite_file import FileSchema

_CREATE = (
    # AUTOINCREMENT: a late write to a dropped space must not reach whatever came after it.
    """CREATE TABLE spaces(
        id INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, name TEXT NOT NULL, description TEXT,
        metadata TEXT NOT NULL, created REAL NOT NULL, count INTEGER NOT NULL, words INTEGER NOT NULL,
        last INTEGER NOT NULL, passages INTEGER NOT NULL DEFAULT 0, generation INTEGER NOT NULL DEFAULT 0,
        revised INTEGER NOT NULL DEFAULT 0, UNIQUE(owner, name))""",
    """CREATE TABLE memories(
        key INTEGER PRIMARY KEY, owner TEXT NOT NULL, space INTEGER NOT NULL, id TEXT NOT NULL, session TEXT NOT NULL,
        digest BLOB NOT NULL, type TEXT NOT NULL, content TEXT NOT NULL, tags TEXT NOT NULL, metadata TEXT NOT NULL,
        created REAL NOT NULL, expires REAL, pinned INTEGER NOT NULL, accessed INTEGER NOT NULL, vector BLOB,
        said REAL, updated REAL, role TEXT, about TEXT NOT NULL DEFAULT '', successor TEXT,
        passages INTEGER NOT NULL DEFAULT 0)""",
    "CREATE UNIQUE INDEX memory_id ON memories(space, id)",
    "CREATE INDEX memory_expiry ON memories(expires, space) WHERE expires IS NOT NULL",
    # Clustered by space and term: a recall reads a few short runs of one partition, however large the others are.
    """CREATE TABLE postings(
        space INTEGER NOT NULL, term TEXT NOT NULL, number INTEGER NOT NULL, worth INTEGER NOT NULL, parts BLOB,
        PRIMARY KEY(space, term, number)) WITHOUT ROWID""",
    # By name, not by space: what became of a client's id outlives the agent.
    """CREATE TABLE receipts(
        owner TEXT NOT NULL, name TEXT NOT NULL, client TEXT NOT NULL, memory TEXT NOT NULL, body BLOB NOT NULL,
        deduplicated INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY(owner, name, client)) WITHOUT ROWID""",
    "CREATE INDEX receipt_at ON receipts(at)",
    """CREATE TABLE states(
        owner TEXT NOT NULL, space INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, created REAL NOT NULL,
        updated REAL NOT NULL, PRIMARY KEY(space, key))""",
    # Lists of keys are answered from it: values stand before the times in their rows, on many pages.
    "CREATE INDEX states_newest ON states(space, updated DESC, key)",
    # Codes first: a scan reads them and not the vectors behind them.
    "CREATE TABLE meanings(key INTEGER PRIMARY KEY, codes BLOB NOT NULL, vectors BLOB NOT NULL)",
    "CREATE TABLE erased(digest BLOB PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE settings(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # A text is there once among the current memories of a session and a key, and a key once: history may repeat both.
    "CREATE UNIQUE INDEX memories_text ON memories(space, session, about, digest) WHERE successor IS NULL",
    "CREATE UNIQUE INDEX memories_about ON memories(space, session, about) WHERE successor IS NULL AND about <> ''",
    "CREATE INDEX memories_successor ON memories(space, successor) WHERE successor IS NOT NULL",
    "CREATE INDEX memories_created ON memories(space, created)",
    "CREATE INDEX memories_pinned ON memories(space) WHERE pinned",
    "CREATE INDEX memories_unfilled ON memories(key) WHERE passages = 0 AND successor IS NULL",
)

SCHEMA = FileSchema(application_id=0x6B726F6E, version=2, create=_CREATE, too_old=TOO_OLD)  # "kron"
