"""Ids of the user's own at the vendor's server, which keeps them as metadata and checks nothing. Pure.

Before a memory is stored under such an id, the listing is read down to the rows that are known already, so that
one id never means two texts. Only `memory_id=` pays for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kronmem.core import kronvex_calls as server
from kronmem.core.kronvex_repeats import words
from kronmem.core.kronvex_storing import USED
from kronmem.core.memory_json import WireMemory
from kronmem.core.steps import Asker, Flow
from kronmem.errors import ConflictError

if TYPE_CHECKING:
    from kronmem.core.calls import Draft

MOST_AGENTS = 4
"""So many agents' ids are remembered between calls: an import stores one agent after the other."""


def unused(draft: Draft, asker: Asker) -> Flow[None]:
    """Refuse an id that already means another text."""
    known = asker.known_ids
    index: dict[str, tuple[frozenset[str], int]] = known.pop(draft.agent_id, {})
    known[draft.agent_id] = index
    while len(known) > MOST_AGENTS:
        known.pop(next(iter(list(known)), ""), None)  # another thread may have dropped it
    yield from _read(draft.agent_id, index, asker)
    if _clashes(draft, index):
        # The row may have been deleted since it was read. Another thread may be about to add to the index: emptied,
        # it would know the newest rows only and take them for all.
        known[draft.agent_id] = index = {}
        yield from _read(draft.agent_id, index, asker)
        if _clashes(draft, index):
            raise ConflictError(USED, status=409)


def _read(agent_id: str, index: dict[str, tuple[frozenset[str], int]], asker: Asker) -> Flow[None]:
    """Add the rows that are newer than any in the index: the listing begins with the newest."""
    number = 1
    newer: dict[str, tuple[frozenset[str], int]] = {}
    while True:
        rows = (yield from asker.ask(server.page(agent_id, number))).memories
        fresh = [row for row in rows if row.id not in index]
        newer.update((row.id, (row.ids, _words(row))) for row in fresh)
        if len(fresh) < len(rows) or len(rows) < server.PER_PAGE:
            index.update(newer)  # all at once: after a walk that broke off, the next one must not stop half-way
            return
        number += 1


def _clashes(draft: Draft, index: dict[str, tuple[frozenset[str], int]]) -> bool:
    own = hash(tuple(words(draft.content)))
    return any(draft.client_id in ids and said != own for ids, said in list(index.values()))


def _words(row: WireMemory) -> int:
    return hash(tuple(words(row.content)))
