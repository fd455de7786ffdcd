"""Storing at the vendor's own server, which folds a text into any like row of the agent. Pure.

The answer to a store is compared with the draft. A row of another session, with other words, or dead is never
returned: it is set aside (deleted softly, noted in the journal first), the draft stored, and the row restored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from kronmem.core import kronvex_asides, kronvex_detection, memory_json
from kronmem.core import kronvex_calls as server
from kronmem.core import kronvex_repeats as repeats
from kronmem.core.kronvex_bodies import store
from kronmem.core.memory_json import WireMemory
from kronmem.core.retry_after import clock
from kronmem.core.status_errors import status_error
from kronmem.core.steps import Aside, Asker, Flow, local
from kronmem.core.wire import Reply
from kronmem.errors import (
    ConflictError,
    DeadlineError,
    InvalidInputError,
    InvalidRequestError,
    KronmemError,
    NotFoundError,
    StatusError,
)
from kronmem.models import Memory

if TYPE_CHECKING:
    from kronmem.core.calls import Draft

MOST_ASIDE = 5
"""So many rows may be in the way of one memory: each restore costs one memory of the month."""
LEAST_TIME = 1.0
"""Seconds kept for bringing rows back, about three requests: a store after a delete gets the rest of the time, and no
row is deleted with less than twice as much left."""
USED = "This id was already used for another memory"
IN_THE_WAY = (
    "Kronvex takes this text for a memory of another session or with other words, and that one {why}. Nothing was "
    "stored: say it in other words, or use one agent per user."
)
NOT_ANEW = (
    "At Kronvex tags, metadata, a lifetime, a type of your own and the pin of a session's memory change only if it is "
    "stored anew, and {why}. Nothing was changed."
)


CHANGED = "This memory was changed or deleted by another call at the same moment. Nothing was changed: try again."


class RowGoneError(ConflictError):
    """The row to be stored anew is gone: another call has forgotten or replaced it meanwhile."""


class TextRefusedError(InvalidInputError, InvalidRequestError):
    """A text that the service can never embed: bad input to a caller, a refusal for good to the outbox."""


def stored(draft: Draft, reply: Reply, asker: Asker) -> Flow[Memory]:
    """Read the answer to a store, and repair it where it is about another row."""
    if kronvex_detection.cannot_embed(reply):
        reply = yield from _tried_again(draft, reply, asker)
    if reply.status >= 300:
        raise status_error(reply)
    answer = _answer(reply)
    if not answer.row.deduplicated:
        return memory_json.memory(reply, draft.agent_id)
    repair = _Folded(draft, asker)
    return (yield from repair.run(repair.settle(answer)))


def renew(draft: Draft, own: WireMemory, asker: Asker) -> Flow[Memory]:
    """Store a memory anew in the place of its own row, which comes back if that fails; `unsafe` was asked before."""
    repair = _Folded(draft, asker)
    memory = yield from repair.run(repair.renew(own))
    if repair.forgotten:
        yield from asker.ask(server.delete(draft.agent_id, memory.id))
        raise RowGoneError(CHANGED, status=409)
    return memory.model_copy(update={"deduplicated": False})


def unsafe(own: WireMemory, asker: Asker) -> str | None:
    """Why a row must not be deleted for a moment; None: it may."""
    if own.ours is None:
        return "this one was not stored by kronmem"
    return "without an outbox that could lose it" if asker.journal is None else None


def _tried_again(draft: Draft, refused: Reply, asker: Asker) -> Flow[Reply]:
    """Tell a text that can never be embedded from an outage: does the server embed a short one, and this one then?"""
    try:
        yield from asker.ask(server.probe(draft.agent_id))
    except KronmemError:
        return refused
    try:
        return (yield from asker.ask(store(draft, attempts=1)))
    except StatusError as error:
        if error.status != 503:
            raise
    raise TextRefusedError(
        f"the service embeds other texts but not this one of {len(draft.content)} characters: its limit is 8,192 "
        "tokens, about 32,000 Latin letters or 8,000 Chinese characters; shorten or split the text",
        status=422,
    )


@dataclass(frozen=True)
class _Answer:
    """The row that answered a store, and the time at the server."""

    row: WireMemory
    now: datetime


def _answer(reply: Reply) -> _Answer:
    return _Answer(memory_json.row(reply), clock(reply))  # the server's own clock decides what has run out


@dataclass
class _Folded:
    """One store that was folded, until the memory is stored, found or refused."""

    draft: Draft
    asker: Asker
    aside: list[Aside] = field(default_factory=lambda: list[Aside]())
    replaced: list[Aside] = field(default_factory=lambda: list[Aside]())
    former: tuple[str, ...] = ()
    deleted: int = 0
    looked: bool = False
    forgotten: bool = False
    """Somebody has forgotten the own row while it was deleted."""

    def run(self, work: Flow[Memory]) -> Flow[Memory]:
        """Do it, then bring back the rows that were set aside, whether it went well or not."""
        try:
            try:
                memory = yield from work
            except KronmemError:
                yield from self._restore([*self.aside, *self.replaced])
                raise
            yield from self._restore([*self.aside])
            for entry in [*self.replaced]:
                self.forgotten |= yield from self._clear(entry)
        except KronmemError:
            raise
        except BaseException:  # cancelled, so nothing more can be sent: the next call brings them back
            self.asker.abandoned.extend([*self.aside, *self.replaced])
            raise
        return memory

    def settle(self, answer: _Answer) -> Flow[Memory]:
        """Make way for the draft until it is stored, or find the row that it already is."""
        wanted = self.draft
        while True:
            own = yield from self._own(answer)
            if own is None:
                yield from self._set_aside(answer)
            else:
                change = repeats.change(self.draft, own, answer.now)
                if change is None:
                    return self._known(own)
                if change.anew is None:
                    return self._known((yield from self._patched(own, change)))
                if why := unsafe(own, self.asker):
                    raise ConflictError(NOT_ANEW.format(why=why), status=409)
                if (yield from self._replace(own)):
                    wanted = change.anew
            stored = yield from self._store(wanted)
            if isinstance(stored, Memory):
                return stored
            answer = stored

    def renew(self, own: WireMemory) -> Flow[Memory]:
        """Store the draft in the place of the own row; one that is gone was forgotten, and must not come back."""
        if not (yield from self._replace(own)):
            raise RowGoneError(CHANGED, status=409)
        stored = yield from self._store(self.draft)
        return stored if isinstance(stored, Memory) else (yield from self.settle(stored))

    def _store(self, wanted: Draft) -> Flow[Memory | _Answer]:
        """The stored memory, or the row that it was folded into."""
        keep = LEAST_TIME if self.aside or self.replaced else 0.0
        reply = yield from self.asker.ask(store(wanted, self.former), keep)
        answer = _answer(reply)
        if answer.row.deduplicated:
            return answer
        memory = memory_json.memory(reply, self.draft.agent_id)
        return memory.model_copy(update={"deduplicated": bool(self.former)})

    def _patched(self, own: WireMemory, change: repeats.RepeatEffect) -> Flow[WireMemory]:
        for pinned in change.pins:
            own = yield from self.asker.ask(server.patch(self.draft.agent_id, own.id, {"pinned": pinned}))
        return own

    def _known(self, own: WireMemory) -> Memory:
        return memory_json.to_memory(own, self.draft.agent_id).model_copy(update={"deduplicated": True})

    # ── the own row ──────────────────────────────────────────────────────────────────────────────────────────────

    def _own(self, answer: _Answer) -> Flow[WireMemory | None]:
        """The row that already is this memory: the one in the answer, or one that the server did not choose."""
        row = answer.row
        if (row.ours or {}).get("id") == self.draft.client_id:
            if not repeats.same_words(row.content, self.draft.content):
                raise ConflictError(USED, status=409)
            return row
        if self._fits(answer.row, answer.now):
            return row
        if self.looked:
            return None
        self.looked = True
        alike = yield from server.like(self.draft.agent_id, self.draft.content, self.asker)
        return next((one for one in alike if self._fits(one, answer.now)), None)

    def _fits(self, row: WireMemory, now: datetime) -> bool:
        same = row.session_id == self.draft.session_id and repeats.same_words(row.content, self.draft.content)
        return same and not row.superseded and not repeats.ended(row, now)

    def _replace(self, own: WireMemory) -> Flow[bool]:
        """Delete the own row, which comes back if it cannot be stored anew; False: it is gone already."""
        deleted = yield from self._delete(self._entry(own), self.replaced)
        if deleted:
            former = dict.fromkeys((*self.former, *own.lineage))
            self.former = tuple(one for one in former if one != self.draft.client_id)
        return deleted

    def _entry(self, row: WireMemory) -> Aside:
        return kronvex_asides.new_entry(self.draft.agent_id, row.id)

    # ── rows in the way ──────────────────────────────────────────────────────────────────────────────────────────

    def _set_aside(self, answer: _Answer) -> Flow[None]:
        row, entry = answer.row, self._entry(answer.row)
        if repeats.ended(row, answer.now):  # the server sweeps it away within the hour
            yield from self._delete(entry, None)
            return
        if row.ours is None and not row.superseded:
            raise ConflictError(IN_THE_WAY.format(why="was not stored by kronmem"), status=409)
        if self.asker.journal is None:
            raise ConflictError(IN_THE_WAY.format(why="cannot be set aside without an outbox"), status=409)
        yield from self._delete(entry, self.aside)

    def _delete(self, entry: Aside, noted: list[Aside] | None) -> Flow[bool]:
        """Delete a row; False: another call has, and only that one may bring it back."""
        if self.deleted == MOST_ASIDE:
            raise ConflictError(IN_THE_WAY.format(why=f"is one of more than {MOST_ASIDE}"), status=409)
        if self.asker.left() < 2 * LEAST_TIME:
            raise DeadlineError("not enough time is left to set a memory aside and bring it back", sent=False)
        self.deleted += 1
        journal = self.asker.journal
        if noted is not None:
            noted.append(entry)
            if journal is not None:
                yield from local(partial(journal.put, entry))
        try:
            yield from self.asker.ask(server.delete(entry.agent_id, entry.memory_id))
        except NotFoundError:
            if noted is not None:
                yield from self._clear(entry)
            return False
        return True

    def _restore(self, entries: list[Aside]) -> Flow[None]:
        """Bring rows back; one that cannot be brought back now stays in the journal, and the next call tries again."""
        for entry in entries[::-1]:
            try:
                yield from kronvex_asides.bring_back(entry, self.asker)
            except KronmemError:
                self.asker.abandoned.append(entry)
                continue
            self._ended(entry)

    def _clear(self, entry: Aside) -> Flow[bool]:
        """Drop an entry; True: its row was forgotten meanwhile."""
        forgotten = yield from kronvex_asides.cleared(entry, self.asker)
        self._ended(entry)
        return forgotten

    def _ended(self, entry: Aside) -> None:
        for noted in (self.aside, self.replaced):
            noted[:] = [one for one in noted if one != entry]
