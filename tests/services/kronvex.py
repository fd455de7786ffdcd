"""Kronvex as its server really behaves: every word and every quirk here was recorded (tests/samples/kronvex.json).

Only the similarity is made up: the cosine of two bags of words.
"""

from __future__ import annotations

import math
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from email.utils import format_datetime
from typing import Any, ClassVar

from tests.services import bodies
from tests.services import validate as v
from tests.services.habits import USUAL
from tests.services.habits import known as known_habits
from tests.services.http import Call, JsonServer, Recorded, Refused, Reply, Route
from tests.services.limits import Limits
from tests.services.quirks import (
    broken,
    classify,
    consolidate,
    embeddable,
    fits,
    hit,
    likeness,
    listed,
    memory_json,
    refuse_poison,
    session_counts,
    supersede,
    unembeddable,
)
from tests.services.rows import Agent, Clock, Row, entities, expiry, now_utc, similarity

SORTS: dict[str, Callable[[list[Row]], list[Row]]] = {
    "recent": lambda rows: rows[::-1],
    "oldest": lambda rows: rows,
    "access_count": lambda rows: sorted(rows, key=lambda row: -row.access_count),
}

AGENTS = "/api/v1/agents"
ONE = AGENTS + "/{agent_id}"
MEMORIES = ONE + "/memories"


