"""Kronvex as the vendor's tutorials describe it: free ids, `limit`, flat memories, `context`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tests.services.http import Call, JsonServer, Recorded, Refused, Reply, Route
from tests.services.quirks import fits, session_counts
from tests.services.rows import Agent, Clock, Row, expiry, now_utc, similarity, stamp

AGENTS = "/api/v1/agents"
ONE = AGENTS + "/{agent_id}"
MEMORIES = ONE + "/memories"


class TutorialServer(JsonServer):
    """The documented server: an agent exists from its first memory on, under any id."""

    routes: ClassVar[tuple[Route, ...]] = (
        Route("GET", "/health", "health", {"open": True}),
        Route("POST", AGENTS, "create_agent"),
        Route("GET", AGENTS, "list_agents"),
        Route("GET", ONE, "get_agent"),
        Route("DELETE", ONE, "delete_agent"),
        Route("POST", ONE + "/remember", "remember"),
        Route("POST", ONE + "/recall", "recall"),
        Route("POST", ONE + "/inject-context", "inject_context"),
        Route("GET", ONE + "/sessions", "sessions"),
        Route("GET", MEMORIES, "memories"),
        Route("DELETE", MEMORIES, "clear"),
        Route("DELETE", MEMORIES + "/{memory_id}", "delete_memory"),
    )

    def __init__(self, *, clock: Clock = now_utc, on_request: Callable[[Recorded], None] | None = None) -> None:
        super().__init__(on_request=on_request)
        self.agents: dict[str, Agent] = {}
        self._clock = clock

    def dispatch(self, call: Call) -> Reply:
        """Take the body as it comes."""
        call.values = call.request.body if isinstance(call.request.body, dict) else {}
        return super().dispatch(call)

    def _open(self, call: Call, agent_id: str) -> Agent:
        return self.agents.setdefault(agent_id, Agent(agent_id, call.key, self._clock(), id=agent_id))

    def _live(self, call: Call, filters: dict[str, Any]) -> list[Row]:
        agent = self.agents.get(call.params["agent_id"])
        rows = agent.live(self._clock()) if agent else []
        return [row for row in rows if fits(row, filters)]

    def create_agent(self, call: Call) -> Reply:
        """Make an agent whose id is its name."""
        return Reply(201, self._open(call, required(call, "name")).json())

    def list_agents(self, _call: Call) -> Reply:
        """All agents, newest first."""
        return Reply(200, [agent.json() for agent in reversed(self.agents.values())])

    def get_agent(self, call: Call) -> Reply:
        """One agent."""
        agent = self.agents.get(call.params["agent_id"])
        if agent is None:
            raise Refused(404, "Agent not found")
        return Reply(200, agent.json())

    def delete_agent(self, call: Call) -> Reply:
        """Remove an agent and all it remembers."""
        if self.agents.pop(call.params["agent_id"], None) is None:
            raise Refused(404, "Agent not found")
        return Reply(204)

    def remember(self, call: Call) -> Reply:
        """Store a memory as it is; the same text again is the same memory."""
        values, now = call.values, self._clock()
        agent = self._open(call, call.params["agent_id"])
        for row in self._live(call, {}):
            if row.content == required(call, "content"):
                return Reply(201, {**memory_json(row), "deduplicated": True})
        known = {name: values[name] for name in ("memory_type", "session_id", "metadata", "pinned") if values.get(name)}
        row = Row(agent.id, required(call, "content"), now, expires_at=expiry(values, now), **known)
        agent.rows.append(row)
        return Reply(201, memory_json(row))

    def _closest(self, call: Call, default: int) -> list[dict[str, Any]]:
        query = required(call, "query")
        scored = [(row, similarity(query, row.content)) for row in self._live(call, call.values)]
        near = sorted((pair for pair in scored if pair[1] > 0), key=lambda pair: -pair[1])
        near = near[: call.values.get("limit") or default]
        return [{**memory_json(row), "score": score} for row, score in near]

    def recall(self, call: Call) -> Reply:
        """The memories that share words with the query, flat."""
        return Reply(200, {"memories": self._closest(call, 5)})

    def inject_context(self, call: Call) -> Reply:
        """The same as text, one memory on each line."""
        return Reply(200, {"context": "\n".join(f"- {memory['content']}" for memory in self._closest(call, 8))})

    def sessions(self, call: Call) -> Reply:
        """The sessions of an agent with their counts."""
        return Reply(200, {"sessions": session_counts(self._live(call, {}))})

    def memories(self, call: Call) -> Reply:
        """A stretch of the memories, newest first, by page and per_page or by limit and offset."""
        query = call.request.query
        rows = self._live(call, query)[::-1]
        size = int(query.get("per_page", query.get("limit", 20)))
        start = (int(query["page"]) - 1) * size if "page" in query else int(query.get("offset", 0))
        return Reply(200, {"memories": [memory_json(row) for row in rows[start : start + size]], "total": len(rows)})

    def clear(self, call: Call) -> Reply:
        """Delete the memories of an agent, or of one of its sessions."""
        rows = self._live(call, call.request.query)
        for row in rows:
            row.deleted = True
        return Reply(200, {"deleted": len(rows)})

    def delete_memory(self, call: Call) -> Reply:
        """Delete one memory."""
        for row in self._live(call, {}):
            if row.id == call.params["memory_id"]:
                row.deleted = True
                return Reply(204)
        raise Refused(404, "Memory not found")


def required(call: Call, name: str) -> str:
    """A text that must be in the body."""
    value = call.values.get(name)
    if not isinstance(value, str) or not value:
        raise Refused(422, f"{name} is required")
    return value


def memory_json(row: Row) -> dict[str, Any]:
    """A memory as the tutorials show it."""
    return {
        "id": row.id,
        "content": row.content,
        "memory_type": row.memory_type,
        "created_at": stamp(row.created_at),
        "expires_at": stamp(row.expires_at) if row.expires_at else None,
        "pinned": row.pinned,
        "metadata": row.metadata,
        "session_id": row.session_id,
    }
