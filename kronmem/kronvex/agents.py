"""Agents by name: under which id Kronvex keeps an agent, found or made once per name and process.

Names are not unique there and making an agent is not atomic, so threads, tasks and the outbox wait for one
resolution, look again after making, and all end on the oldest agent of the name. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar, cast

from pydantic import JsonValue

from kronmem.api.rules import RESERVED
from kronmem.core import calls
from kronmem.core.policy import detail, read, status_error
from kronmem.core.wire import Asker, Call, Flow, Pause, Reply
from kronmem.errors import DeadlineError, QuotaError
from kronmem.models import AgentInfo

T = TypeVar("T")

_FIRST_LOOK, _LONGEST_LOOK = 0.005, 0.1
"""How long a call that waits for another one's resolution sleeps between looks: about a round trip at most."""
_ADOPTING = ""
"""The flight of whoever renames the one agent of a plan; no agent has an empty name."""


@dataclass
class Flight:
    """A resolution under way: `done` when it came to an answer, not when it failed or was given up."""

    done: bool = False
    found: str | None = None


@dataclass
class Agents:
    """The agents of one service and key that this process knows by id."""

    notice: Callable[[str], None] = lambda message: None
    ids: dict[str, str] = field(default_factory=lambda: dict[str, str]())
    flights: dict[str, Flight] = field(default_factory=lambda: dict[str, Flight]())

    def find_agent(self, call: Call[T], known: str | None, asker: Asker) -> Flow[str | None]:
        """The id of the agent of a call, made for a write; None: there is none. Under `known` it is there no more."""
        return Resolver(self, call.agent_id or "", known, call.unknown is None, asker).run()

    def drop_agent(self, agent_id: str) -> None:
        """An agent was deleted."""
        self.ids.pop(agent_id, None)

    def after_fork(self) -> None:
        """Drop the look-ups of other threads, which a forked child does not have."""
        self.flights.clear()