class KronvexServer(JsonServer):
    """The recorded server: UUIDs only, `results`, leaks, dedup, and dead connections after a 500.

    `plan` decides how much is allowed; a key of the plan "demo" is born with the one agent that it allows.
    `rate_limit` recalls per minute, `daily_limits` requests per day by handler and `memory_limit` stores stand in for
    the plan's numbers. `habits` names the unkindnesses that are on, `gap` is called by the name of a handler, without
    the lock, between its look and its insert. `key` is let in, and `other_key` too, with agents of its own.
    """

    routes: ClassVar[tuple[Route, ...]] = (
        Route("GET", "/health", "health", {"open": True}),
        Route("POST", AGENTS, "create_agent", {"body": bodies.AGENT, "limited": True}),
        Route("GET", AGENTS, "list_agents"),
        Route("GET", ONE, "get_agent"),
        Route("PATCH", ONE, "update_agent", {"body": v.mapping}),
        Route("DELETE", ONE, "delete_agent"),
        Route("POST", ONE + "/remember", "remember", {"body": bodies.REMEMBER, "limited": True}),
        Route("POST", ONE + "/recall", "recall", {"body": bodies.RECALL, "limited": True}),
        Route("POST", ONE + "/inject-context", "inject_context", {"body": bodies.INJECT, "limited": True}),
        Route("GET", ONE + "/sessions", "sessions"),
        Route("GET", MEMORIES, "memories", {"query": bodies.LIST}),
        Route("DELETE", MEMORIES, "clear"),
        Route("GET", MEMORIES + "/export", "export"),
        Route("DELETE", MEMORIES + "/{memory_id}", "delete_memory"),
        Route("PATCH", MEMORIES + "/{memory_id}", "update_memory", {"body": v.mapping}),
        Route("POST", MEMORIES + "/{memory_id}/restore", "restore"),
        Route("POST", MEMORIES + "/bulk-import", "bulk_import", {"body": bodies.IMPORT, "limited": True}),
        Route("POST", ONE + "/consolidate", "consolidate"),
    )
    base_headers: ClassVar[dict[str, str]] = {
        "x-ratelimit-limit": "1000",
        "x-ratelimit-window": "3600",
        "x-kronvex-version": "0.4.0",
    }

    def __init__(
        self,
        *,
        plan: str = "enterprise",
        rate_limit: int | None = None,
        daily_limits: Mapping[str, int] | None = None,
        memory_limit: int | None = None,
        clock: Clock = now_utc,
        habits: Iterable[str] = USUAL,
        gap: Callable[[str], None] | None = None,
        on_request: Callable[[Recorded], None] | None = None,
    ) -> None:
        super().__init__(on_request=on_request)
        self.other_key = "kv-" + secrets.token_hex(16)
        self.agents: list[Agent] = []
        self.habits = known_habits(habits)
        self.refuse: set[str] = set()
        """Answer 500 to every request with one of these methods."""
        self.embedding_down = False
        """Fail to embed any text, as in an outage of the embedding service."""
        self.limits = Limits(plan, clock, rate_limit, daily_limits, memory_limit)
        self._clock = clock
        self._gap = gap or Company().wait
        self._stores: Counter[str] = Counter()
        if plan == "demo":
            self.agents += [Agent("someone's agent", key, clock()) for key in (self.key, self.other_key)]

    # The order of the real server: key, path and body, minute, day, agent, month, embedding.

    def reply_to(self, request: Recorded) -> Reply:
        """Answer with the date of the server's own clock."""
        reply = super().reply_to(request)
        return replace(reply, headers={"date": format_datetime(self._clock(), usegmt=True), **reply.headers})

    def keys(self) -> set[str]:
        """Both keys are good."""
        return {self.key, self.other_key}

    def dispatch(self, call: Call) -> Reply:
        """Check what the route wants checked, then call its handler."""
        self.authenticate(call)
        if call.request.method in self.refuse:
            raise broken()
        call.values = self._check(call)
        if call.route.extra.get("limited"):
            self.limits.admit(call.route.handler)
        if "agent_id" in call.params:
            call.agent = self._agent(call)
        handler: Callable[[Call], Reply] = getattr(self, call.route.handler)
        return handler(call)

    def _check(self, call: Call) -> dict[str, Any]:
        request, extra = call.request, call.route.extra
        checks = [("path", v.model(dict.fromkeys(call.params, (v.identifier, v.REQUIRED))), call.params)]
        if "query" in extra:
            checks.append(("query", extra["query"], request.query))
        if "body" in extra:
            checks.append(("body", lambda _value, loc: extra["body"](_parsed(request), loc), None))
        try:
            path, *rest = v.collect(checks)(())
        except v.Invalid as invalid:
            raise Refused(422, invalid.items) from None
        call.params.update(path)
        return rest[0] if rest else {}

    def _agent(self, call: Call) -> Agent:
        for agent in self.agents:
            if agent.id == call.params["agent_id"] and agent.owner == call.key:
                return agent
        raise Refused(404, "Agent not found")

    # Agents

    def create_agent(self, call: Call) -> Reply:
        """Make an agent; the name may exist already."""
        self.limits.check_agents(sum(agent.owner == call.key for agent in self.agents))
        refuse_poison(call.values)
        self._pause("create_agent")
        agent = Agent(owner=call.key, created_at=self._clock(), **call.values)
        self.agents.append(agent)
        return Reply(201, agent.json())

    def list_agents(self, call: Call) -> Reply:
        """All agents of the key, newest first, never paged."""
        return Reply(200, [agent.json() for agent in reversed(self.agents) if agent.owner == call.key])

    def get_agent(self, call: Call) -> Reply:
        """One agent."""
        return Reply(200, call.agent.json())

    def update_agent(self, call: Call) -> Reply:
        """Change name or metadata, unchecked; the rest is ignored."""
        name = call.values.get("name", call.agent.name)
        if not isinstance(name, str) or len(name) > 255:
            raise broken()
        refuse_poison(call.values)
        call.agent.name = name
        call.agent.metadata = call.values.get("metadata", call.agent.metadata)
        return Reply(200, call.agent.json())

    def delete_agent(self, call: Call) -> Reply:
        """Remove an agent and all it remembers, for good."""
        self.agents.remove(call.agent)
        return Reply(204)

    # Memories

    def remember(self, call: Call) -> Reply:
        """Store, fold into an equal memory of any session, or supersede up to five close ones."""
        values, agent = call.values, call.agent
        self.limits.check_month()
        self._refuse_unembeddable(values["content"])
        refuse_poison(values)
        if (like := likeness(agent, values, self._clock(), self.habits)) is not None:
            return Reply(201, self._stored(agent, like, deduplicated=True), {"x-dedup-hit": "true"})
        self._pause("remember")
        row = self._row(agent, values)
        resolved = supersede(agent, row, self.habits)
        agent.rows.append(row)
        self._count(call.key, agent)
        more = {"conflict_detected": resolved > 0, "conflicts_resolved": resolved}
        return Reply(201, self._stored(agent, row, **more), self.limits.headers())

    def _pause(self, handler: str) -> None:
        """Leave room for others between look and insert."""
        if "races" in self.habits:
            with self._unlocked():
                self._gap(handler)

    @contextmanager
    def _unlocked(self) -> Iterator[None]:
        self.lock.release()
        try:
            yield
        finally:
            self.lock.acquire()

    def _refuse_unembeddable(self, text: str) -> None:
        if self.embedding_down or not embeddable(text, tokens="counts tokens" in self.habits):
            raise unembeddable()

    def _count(self, key: str, agent: Agent) -> None:
        self.limits.stored += 1
        self._stores[key] += 1
        if "consolidates" in self.habits and self._stores[key] % 50 == 0:
            consolidate(agent, self._clock())

    def consolidate(self, call: Call) -> Reply:
        """Merge like rows; the real server answers first and does it a moment later."""
        consolidate(call.agent, self._clock())
        return Reply(200, {"status": "consolidation_queued", "agent_id": call.agent.id})

    def _row(self, agent: Agent, values: dict[str, Any]) -> Row:
        now = self._clock()
        try:
            expires_at = expiry(values, now)
        except OverflowError:
            raise broken() from None
        known = {name: values[name] for name in ("content", "session_id", "metadata", "pinned")}
        return Row(agent.id, created_at=now, expires_at=expires_at, memory_type=classify(values), **known)

    def _stored(self, agent: Agent, row: Row, **more: Any) -> dict[str, Any]:
        return {**memory_json(row), "agent_memory_count": len(agent.kept()), **more}

    def recall(self, call: Call) -> Reply:
        """The closest memories, and whatever shares a name with the query."""
        query = call.values["query"]
        self._refuse_unembeddable(query)
        refuse_poison(call.values)
        hits = self._hits(call.agent, query, call.values)
        return Reply(200, {"query": query, "results": hits, "total_found": len(hits)}, self.limits.headers())

    def _hits(self, agent: Agent, query: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        now = self._clock()
        live = agent.live(now)
        close = [(row, similarity(query, row.content)) for row in live if not row.superseded_by and fits(row, values)]
        near = sorted((pair for pair in close if pair[1] >= values["threshold"]), key=lambda pair: -pair[1])
        near = near[: values["top_k"]]
        found = {row.id for row, _ in near}
        # The graph looks at names alone: not at session, type, threshold or top_k, nor whether a row was superseded.
        names = entities(query) if "graph extras" in self.habits else set()
        stray = [(row, 0.5) for row in live[::-1] if row.id not in found and entities(row.content) & names]
        return [hit(row, score, now) for row, score in near + stray]

    def inject_context(self, call: Call) -> Reply:
        """A block of text for a prompt; session and type are ignored."""
        message = call.values["message"]
        self._refuse_unembeddable(message)
        hits = self._hits(call.agent, message, call.values)
        lines = [f"- {one['memory']['content']} (confidence: {one['confidence']})" for one in hits]
        block = "\n".join(["[KRONVEX CONTEXT]", *lines]) if lines else ""
        return Reply(200, {"context_block": block, "memories_used": len(hits), "memories": hits})

    def sessions(self, call: Call) -> Reply:
        """The sessions of an agent, the latest used first."""
        return Reply(200, {"sessions": session_counts(call.agent.live(self._clock()))})

    def memories(self, call: Call) -> Reply:
        """One page of memories, superseded ones too."""
        values = call.values
        rows = SORTS[values["sort"]]([row for row in call.agent.live(self._clock()) if listed(row, values)])
        page, size = values["page"], values["per_page"]
        shown = [memory_json(row) for row in rows[(page - 1) * size : page * size]]
        pages = max(1, math.ceil(len(rows) / size))
        return Reply(200, {"memories": shown, "total": len(rows), "page": page, "per_page": size, "pages": pages})

    def export(self, call: Call) -> Reply:
        """Every memory at once, expired ones too."""
        rows = [memory_json(row) for row in reversed(call.agent.kept())]
        headers = {"content-disposition": f'attachment; filename="memories-{call.agent.id}.json"'}
        return Reply(200, {"agent_id": call.agent.id, "total": len(rows), "memories": rows}, headers)

    def clear(self, call: Call) -> Reply:
        """Delete all memories of an agent."""
        rows = call.agent.kept()
        for row in rows:
            row.deleted = True
        return Reply(200, {"deleted": len(rows)})

    def _memory(self, call: Call) -> Row:
        for row in call.agent.rows:
            if row.id == call.params["memory_id"]:
                return row
        raise Refused(404, "Memory not found")

    def delete_memory(self, call: Call) -> Reply:
        """Delete one memory, softly."""
        row = self._memory(call)
        if row.deleted:
            raise Refused(404, "Memory not found")
        row.deleted = True
        return Reply(204)

    def restore(self, call: Call) -> Reply:
        """Bring a deleted memory back."""
        row = self._memory(call)
        if not row.deleted:
            raise Refused(409, "Memory is not deleted")
        row.deleted = False
        self.limits.stored += 1
        return Reply(200, {"id": row.id, "restored": True, "content": row.content})

    def update_memory(self, call: Call) -> Reply:
        """Pin, unpin or retype, deleted or not; the rest is ignored."""
        row, values = self._memory(call), call.values
        kind = values.get("memory_type", row.memory_type)
        if not isinstance(kind, str) or len(kind) > 50:
            raise broken()
        row.memory_type = kind
        row.pinned = bool(values.get("pinned", row.pinned))
        if row.pinned:
            row.expires_at = None
        return Reply(200, memory_json(row))

    def bulk_import(self, call: Call) -> Reply:
        """Store up to 100 at once, with no session, no pin and no dedup; one that cannot be embedded is skipped."""
        refuse_poison(call.values)
        errors = []
        for index, values in enumerate(call.values["memories"]):
            if embeddable(values["content"], tokens="counts tokens" in self.habits):
                known = {name: values[name] for name in ("content", "memory_type", "metadata")}
                now = self._clock()
                call.agent.rows.append(Row(call.agent.id, created_at=now, expires_at=expiry(values, now), **known))
            else:
                errors.append(f"Item {index}: Error code: 500 - boom")
        imported = len(call.values["memories"]) - len(errors)
        self.limits.stored += imported
        return Reply(200, {"imported": imported, "failed": len(errors), "errors": errors})


class Company:
    """Waits a moment for others at the same place: those that come at once go on at once."""

    def __init__(self, moment: float = 0.05) -> None:
        self._moment = moment
        self._here = threading.Condition()
        self._arrived: Counter[str] = Counter()

    def wait(self, where: str) -> None:
        """Go on when somebody else has come too, or when the moment is over."""
        with self._here:
            self._arrived[where] += 1
            self._here.notify_all()
            before = self._arrived[where]
            self._here.wait_for(lambda: self._arrived[where] > before, self._moment)


def _parsed(request: Recorded) -> Any:
    return v.parse(request.content, request.headers.get("content-type", ""))
