"""How far the work in the background is: vectors of a model."""

from __future__ import annotations

import time
from collections.abc import Iterator

from kronmem.engine.embedding import MADE_BY
from kronmem.engine.store import Reader, Store

_SECONDS = 10.0
"""The time to read the counts: a client's default for one call."""


def progress(store: Store) -> list[tuple[str, str]]:
    """Subject and sentence for each kind of work that there is or was."""
    with store.read(_SECONDS) as rows:
        return list(_told(rows))


def _told(rows: Reader) -> Iterator[tuple[str, str]]:
    _, memories = rows.size(time.time())
    if made_by := rows.setting(MADE_BY):
        done = rows.count_embedded()
        rest = "" if done >= memories else "; the others when a client with this embed= runs"
        yield "vectors", f"{made_by}: {min(done, memories)} of {memories} memories{rest}"
