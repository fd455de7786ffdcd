"""A contract as the server sees it: its routes, how a request is answered, where the key stands; and Kronvex's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from kronmem.api.routes import ROUTES, AnyRoute, Match, Route
from kronmem.core.wire import Reply, Request
from kronmem.engine.service import Service
from kronmem.errors import InvalidRequestError
from kronmem.server import api_keys as keys
from kronmem.server.api_keys import Headers

B = TypeVar("B", bound=BaseModel)
R = TypeVar("R")


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
class Own:
    """The routes of our own, called on behalf of one request in another contract."""

    service: Service
    owner: str
    timeout: float

    def call(self, route: Route[B, R], body: JsonValue, **segments: str) -> R:
        """The reply of the route, or a `StatusError`; `segments` are its parameters as they stand in a path."""
        try:
            return self.service.call(route, segments, body, self.owner, self.timeout)
        except ValidationError as error:
            message = error.errors(include_url=False, include_input=False, include_context=False)[0]["msg"]
            raise InvalidRequestError(message, status=422) from error


def json_reply(status: int, value: object) -> Reply:
    """A reply in JSON."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")
    return Reply(status, body, {"content-type": "application/json"})


def detail(_status: int, message: str) -> JsonValue:
    """A refusal as FastAPI writes it."""
    return {"detail": message}


# Kronvex's contract, which is our own: its routes are those of the service.

MAX_BODY = 16 * 1024 * 1024
"""In bytes: twice the largest value of an agent's state."""

KRONVEX = Contract(
    "Kronvex",
    ROUTES,
    lambda service, match, request, owner: service.answer(match, request, owner),
    keys.api_key,
    detail,
    MAX_BODY,
)
