"""The tables of the SQLite store, their migrations, and the checks that `kronmem doctor` makes of them.

`space` is the memory space of one agent of one owner ('' when embedded). A memory's key is its space's id and its
number within the space: one integer that keeps a space's memories together on disk, newest last, and a posting small.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from urllib.parse import quote

from kronmem.engine.sqlite.reading import BITS, COLUMNS, each_row
from kronmem.engine.store import TOO_OLD
from kronmem.sqlite_file import FileSchema, SqliteFile

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


# What `kronmem doctor` asks of a database: whether it is older, which memories in it cannot be read.
# Changes nothing in a database of this version. An older one is migrated when it is opened: `is_older` comes first.

_SECONDS = 60.0
"""The time for a whole database: `doctor` may wait for a busy writer, and reads every row."""


def is_older(path: str) -> bool:
    """Would opening this file migrate it? A file that cannot be read is not: opening it raises the cause."""
    # Without a write-ahead log no process has it open, and all is in the file itself: nothing is made beside it.
    alone = "" if os.path.exists(f"{path}-wal") else "&immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro{alone}", uri=True)) as db:
            mark, version = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    except sqlite3.Error:
        return False
    return bool(mark == SCHEMA.application_id and version in SCHEMA.migrations)


def damaged(path: str) -> list[str]:
    """The ids of memories that are left out of lists and recalls, each after the name of its agent."""
    file = SqliteFile(path, SCHEMA)
    try:
        with file.transaction("BEGIN", _SECONDS) as db:
            rows = [row for row in each_row(db, f"SELECT {COLUMNS} FROM memories", ()) if isinstance(row, tuple)]
            names = dict(db.execute("SELECT id, CAST(name AS BLOB) FROM spaces"))
    finally:
        file.close()
    return [f"{names.get(key >> BITS, b'?').decode(errors='replace')}: {memory_id}" for key, memory_id in rows]
