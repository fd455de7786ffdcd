"""The tables of the SQLite store, and their migration from schema 1.

`space` is the memory space of one agent of one owner ('' when embedded). A memory's key is its space's id and its
number within the space: one integer that keeps a space's memories together on disk, newest last, and a posting small.

The tables of schema 1 were called otherwise: a process of kronmem 0.1 that has the file open fails at its next
statement instead of writing rows that nobody finds.
"""

from __future__ import annotations

from kronmem.sqlite_file import FileSchema

_SPACES = """CREATE TABLE spaces(
    id INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, name TEXT NOT NULL, description TEXT,
    metadata TEXT NOT NULL, created REAL NOT NULL, count INTEGER NOT NULL, words INTEGER NOT NULL,
    last INTEGER NOT NULL, passages INTEGER NOT NULL DEFAULT 0, generation INTEGER NOT NULL DEFAULT 0,
    revised INTEGER NOT NULL DEFAULT 0, UNIQUE(owner, name))"""
_MEMORIES = """CREATE TABLE memories(
    key INTEGER PRIMARY KEY, owner TEXT NOT NULL, space INTEGER NOT NULL, id TEXT NOT NULL, session TEXT NOT NULL,
    digest BLOB NOT NULL, type TEXT NOT NULL, content TEXT NOT NULL, tags TEXT NOT NULL, metadata TEXT NOT NULL,
    created REAL NOT NULL, expires REAL, pinned INTEGER NOT NULL, accessed INTEGER NOT NULL, vector BLOB,
    said REAL, updated REAL, role TEXT, about TEXT NOT NULL DEFAULT '', successor TEXT,
    passages INTEGER NOT NULL DEFAULT 0)"""
# Clustered by space and term: a recall reads a few short runs of one partition, however large the others are.
_POSTINGS = """CREATE TABLE postings(
    space INTEGER NOT NULL, term TEXT NOT NULL, number INTEGER NOT NULL, worth INTEGER NOT NULL, parts BLOB,
    PRIMARY KEY(space, term, number)) WITHOUT ROWID"""
# By name, not by space: what became of a client's id outlives the agent.
_RECEIPTS = """CREATE TABLE receipts(
    owner TEXT NOT NULL, name TEXT NOT NULL, client TEXT NOT NULL, memory TEXT NOT NULL, body BLOB NOT NULL,
    deduplicated INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY(owner, name, client)) WITHOUT ROWID"""
# Lists of keys are answered from it: values stand before the times in their rows, on many pages.
_NEWEST_STATES = "CREATE INDEX states_newest ON states(space, updated DESC, key)"
_STATES = """CREATE TABLE states(
    owner TEXT NOT NULL, space INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, created REAL NOT NULL,
    updated REAL NOT NULL, PRIMARY KEY(space, key))"""

# What both a new file and one of schema 1 get.
_NEW = (
    _NEWEST_STATES,
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

_CREATE = (
    # AUTOINCREMENT: a late write to a dropped space must not reach whatever came after it.
    _SPACES,
    _MEMORIES,
    "CREATE UNIQUE INDEX memory_id ON memories(space, id)",
    "CREATE INDEX memory_expiry ON memories(expires, space) WHERE expires IS NOT NULL",
    _POSTINGS,
    _RECEIPTS,
    "CREATE INDEX receipt_at ON receipts(at)",
    _STATES,
    *_NEW,
)

# In one transaction, without touching a row: postings of short memories are as they were, and long ones are split and
# all of them given a meaning afterwards, in the background.
_FROM_1 = (
    *(f"ALTER TABLE {old} RENAME TO {new}" for old, new in (("space", "spaces"), ("memory", "memories"))),
    "ALTER TABLE posting RENAME TO postings",
    "ALTER TABLE receipt RENAME TO receipts",
    "ALTER TABLE state RENAME TO states",
    "ALTER TABLE spaces ADD COLUMN passages INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE spaces ADD COLUMN generation INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE spaces ADD COLUMN revised INTEGER NOT NULL DEFAULT 0",
    "UPDATE spaces SET passages = count",
    "ALTER TABLE memories ADD COLUMN said REAL",
    "ALTER TABLE memories ADD COLUMN updated REAL",
    "ALTER TABLE memories ADD COLUMN role TEXT",
    "ALTER TABLE memories ADD COLUMN about TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE memories ADD COLUMN successor TEXT",
    "ALTER TABLE memories ADD COLUMN passages INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE postings ADD COLUMN parts BLOB",
    "DROP INDEX memory_text",
    *_NEW,
    # Deleted texts of schema 1 were not overwritten: the first erasure rewrites the file.
    "INSERT INTO settings VALUES('remains', '1')",
)

SCHEMA = FileSchema(application_id=0x6B726F6E, version=2, create=_CREATE, migrations={1: _FROM_1})  # "kron"