@dataclass(frozen=True)
class Resolver:
    """One call's wish for the id of `name`; `stale` is the id under which the service no longer knows it."""

    agents: Agents
    name: str
    stale: str | None
    create: bool
    asker: Asker

    def run(self) -> Flow[str | None]:
        """The id, or None when there is no such agent and none may be made; one flight per name."""
        while True:
            known = self.agents.ids.get(self.name)
            if known is not None and known != self.stale:
                return known
            mine = Flight()
            try:  # around the entry too: an exception out of a signal handler may come at any point
                flight = self.agents.flights.setdefault(self.name, mine)
                if flight is mine:
                    return (yield from self._fly(mine, self._find_or_make()))
            finally:
                self._land(self.name, mine)
            yield from self._wait(self.name, flight)
            if flight.done and (flight.found is not None or not self.create):
                return flight.found

    def _fly(self, flight: Flight, work: Flow[str | None]) -> Flow[str | None]:
        flight.found = yield from work
        if flight.found is not None:
            self.agents.ids[self.name] = flight.found
        else:
            self.agents.ids.pop(self.name, None)
        flight.done = True
        return flight.found

    def _land(self, key: str, flight: Flight) -> None:
        if self.agents.flights.get(key) is flight:
            del self.agents.flights[key]

    def _wait(self, key: str, flight: Flight) -> Flow[None]:
        pause = _FIRST_LOOK
        while self.agents.flights.get(key) is flight:
            if self.asker.left() <= 0:
                raise DeadlineError(f"timed out while another call looked up the agent {self.name!r}", sent=False)
            yield Pause(min(pause, self.asker.left()))
            pause = min(pause * 2, _LONGEST_LOOK)

    def _find_or_make(self) -> Flow[str | None]:
        found = oldest_named((yield from self._listed()), self.name)
        if found is not None or not self.create:
            return found
        making = calls.create_agent(self.name)
        made = yield from self.asker.send(making)
        # Look again, even after a refusal: another process may have made it at the same moment, and
        # whoever looks now must end on the same one, the oldest of that name.
        there = yield from self._listed()
        if (found := oldest_named(there, self.name)) is not None:
            return found
        if made.status == 402:
            return (yield from self._adopt(made, there))
        return read(making, made).id

    def _listed(self) -> Flow[list[AgentInfo]]:
        listing = calls.agents()
        return read(listing, (yield from self.asker.send(listing)))

    # ── a plan of one agent ──────────────────────────────────────────────────────────────────────────────────────

    def _adopt(self, refused: Reply, there: list[AgentInfo]) -> Flow[str | None]:
        """Give the one empty agent that a demo key is born with the user's name; one name at a time."""
        if _limit(refused) != 1 or len(there) != 1:
            raise _quota(refused, there)
        mine = Flight()
        try:
            while (flight := self.agents.flights.setdefault(_ADOPTING, mine)) is not mine:
                yield from self._wait(_ADOPTING, flight)
            return (yield from self._fly(mine, self._rename(refused)))
        finally:
            self._land(_ADOPTING, mine)

    def _rename(self, refused: Reply) -> Flow[str | None]:
        """Mark it, look, rename it, look again.

        Another process may do so for another name at the same moment, and nothing at the server is atomic. Whoever
        marks it last finds it renamed, or the other one finds its mark gone: never do both go on.
        """
        there = yield from self._listed()
        only = there[0] if len(there) == 1 else None
        if only is None or only.memory_count or _marked(only) not in (None, self.name):
            raise _quota(refused, there)
        marked = yield from self._changed(only, {"metadata": _with_mark(only, self.name)})
        if marked.name != only.name and _marked(marked) == self.name:  # it was another's already: so is the mark
            yield from self._changed(marked, {"metadata": _with_mark(marked, marked.name)})
        if (marked.name, _marked(marked)) != (only.name, self.name):
            raise _quota(refused, [marked])
        renamed = yield from self._changed(marked, {"name": self.name})
        if (other := _marked(renamed)) not in (None, self.name):  # it is another's: so is the name
            yield from self._changed(renamed, {"name": other})
        if (renamed.name, _marked(renamed)) != (self.name, self.name):
            raise _quota(refused, [renamed])
        self.agents.notice(
            f"this key's plan allows one agent: its empty agent {only.name!r} is now named {self.name!r}"
        )
        return renamed.id

    def _changed(self, agent: AgentInfo, fields: dict[str, JsonValue]) -> Flow[AgentInfo]:
        """Change an agent; the answer is how it is afterwards, whoever else changed it."""
        changing = calls.update_agent(agent.id, fields)
        changed = read(changing, (yield from self.asker.send(changing)))
        return next((one for one in (yield from self._listed()) if one.id == agent.id), changed)


def _marked(agent: AgentInfo) -> str | None:
    """The name for which kronmem took an agent."""
    if RESERVED not in agent.metadata:
        return None
    mark = agent.metadata[RESERVED]
    return str(mark.get("name", "")) if isinstance(mark, dict) else ""


def _with_mark(agent: AgentInfo, name: str) -> dict[str, JsonValue]:
    return {**agent.metadata, RESERVED: {"name": name}}


def _limit(refused: Reply) -> int | None:
    said = detail(refused)
    limit = cast("dict[str, object]", said).get("limit") if isinstance(said, dict) else None
    return limit if isinstance(limit, int) else None


def _quota(refused: Reply, there: Iterable[AgentInfo]) -> QuotaError:
    """The service's refusal, with the agents there are and the two ways out."""
    error = status_error(refused)
    named = ", ".join(f"{one.name!r} ({one.memory_count} memories)" for one in list(there)[:5])
    way_out = f" There is {named}: use that name as agent_id, or a plan with more agents." if named else ""
    message = error.message + way_out
    return QuotaError(message, status=402, request_id=error.request_id, retry_after=error.retry_after)


def oldest_named(known: Iterable[AgentInfo], name: str) -> str | None:
    """The id of the oldest agent of that name: names are not unique there, and everyone must pick the same."""
    named = [one for one in known if one.name == name]
    if not named:
        return None
    return min(named, key=lambda one: (one.created_at.timestamp() if one.created_at else 0.0, one.id)).id
