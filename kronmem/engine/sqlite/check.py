"""What `kronmem doctor` asks of a SQLite database: whether it is older, which memories in it cannot be read.

Changes nothing in a database of this version. An older one is migrated when it is opened: `is_older` comes first.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from urllib.parse import quote

from kronmem.engine.sqlite.rows import BITS, COLUMNS, each_row
from kronmem.engine.sqlite.schema import SCHEMA
from kronmem.sqlite_file import SqliteFile

_SECONDS = 60.0
"""The time for a whole database: `doctor` may wait for a busy writer, and reads every row."""


def is_older(path: str) -> bool:
    """Would opening this file migrate it? A file that cannot be read is not: whoever opens it says why."""
    # Without a write-ahead log nobody has it open, and all is in the file itself: nothing is made beside it.
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
            found = [row for row in each_row(db, f"SELECT {COLUMNS} FROM memories", ()) if isinstance(row, tuple)]
            names = dict(db.execute("SELECT id, CAST(name AS BLOB) FROM spaces"))
    finally:
        file.close()
    return [f"{names.get(key >> BITS, b'?').decode(errors='replace')}: {memory_id}" for key, memory_id in found]
