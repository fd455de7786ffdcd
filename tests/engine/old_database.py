"""A database of kronmem 0.1 of any size: the agents of the sample that 0.1 wrote, multiplied row by row."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

SAMPLE = Path(__file__).parent.parent / "samples" / "memory-0.1.db"
AGENT, EACH = 2, 40
"""The agent of the sample that is multiplied, and how many memories it has."""
FIRST = 100
"""The first of the new agents: higher than those of the sample."""
_NUMBERS = "WITH RECURSIVE copies(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM copies WHERE i < ?) "
_COLUMNS = "session, digest, type, content, tags, metadata, created, expires, pinned, accessed, vector"


def grown(path: Path, memories: int) -> int:
    """Write a database of 0.1 with about so many memories; the answer is how many agents were added."""
    shutil.copy(SAMPLE, path)
    path.chmod(0o600)
    copies = max(memories // EACH, 1)
    db = sqlite3.connect(path)
    db.execute(
        f"{_NUMBERS} INSERT INTO space SELECT ? + i, owner, 'copy-' || i, description, metadata, created, count, words, "
        "last FROM space, copies WHERE id = ?",
        (copies - 1, FIRST, AGENT),
    )
    db.execute(
        f"{_NUMBERS} INSERT INTO memory SELECT key + ((? + i - ?) << 32), owner, ? + i, id, {_COLUMNS} "
        "FROM memory, copies WHERE space = ?",
        (copies - 1, FIRST, AGENT, FIRST, AGENT),
    )
    db.execute(
        f"{_NUMBERS} INSERT INTO posting SELECT ? + i, term, number, worth FROM posting, copies WHERE space = ?",
        (copies - 1, FIRST, AGENT),
    )
    db.commit()
    db.close()
    return copies
