"""The vendor's own server, with the two dialects and all its habits. The core knows one object of all this.

habit                                                               handled in
------------------------------------------------------------------- -------------------------------------------------
ids are UUIDs; agents are made by name, not atomically              agents: one resolution per name and process
a demo key has one agent and allows one                             agents: the empty one gets the user's name
any id that reads as a UUID is 404, not 422                         agents: a 404 about it looks for the name
other types are refused, episodic ones re-classified                core/memory_json, core/memory_json: own names travel
a text is folded into any like row: session, words, dead or alive   storing: compared, imported beside it, or refused
pin, tags, lifetime of a repeat are dropped                         storing: PATCH, or stored in place of the own row
a PATCH changes no metadata, where own type and pin may be          storing: PATCH, or stored in place of the own row
a newer text hides like ones of every session, but no pinned ones   dialect.for_server: those of sessions are pinned
a text that cannot be embedded is 503, as in an outage              storing: a probe separates them
a stalled store and its repeat are both stored                      reading: shown once, the surplus deleted
recall cuts at 20 before tags and own types are looked at           reading: the rest from the listing
it leaves nothing out and knows no standing notes                   reading: left out, listed every 60 s
a name in the query adds rows past every filter                     core/inputs.keep, reading
inject-context holds superseded text, ignores session and type      core/calls: made from the memories
the listing shows superseded rows                                   core/flows
ids are the server's own, and no route reads one memory             reading: by metadata, by the listing
a used-up day names 86400 seconds and ends at midnight UTC          dialect.received
every 50th store merges like rows without session, tags and id      named by forget and README; pinned ones are spared
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

from pydantic_core import to_json

from kronmem.core import memory_json
from kronmem.core.calls import ContextQuery, Draft, Forget, ListingQuery, MemoryChange, RecallQuery
from kronmem.core.policy import read
from kronmem.core.wire import Asker, Call, Flow, Reply
from kronmem.errors import KronmemError, StatusError
from kronmem.kronvex import dialect, reading, storing
from kronmem.kronvex.agents import Agents
from kronmem.models import Memory

T = TypeVar("T")


@dataclass
class Kronvex(Agents):
    """The vendor of one service and key: see `kronmem.core.abilities.Vendor`."""

    undone: storing.Undone = field(default_factory=lambda: list[tuple[str, str]]())
    notes: reading.Notes = field(default_factory=lambda: dict[str, tuple[float, list[reading.Scored]]]())
    known_ids: storing.Known = field(default_factory=lambda: dict[str, dict[str, tuple[frozenset[str], int]]]())

    def misses_agent(self, reply: Reply) -> bool:
        """Does the service know no agent under the id in the path?"""
        return dialect.wants_uuid(reply) or dialect.agent_is_gone(reply)

    def wrote(self, reply: Reply) -> bool:
        """Is a reply by the vendor's own server?"""
        return dialect.is_vendor(reply)

    def received(self, reply: Reply) -> Reply:
        """A reply of a failure in the meaning that every service gives to its status and headers."""
        return dialect.received(reply)

    def prepared(self, call: Call[T], asker: Asker) -> Flow[Call[T]]:
        """The call as its server should get it, after the checks that it does not make itself."""
        yield from self._redo(asker)
        self._outdate(call)
        draft = call.vendor
        if not isinstance(draft, Draft):
            return call
        if draft.own_id:
            yield from storing.unused(draft, self.known_ids, asker)
        return replace(call, body=to_json(dialect.for_server(draft.fields())), older=None)

    def _outdate(self, call: Call[T]) -> None:
        """List the standing notes again after a call that may change them."""
        if call.method != "GET" and call.name not in ("recall", "inject_context"):
            self.notes.pop(call.agent_id or "", None)

    def _redo(self, asker: Asker) -> Flow[None]:
        """Bring back the rows that cancelled calls have left deleted, within half of the time there is."""
        while self.undone:
            try:
                agent_id, memory_id = self.undone.pop()
            except IndexError:  # another thread was faster
                return
            try:
                yield from self.restore(agent_id, memory_id, asker, asker.left() / 2)
            except BaseException as error:
                self.undone.append((agent_id, memory_id))
                if isinstance(error, KronmemError):
                    return  # the next call tries again
                raise

    def answer(self, call: Call[T], reply: Reply, asker: Asker) -> Flow[T]:
        """Read the reply to a call, and ask for more where it is not the answer."""
        self._outdate(call)  # once more: they may have been listed meanwhile
        flow: Flow[object]
        match call.vendor:
            case Draft() as draft:
                flow = storing.stored(draft, reply, asker, self.undone)
            case RecallQuery() as asked:
                flow = reading.recalled(asked, reply, asker, self.notes)
            case ContextQuery() as question:
                found = yield from reading.context(question, reply, asker, self.notes)
                return read(call, reply) if found is None else cast("T", found)
            case ListingQuery(agent_id):
                flow = reading.listed(agent_id, reply, asker)
            case Forget(agent_id, memory_id):
                flow = reading.forgotten(agent_id, memory_id, reply, asker)
            case _:
                return read(call, reply)
        return cast("T", (yield from flow))

    def get(self, agent_id: str, memory_id: str, asker: Asker) -> Flow[Memory]:
        """Read one memory where no route does."""
        return memory_json.to_memory((yield from reading.current(agent_id, memory_id, asker)), agent_id)

    def update(self, agent_id: str, memory_id: str, change: MemoryChange, asker: Asker) -> Flow[Memory]:
        """Change pin or type of one memory."""
        return storing.updated(agent_id, memory_id, change, asker, self.undone)

    def restore(self, agent_id: str, memory_id: str, asker: Asker, keep: float = 0.0) -> Flow[None]:
        """Bring a deleted memory back; one that is gone for good, or not deleted, stays as it is."""
        try:
            yield from asker.ask(dialect.restore(agent_id, memory_id), keep)
        except StatusError as error:
            if error.status not in (404, 409):
                raise
