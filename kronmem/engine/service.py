"""A `Request` comes in, the engine does what the table says, a `Reply` goes out.

Errors have FastAPI's shape: `{"detail": "..."}` or `{"detail": [{"type", "loc", "msg"}]}`; inputs are not echoed.
"""

from __future__ import annotations

import json
import logging
from urllib.parse import unquote

from pydantic import JsonValue, ValidationError
from pydantic_core import to_json

from kronmem.api.requests import valid_id
from kronmem.core.wire import Reply, Request
from kronmem.engine.engine import Engine
from kronmem.engine.handlers import ROUTES, Asked, Route
from kronmem.engine.remembering import Place
from kronmem.errors import InvalidRequestError, KronmemError, StatusError

_log = logging.getLogger("kronmem.engine")


class Service:
    """Answers requests from one engine. `owner` keeps the callers of a served engine apart."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def handle(self, request: Request, owner: str = "") -> Reply:
        """Answer one request. Raised are only a store that cannot be used and a deadline that has passed."""
        try:
            return self._answer(request, owner)
        except ValidationError as error:
            place = "query" if request.method == "GET" else "body"
            return _reply(422, {"detail": _problems(error, place)})
        except StatusError as error:
            return _reply(error.status, {"detail": error.message})
        except KronmemError:
            raise
        except Exception:  # noqa: BLE001 - a service answers whatever happens inside; the log has the rest
            _log.exception("%s request failed", request.method)
            return _reply(500, {"detail": "Internal error; its traceback is in the log of kronmem.engine"})

    def close(self) -> None:
        """Close the engine and its store."""
        self._engine.close()

    def _answer(self, request: Request, owner: str) -> Reply:
        route, ids = _find(request)
        place = Place(owner, ids.get("agent", ""), request.timeout)
        said = route.reads.model_validate(_said(route, request))
        return _reply(route.status, route.handler(self._engine, Asked(place, ids, said, _key(request))))


def _find(request: Request) -> tuple[Route, dict[str, str]]:
    segments = request.path.split("/")
    others = False
    for route, fixed in _BY_LENGTH.get(len(segments), ()):
        if all(segments[at] == part for at, part in fixed):
            if route.method == request.method:
                return route, _ids(route, segments)
            others = True
    if others:
        raise StatusError("Method Not Allowed", status=405)
    raise StatusError("Not Found", status=404)


def _by_length() -> dict[int, list[tuple[Route, list[tuple[int, str]]]]]:
    """The routes by how many parts their paths have, each with the parts that are not ids, last first."""
    found: dict[int, list[tuple[Route, list[tuple[int, str]]]]] = {}
    for route in ROUTES:
        parts = route.path.split("/")
        fixed = [(at, part) for at, part in enumerate(parts) if not part.startswith("{")][::-1]
        found.setdefault(len(parts), []).append((route, fixed))
    return found


_BY_LENGTH = _by_length()


def _ids(route: Route, segments: list[str]) -> dict[str, str]:
    named = [
        (part[1:-1], found) for part, found in zip(route.path.split("/"), segments, strict=True) if part.startswith("{")
    ]
    try:
        return {name: valid_id(unquote(segment, errors="strict")) for name, segment in named}
    except ValueError as error:  # UnicodeDecodeError is one too
        raise InvalidRequestError(f"Bad id in the path: {error}", status=422) from error


def _key(request: Request) -> str | None:
    keys = [value for name, value in request.headers if name.lower() == "idempotency-key"]
    try:
        return valid_id(keys[0]) if keys else None
    except ValueError as error:
        raise InvalidRequestError(f"Bad Idempotency-Key: {error}", status=422) from error


def _said(route: Route, request: Request) -> JsonValue:
    if request.method == "GET":
        return _query(request)
    if not route.reads.model_fields:
        return {}
    try:
        said: JsonValue = json.loads(request.body or b"", parse_constant=_refuse)
    except RecursionError:
        raise InvalidRequestError("The body is nested too deeply", status=422) from None
    except ValueError as error:  # not JSON, not UTF-8, or a number of absurd length
        raise InvalidRequestError("The body is not JSON", status=422) from error
    return said


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _query(request: Request) -> JsonValue:
    """Repeated parameters as a list, single ones as they are."""
    said: dict[str, list[str]] = {}
    for name, value in request.query:
        said.setdefault(name, []).append(value)
    return {name: list[JsonValue](values) if len(values) > 1 else values[0] for name, values in said.items()}


def _problems(error: ValidationError, place: str) -> list[JsonValue]:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return [{"type": e["type"], "loc": [place, *e["loc"][:8]], "msg": e["msg"]} for e in found]


def _reply(status: int, value: JsonValue) -> Reply:
    if status == 204:
        return Reply(status)
    try:
        body = to_json(value)
    except ValueError:  # half a character in metadata: JSON can escape it, UTF-8 cannot say it
        body = json.dumps(value).encode()
    return Reply(status, body, {"content-type": "application/json", "content-length": str(len(body))})


__all__ = ["ROUTES", "Service"]
