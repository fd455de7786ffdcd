"""What `kronmem doctor` asks of a SQLite database: which memories in it cannot be read. Changes nothing."""

from __future__ import annotations

from kronmem.engine.sqlite.rows import BITS, COLUMNS, each_row
from kronmem.engine.sqlite.schema import SCHEMA
from kronmem.sqlite_file import SqliteFile

_SECONDS = 60.0
"""The time for a whole database: `doctor` may wait for a busy writer, and reads every row."""


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
