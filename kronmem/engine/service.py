"""A `Request` comes in, the handler of its route asks the engine, a `Reply` goes out.

Errors have FastAPI's shape: `{"detail": "..."}` or `{"detail": [{"type", "loc", "msg"}]}`; inputs are not echoed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar, cast
from urllib.parse import unquote

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import from_json

from kronmem.api.requests import valid_id, validator
from kronmem.api.routes import ROUTES, AnyRoute, Match, Route, Router
from kronmem.core.wire import Reply, Request
from kronmem.engine import handlers
from kronmem.engine.engine import Engine, StoreSize
from kronmem.engine.handlers import HANDLERS, Invocation
from kronmem.engine.remembering import Place
from kronmem.engine.store import UndoneError
from kronmem.errors import InvalidRequestError, StatusError

B = TypeVar("B", bound=BaseModel)
R = TypeVar("R")
_ROUTER = Router(ROUTES)


class Service:
    """Answers requests from one engine. `owner` keeps the callers of a served engine apart."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def handle(self, request: Request, owner: str = "") -> Reply:
        """Answer one request. A store that cannot be used and a deadline are raised, and so is all that is not ours."""
        if match := _ROUTER.find(request.method, request.path):
            return self.answer(match, request, owner)
        if _ROUTER.allowed(request.method, request.path):
            return _reply(405, {"detail": "Method Not Allowed"})
        return _reply(404, {"detail": "Not Found"})

    def answer(self, match: Match, request: Request, owner: str) -> Reply:
        """Answer a request of a known route; its method and path are not looked at again."""
        route = match.route
        try:
            body, key = _body(route, request), _key(request)
            return _reply(route.status, self.call(route, match.segments, body, owner, request.timeout, key))
        except ValidationError as error:
            return _reply(422, {"detail": validation_problems(error, "query" if route.method == "GET" else "body")})
        except StatusError as error:
            return _reply(error.status, {"detail": error.message})

    def call(
        self,
        route: Route[B, R],
        segments: Mapping[str, str],
        body: JsonValue,
        owner: str,
        timeout: float,
        key: str | None = None,
    ) -> R:
        """The reply of a route to a request that was read, or a `StatusError`; `segments` as they stand in its path."""
        ends = time.monotonic() + timeout
        ids, asked = _ids(segments), validator(route.request).python(body)
        place = Place(owner, ids.get("agent", ""), timeout)
        try:
            return self._handled(route, Invocation(place, ids, asked, key))
        except UndoneError:  # nothing was committed
            place = replace(place, timeout=ends - time.monotonic())
            return self._handled(route, Invocation(place, ids, asked, key))

    def _handled(self, route: Route[B, R], asked: Invocation[B]) -> R:
        return cast("R", HANDLERS[route](self._engine, asked))  # `_handles` has held the handler to its route

    def size(self, timeout: float) -> StoreSize:
        """How large the store is, over all owners."""
        return self._engine.size(timeout)

    def close(self) -> None:
        """Close the engine and its store."""
        self._engine.close()


def _ids(segments: Mapping[str, str]) -> dict[str, str]:
    try:
        return {name: valid_id(unquote(segment, errors="strict")) for name, segment in segments.items()}
    except ValueError as error:  # UnicodeDecodeError is one too
        raise InvalidRequestError(f"Bad id in the path: {error}", status=422) from error


def _key(request: Request) -> str | None:
    keys = [value for name, value in request.headers if name.lower() == "idempotency-key"]
    try:
        return valid_id(keys[0]) if keys else None
    except ValueError as error:
        raise InvalidRequestError(f"Bad Idempotency-Key: {error}", status=422) from error


def _body(route: AnyRoute, request: Request) -> JsonValue:
    if route.method == "GET":
        return _query(request)
    if not route.has_body or (route.body_optional and not request.body):
        return {}
    return parse(request.body or b"")


def _query(request: Request) -> JsonValue:
    """Repeated parameters as a list, single ones as they are."""
    query: dict[str, list[str]] = {}
    for name, value in request.query:
        query.setdefault(name, []).append(value)
    return {name: list[JsonValue](values) if len(values) > 1 else values[0] for name, values in query.items()}


def validation_problems(error: ValidationError, place: str) -> list[JsonValue]:
    """The problems of a request as FastAPI lists them; inputs are not echoed."""
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    return [{"type": one["type"], "loc": [place, *one["loc"][:8]], "msg": one["msg"]} for one in errors]


def _reply(status: int, value: object) -> Reply:
    if status == 204:
        return Reply(status)
    body = handlers.encoded(value)
    return Reply(status, body, {"content-type": "application/json", "content-length": str(len(body))})


# Reads the JSON of a request: bounded in what it costs, so that one body does not hold up all other threads.

MAX_VALUES = 1_000_000
"""Parsing holds the interpreter's lock: a million values take it for about a tenth of a second, the 6 million that fit
into the largest body for several."""
_SMALL = 1024 * 1024
"""In bytes: no body of this size holds too many values."""
_PIECE = 64 * 1024
"""Bytes counted at a time: other threads have their turn in between."""


def parse(body: bytes) -> JsonValue:
    """The value of a body; `InvalidRequestError` when it is no JSON of sensible depth, or of too many values."""
    if len(body) > _SMALL and holds_more(body, MAX_VALUES):
        raise InvalidRequestError(f"The body holds more than {MAX_VALUES} values", status=422)
    try:
        # Not json.loads: it takes a second for the floats of a large body, with the interpreter's lock held.
        value: JsonValue = from_json(body, allow_inf_nan=False)
    except ValueError as error:  # not JSON, not UTF-8, a lone surrogate, too deep, or a number of absurd length
        raise InvalidRequestError(f"The body is not JSON: {error}", status=422) from error
    return value


def holds_more(body: bytes, most: int) -> bool:
    """Whether more values may stand in a body of JSON; counting ends soon after there are too many."""
    count = 0
    for outside in _outside_strings(body):
        count += sum(map(outside.count, (b",", b"[", b"{")))
        if count > most:
            return True
    return False


def _outside_strings(body: bytes) -> Iterator[bytes]:
    """The body piece by piece, without its strings."""
    at, inside = 0, False
    while at < len(body):
        end = at + _PIECE
        while body[end - 1 : end] == b"\\":  # an escape is read in one piece
            end += 1
        parts = body[at:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        yield b"".join(parts[inside::2])
        inside ^= len(parts) % 2 == 0
        at = end
