"""A service to test, and a short way to call it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kronmem.core.wire import Request
from kronmem.engine.embedding import Embed
from kronmem.engine.service import Service
from kronmem.transport.local import postgres_service, sqlite_service

START = 1_800_000_000.0


@dataclass
class Clock:
    """A clock that stands still until it is told."""

    time: float = START

    def __call__(self) -> float:
        return self.time

    def pass_days(self, days: float) -> None:
        self.time += days * 86400


@dataclass
class Caller:
    """Calls a service as the owner; `agent` stands before paths that do not begin with a slash."""

    service: Service
    clock: Clock
    owner: str = ""
    agent: str = "bot"

    def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Sequence[tuple[str, str]] = (),
        headers: Sequence[tuple[str, str]] = (),
        timeout: float = 10.0,
    ) -> tuple[int, Any]:
        where = path if path.startswith("/") else f"/api/v1/agents/{self.agent}/{path}"
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        reply = self.service.handle(Request(method, where, tuple(query), raw, tuple(headers), timeout), self.owner)
        return reply.status, json.loads(reply.body) if reply.body else None

    def remember(self, content: str, **fields: object) -> Any:
        status, memory = self("POST", "remember", {"content": content, **fields})
        assert status == 201, memory
        return memory

    def recall(self, query: str, **fields: object) -> list[str]:
        status, reply = self("POST", "recall", {"query": query, **fields})
        assert status == 200, reply
        return [result["memory"]["content"] for result in reply["results"]]

    def hits(self, query: str, **fields: object) -> list[Any]:
        ours = {"kronmem": {"exclude": fields.pop("exclude")}} if "exclude" in fields else {}
        hits: list[Any] = self("POST", "recall", {"query": query, **fields, **ours})[1]["results"]
        return hits

    def contents(self, **query: str) -> list[str]:
        _, reply = self("GET", "memories", query=[("per_page", "100"), *query.items()])
        return [memory["content"] for memory in reply["memories"]]

    def as_(self, *, owner: str = "", agent: str = "bot") -> Caller:
        return Caller(self.service, self.clock, owner, agent)


def opened(path: str, clock: Clock, embed: Embed | None = None) -> Service:
    """The service on a file or a PostgreSQL url."""
    make = postgres_service if path.startswith("postgresql:") else sqlite_service
    return make(path, now=clock, embed=embed)


@contextmanager
def calling(path: str = ":memory:", *, clock: Clock | None = None, embed: Embed | None = None) -> Iterator[Caller]:
    """A caller of a service on `path`, a file or a PostgreSQL url, closed at the end."""
    clock = clock or Clock()
    service = opened(path, clock, embed)
    try:
        yield Caller(service, clock)
    finally:
        service.close()
