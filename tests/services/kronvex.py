"""Kronvex as its server really behaves: every word and every quirk here was recorded (tests/samples/kronvex.json).

Only the similarity is made up: the cosine of two bags of words.
"""

from __future__ import annotations

import math
import secrets
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, ClassVar

from tests.services import bodies
from tests.services import validate as v
from tests.services.http import Call, JsonServer, Recorded, Refused, Reply, Route
from tests.services.quirks import (
    broken,
    classify,
    embeddable,
    fits,
    hit,
    listed,
    memory_json,
    refuse_poison,
    refuse_unembeddable,
    session_counts,
    supersede,
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

    `plan` names the plan in messages; "demo" allows one agent. `rate_limit` recalls per minute, `daily_limit` recalls
    per day and `memory_limit` stores are allowed. `key` is let in, and `other_key` too, with agents of its own.
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
        daily_limit: int | None = None,
        memory_limit: int | None = None,
        clock: Clock = now_utc,
        on_request: Callable[[Recorded], None] | None = None,
    ) -> None:
        super().__init__(on_request=on_request)
        self.other_key = "kv-" + secrets.token_hex(16)
        self.agents: list[Agent] = []
        self.plan = plan
        self._rate_limit = rate_limit
        self._daily_limit = daily_limit
        self._memory_limit = memory_limit
        self._clock = clock
        self._recalls: deque[datetime] = deque()
        self._stores = 0

    # The order of the real server: key, then path and body, then rate, then agent.

    def keys(self) -> set[str]:
        """Both keys are good."""
        return {self.key, self.other_key}

    def dispatch(self, call: Call) -> Reply:
        """Check what the route wants checked, then call its handler."""
        self.authenticate(call)
        call.values = self._check(call)
        if call.route.extra.get("limited"):
            self._check_rate(call)
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

    def _check_rate(self, call: Call) -> None:
        now = self._clock()
        self._check_day(call, now)
        if self._rate_limit is None:
            return
        minute = [moment for moment in self._recalls if moment > now - timedelta(minutes=1)]
        if len(minute) >= self._rate_limit:
            limit = f"({self._rate_limit} req/min for {self.plan} plan)"
            message = f"Rate limit exceeded {limit}. Upgrade for higher limits."
            raise Refused(429, message, {"retry-after": "60", "x-ratelimit-remaining": "0"})

    def _check_day(self, call: Call, now: datetime) -> None:
        limit = self._daily_limit
        used = sum(moment.date() == now.date() for moment in self._recalls)
        if limit is None or used < limit or call.route.handler != "recall":
            return
        message = f"Daily recall limit reached ({limit}/day on {self.plan.upper()} plan). Resets at midnight UTC."
        detail = {"error": "daily_quota_exceeded", "message": message, "current": used, "limit": limit}
        day = {"x-ratelimit-limit-day": str(limit), "x-ratelimit-used-day": str(used)}
        more = {"plan": self.plan, "upgrade_url": "https://kronvex.io/dashboard#billing"}
        headers = {"retry-after": "86400", **day, "x-ratelimit-reset-day": "midnight UTC"}
        raise Refused(429, {**detail, **more}, headers)

    def _agent(self, call: Call) -> Agent:
        for agent in self.agents:
            if agent.id == call.params["agent_id"] and agent.owner == call.key:
                return agent
        raise Refused(404, "Agent not found")

    # Agents

    def create_agent(self, call: Call) -> Reply:
        """Make an agent; the name may exist already."""
        mine = sum(agent.owner == call.key for agent in self.agents)
        if self.plan == "demo" and mine >= 1:
            message = "Agent limit of 1 reached for plan 'demo'. Upgrade to add more agents."
            raise Refused(402, self._limit("agent_limit_reached", message, {"agents_used": mine, "limit": 1}))
        refuse_poison(call.values)
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
        self._check_quota()
        refuse_unembeddable(values["content"])
        refuse_poison(values)
        for row in agent.kept():
            if similarity(row.content, values["content"]) >= 0.95:
                return Reply(201, self._stored(agent, row, deduplicated=True), {"x-dedup-hit": "true"})
        row = self._row(agent, values)
        resolved = supersede(agent, row)
        agent.rows.append(row)
        self._stores += 1
        return Reply(201, self._stored(agent, row, conflict_detected=resolved > 0, conflicts_resolved=resolved))

    def _check_quota(self) -> None:
        limit = self._memory_limit
        if limit is not None and self._stores >= limit:
            message = f"Monthly memory limit of {limit} reached for plan '{self.plan}'. "
            message += "Resets at next billing cycle or upgrade to continue."
            numbers = {"memories_used_this_cycle": self._stores, "limit": limit}
            raise Refused(402, self._limit("memory_limit_reached", message, numbers))

    def _limit(self, error: str, message: str, numbers: dict[str, int]) -> dict[str, Any]:
        more = {"plan": self.plan, "upgrade_url": "https://kronvex.io/#pricing"}
        return {"error": error, "message": message, **numbers, **more}

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
        self._recalls.append(self._clock())
        refuse_unembeddable(query)
        refuse_poison(call.values)
        hits = self._hits(call.agent, query, call.values)
        return Reply(200, {"query": query, "results": hits, "total_found": len(hits)}, self._rate_headers())

    def _rate_headers(self) -> dict[str, str]:
        if self._rate_limit is None:
            return {}
        reset = math.ceil((self._clock() + timedelta(minutes=1)).timestamp())
        return {"x-ratelimit-remaining": str(self._rate_limit - 1), "x-ratelimit-reset": str(reset)}

    def _hits(self, agent: Agent, query: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        now = self._clock()
        live = agent.live(now)
        close = [(row, similarity(query, row.content)) for row in live if not row.superseded_by and fits(row, values)]
        near = sorted((pair for pair in close if pair[1] >= values["threshold"]), key=lambda pair: -pair[1])
        near = near[: values["top_k"]]
        found = {row.id for row, _ in near}
        # The graph looks at names alone: not at session, type, threshold or top_k, nor whether a row was superseded.
        stray = [(row, 0.5) for row in live[::-1] if row.id not in found and entities(row.content) & entities(query)]
        return [hit(row, score, now) for row, score in near + stray]

    def inject_context(self, call: Call) -> Reply:
        """A block of text for a prompt; session and type are ignored."""
        message = call.values["message"]
        refuse_unembeddable(message)
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
            if embeddable(values["content"]):
                known = {name: values[name] for name in ("content", "memory_type", "metadata")}
                now = self._clock()
                call.agent.rows.append(Row(call.agent.id, created_at=now, expires_at=expiry(values, now), **known))
            else:
                errors.append(f"Item {index}: Error code: 500 - boom")
        imported = len(call.values["memories"]) - len(errors)
        self._stores += imported
        return Reply(200, {"imported": imported, "failed": len(errors), "errors": errors})


def _parsed(request: Recorded) -> Any:
    return v.parse(request.content, request.headers.get("content-type", ""))
