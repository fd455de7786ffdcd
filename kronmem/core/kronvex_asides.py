"""Rows that a repair at the vendor's own server has deleted for a moment: brought back, or forgotten meanwhile. Pure.

Nobody sees such a row, so that `forget` and `clear` cannot delete it: they mark its entry in the journal, and whoever
was to bring it back leaves it deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

from kronmem.core import kronvex_calls as server
from kronmem.core.memory_json import WireMemory
from kronmem.core.steps import Aside, Asker, Flow, RepairJournal, local
from kronmem.errors import KronmemError, NotFoundError, StatusError

_numbers = count(1)


def new_entry(agent_id: str, memory_id: str) -> Aside:
    """An entry for the journal, distinct from any other of this process."""
    return Aside(agent_id, memory_id, next(_numbers))


def recover(journal: RepairJournal, asker: Asker) -> Flow[None]:
    """Bring back the rows that a repair had set aside when its process was killed.

    Each is taken over first: of two processes that start at once, the slower one would restore a row behind a `forget`.
    """
    for left in (yield from local(journal.unfinished)):
        entry = new_entry(left.agent_id, left.memory_id)
        if not (yield from local(partial(journal.take_over, left, entry))):
            continue
        try:
            yield from bring_back(entry, asker)
        except KronmemError:
            yield from local(partial(journal.give_back, entry))
            raise


def resume(abandoned: list[Aside], asker: Asker) -> Flow[None]:
    """Bring back the rows that a cancelled call of this client left deleted, within half of the time there is."""
    while abandoned:
        try:
            entry = abandoned.pop()
        except IndexError:  # another thread was faster
            return
        try:
            yield from bring_back(entry, asker, keep=asker.left() / 2)
        except StatusError:
            return  # the journal has it still
        except BaseException as error:
            abandoned.append(entry)
            if isinstance(error, KronmemError):
                return  # the next call tries again
            raise


def bring_back(entry: Aside, asker: Asker, keep: float = 0.0) -> Flow[None]:
    """Restore a row and drop its entry; one that was forgotten while it was deleted stays so."""
    if not (yield from _is_forgotten(entry, asker)):
        try:
            yield from asker.ask(server.restore(entry.agent_id, entry.memory_id), keep)
        except StatusError as error:
            if error.status not in (404, 409):  # gone for good, or not deleted
                raise
        if not (yield from cleared(entry, asker)):
            return
        yield from _delete(entry, asker)
    yield from cleared(entry, asker)


def cleared(entry: Aside, asker: Asker) -> Flow[bool]:
    """Drop an entry; True: its row was forgotten meanwhile."""
    if (journal := asker.journal) is None:
        return False
    try:
        return (yield from local(partial(journal.clear, entry)))
    except KronmemError:
        return False  # the next start finds the row restored, and clears it then


def forget(agent_id: str, fits: Callable[[WireMemory], bool] | None, asker: Asker) -> Flow[int]:
    """Forget the rows of an agent that a repair has set aside, all or those that fit; how many there were."""
    if (journal := asker.journal) is None:
        return 0
    try:
        noted = yield from local(partial(journal.noted, agent_id))
    except KronmemError:
        return 0  # a broken outbox keeps nobody from a service that is well
    forgotten: set[str] = set()
    for entry in noted:
        if fits is not None:
            try:
                row = yield from asker.ask(server.patch(agent_id, entry.memory_id, {}))
            except NotFoundError:
                continue
            if not fits(row):
                continue
        if (yield from local(partial(journal.forget, entry))):
            forgotten.add(entry.memory_id)
    return len(forgotten)


def _is_forgotten(entry: Aside, asker: Asker) -> Flow[bool]:
    if (journal := asker.journal) is None:
        return False
    try:
        return (yield from local(partial(journal.is_forgotten, entry)))
    except KronmemError:
        return False  # a busy file keeps no memory away


def _delete(entry: Aside, asker: Asker) -> Flow[None]:
    try:
        yield from asker.ask(server.delete(entry.agent_id, entry.memory_id))
    except NotFoundError:
        return
