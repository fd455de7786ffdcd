"""A contract, as the server sees it: its routes, how a request is answered, where the key stands, how it says no."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from kronmem.api.routes import AnyRoute, Match
from kronmem.core.wire import Reply, Request
from kronmem.engine.service import Service
from kronmem.server.api_keys import Headers


@dataclass(frozen=True)
class Contract:
    """One vendor's API over the same service."""

    name: str
    routes: Sequence[AnyRoute]
    answer: Callable[[Service, Match, Request, str], Reply]
    key: Callable[[Headers], str | None]
    refusal: Callable[[int, str], JsonValue]
    max_body: int
    """In bytes."""
    patterns: Mapping[str, str] = field(default_factory=lambda: dict[str, str]())
    """Of those path parameters that are narrower than our ids."""
    stands_for: Mapping[AnyRoute, AnyRoute] = field(default_factory=lambda: dict[AnyRoute, AnyRoute]())
    """The routes of our own whose work its memory operations do, for spans."""


@dataclass(frozen=True)
class Translation:
    """Requests to our own service on behalf of one request in another contract."""

    service: Service
    owner: str
    timeout: float

    def send(
        self,
        route: AnyRoute,
        segments: Mapping[str, str],
        body: object = None,
        query: tuple[tuple[str, str], ...] = (),
    ) -> Reply:
        """Send a request for a route of our own; `segments` are its parameters as they stand in a path."""
        packed = None if body is None else json.dumps(body).encode()
        request = Request(route.method, route.path, query, packed, (), self.timeout)
        return self.service.answer(Match(route, segments), request, self.owner)


def json_reply(status: int, value: object) -> Reply:
    """A reply in JSON."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")
    return Reply(status, body, {"content-type": "application/json"})


def detail(_status: int, message: str) -> JsonValue:
    """A refusal as FastAPI writes it."""
    return {"detail": message}
