"""Compares every index entry of a migrated and filled database with the one that its memory must have."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from kronmem.engine.postings import LENGTH_BITS, MAX_LENGTH, indexed, pack_parts
from kronmem.engine.sqlite.rows import BITS, COLUMNS, read_row
from kronmem.engine.store import Row
from tests.engine.old_database import AGENT, EACH, FIRST

Counted = dict[tuple[object, ...], int]
_NUMBER = f"key & {(1 << BITS) - 1}"


def check_index(path: Path, copies: int) -> None:
    """Of the agents of the sample and of every copy of one of them: all entries, none twice, none too many."""
    db = sqlite3.connect(path)
    try:
        for space in (1, AGENT):
            _check(db, f"space = {space}", f"key >> {BITS} = {space}", space, 1)
        among = f"BETWEEN {FIRST} AND {FIRST + copies - 1}"
        _check(db, f"space {among}", f"key >> {BITS} {among}", FIRST, copies)
        # Filling a memory raises its agent's `revised` by one.
        wrong = "count <> ? OR passages <> ? OR revised <> ?"
        sql = f"SELECT count(*) FROM spaces WHERE id {among} AND ({wrong})"
        assert db.execute(sql, (EACH, EACH, EACH)).fetchone() == (0,), "counted wrongly or not filled once"
    finally:
        db.close()


def _check(db: sqlite3.Connection, postings: str, meanings: str, sample: int, copies: int) -> None:
    """The entries of `copies` equal agents, grouped: each of those that one of them must have, so many times."""
    sql = f"SELECT {COLUMNS} FROM memories WHERE space = ? AND successor IS NULL"
    rows = [read_row(row) for row in db.execute(sql, (sample,))]
    fields = "term, number, worth, parts"
    found = _counted(db, f"SELECT {fields}, count(*) FROM postings WHERE {postings} GROUP BY {fields}")
    assert found == {entry: copies for row in rows for entry in _postings(row)}, "index entries are wrong"
    fields = f"{_NUMBER}, codes, vectors"
    found = _counted(db, f"SELECT {fields}, count(*) FROM meanings WHERE {meanings} GROUP BY {fields}")
    expected = {(row.number, new.codes, new.vectors): copies for row in rows if (new := indexed(row)).codes}
    assert found == expected, "vectors are wrong"


def _postings(row: Row) -> list[tuple[object, ...]]:
    new = indexed(row)
    said: list[tuple[object, ...]] = []
    for term, places in new.terms.items():
        if len(new.lengths) > 1:
            said.append((term, row.number, 0, pack_parts(places, new)))
        else:
            times, length = min(places[0][1], MAX_LENGTH), min(new.lengths[0], MAX_LENGTH)
            said.append((term, row.number, (new.kinds[0] << LENGTH_BITS | times) << LENGTH_BITS | length, None))
    return said + [(label, row.number, 0, None) for label in new.labels]


def _counted(db: sqlite3.Connection, sql: str) -> Counted:
    return {tuple(row[:-1]): row[-1] for row in db.execute(sql)}
