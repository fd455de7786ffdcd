"""What the two Kronvex servers share: a table of routes, the key, JSON replies, faults put in by a test."""

from __future__ import annotations

import json
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import unquote

from tests.services.loopback import Connection, Loopback, Recorded

__all__ = ["Call", "JsonServer", "Recorded", "Refused", "Reply", "Route"]


@dataclass(frozen=True)
class Reply:
    """A status, a JSON body (None: no body) and headers; `doom` resets the connection at its next request."""

    status: int
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    doom: bool = False

    def content(self) -> bytes:
        """The body as bytes."""
        if self.json is None:
            return b""
        return json.dumps(self.json, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


class Refused(Exception):
    """Ends a handler with this reply."""

    def __init__(
        self, status: int, detail: Any, headers: Mapping[str, str] | None = None, *, doom: bool = False
    ) -> None:
        super().__init__(status)
        self.reply = Reply(status, {"detail": detail}, headers or {}, doom)


@dataclass(frozen=True)
class Route:
    """One row of the API: where it is and who answers; `extra` is whatever the server needs to know besides."""

    method: str
    path: str
    handler: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    def match(self, segments: list[str]) -> dict[str, str] | None:
        """The named segments of a path, or None when it is another path."""
        names = self.path.split("/")
        if len(names) != len(segments):
            return None
        pairs = list(zip(names, segments, strict=True))
        if all(value if name.startswith("{") else name == value for name, value in pairs):
            return {name.strip("{}"): value for name, value in pairs if name.startswith("{")}
        return None


@dataclass
class Call:
    """A request on its way through the server: its route, who asks, and its checked values."""

    request: Recorded
    route: Route
    params: dict[str, Any]
    key: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    agent: Any = None


class JsonServer(Loopback):
    """A JSON API on a loopback port, one request at a time, with `requests` to look at afterwards.

    `on_request` is called with every request before it is answered, outside the lock, so that a test can hold it.
    """

    routes: ClassVar[tuple[Route, ...]] = ()
    base_headers: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *, on_request: Callable[[Recorded], None] | None = None) -> None:
        super().__init__()
        self.key = "kv-" + secrets.token_hex(16)
        self.on_request = on_request
        self.most_in_flight = 0
        self._in_flight = 0
        self._instead: deque[Reply] = deque()
        self._lose = 0

    def answer_next(self, *replies: Reply) -> None:
        """Give the next requests these replies, without looking at them."""
        with self.lock:
            self._instead.extend(replies)

    def lose_next(self, count: int = 1) -> None:
        """Do what the next requests ask, then reset the connection instead of answering."""
        with self.lock:
            self._lose += count

    def serve(self, connection: Connection, request: Recorded) -> None:
        """Answer one request, or lose the answer."""
        with self._counted():
            if self.on_request is not None:
                self.on_request(request)
            with self.lock:
                instead = self._instead.popleft() if self._instead else None
                reply = instead or self.reply_to(request)
                lost = instead is None and self._lose > 0
                self._lose -= lost
        if lost:
            connection.reset()
        else:
            self._send(connection, reply)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self.lock:
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
        yield
        with self.lock:
            self._in_flight -= 1

    def _send(self, connection: Connection, reply: Reply) -> None:
        body = reply.content()
        length = {} if reply.status == 204 else {"content-length": str(len(body))}
        base = {} if reply.doom else self.base_headers
        kind = {"content-type": "application/json"} if reply.json is not None or reply.status == 204 else {}
        connection.send(reply.status, {**length, **kind, **base, **reply.headers}, body)
        connection.doomed = reply.doom

    def reply_to(self, request: Recorded) -> Reply:
        """Find the route and let it answer."""
        try:
            return self.dispatch(self.find(request))
        except Refused as refused:
            return refused.reply

    def find(self, request: Recorded) -> Call:
        """The route of a request, or 404, 405, or 307 without its trailing slash."""
        segments = unquote(request.path).split("/")
        found = [(route, params) for route in self.routes if (params := route.match(segments)) is not None]
        for route, params in found:
            if route.method == request.method:
                return Call(request, route, params)
        if found:
            raise Refused(405, "Method Not Allowed", {"allow": found[0][0].method})
        if segments[-1] == "" and any(route.match(segments[:-1]) is not None for route in self.routes):
            refused = Refused(307, None)
            refused.reply = Reply(307, None, {"location": self.url + request.path.rstrip("/")})
            raise refused
        raise Refused(404, "Not Found")

    def dispatch(self, call: Call) -> Reply:
        """Check the key and call the handler that the route names."""
        self.authenticate(call)
        handler: Callable[[Call], Reply] = getattr(self, call.route.handler)
        return handler(call)

    def authenticate(self, call: Call) -> None:
        """Let in who shows a known key in X-API-Key, and anybody to the open routes."""
        if call.route.extra.get("open"):
            return
        call.key = call.request.headers.get("x-api-key", "")
        if not call.key:
            raise Refused(401, "Missing API key. Add header: X-API-Key: kv-...")
        if call.key not in self.keys():
            raise Refused(401, "Invalid or revoked API key.")

    def keys(self) -> set[str]:
        """The keys that are let in."""
        return {self.key}

    def health(self, _call: Call) -> Reply:
        """Say that all is well."""
        return Reply(200, {"status": "ok", "service": "kronvex", "version": "0.4.0"})
