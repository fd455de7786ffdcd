"""Texts of memories that wait for a vector. One that cannot be read is left out; the others go on."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress

from kronmem.engine.sqlite.rows import SqlConnection

# Without decoding: sqlite3 gives up a whole query at the first text that is not UTF-8.
_WITHOUT_VECTOR = """SELECT key, CASE typeof(content) WHEN 'text' THEN CAST(content AS BLOB) END FROM memories
    WHERE key > ? AND vector IS NULL AND successor IS NULL ORDER BY key"""
_log = logging.getLogger("kronmem.engine")


def without_vector(db: SqlConnection, after: int) -> Iterator[tuple[int, str]]:
    """The current memories behind this key that have no vector, by key; damaged ones are logged."""
    for where, raw in db.execute(_WITHOUT_VECTOR, (after,)):
        text: str | None = None
        with suppress(UnicodeDecodeError):
            text = None if raw is None else raw.decode()
        if text is None:
            _log.warning("the text at %d is damaged and gets no vector (`kronmem doctor` names its memory)", where)
        else:
            yield where, text
