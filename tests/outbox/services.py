"""Services and waiting that the tests of the outbox share."""

from __future__ import annotations

import socket
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kronmem import Retry
from tests.services import RawServer
from tests.services.raw import respond

ONCE = Retry(attempts=1)
_taken = socket.socket()
_taken.bind(("127.0.0.1", 0))
NOBODY = f"http://127.0.0.1:{_taken.getsockname()[1]}"
"""Bound and never listening: every connection is refused, and no other test's service can be given the port."""


def stored(request: Any) -> dict[str, Any]:
    return {"id": f"service-{request.body['metadata']['kronmem']['id']}", "content": request.body["content"]}


def keeping(server: RawServer, connection: Any, request: Any) -> None:
    """Take everything, under ids of the service's own, and be in good health."""
    if request.method == "DELETE":
        action = respond(204)
    elif request.path.endswith("/remember"):
        action = respond(201, body=stored(request))
    elif request.path == "/health":
        action = respond(200, body={"status": "ok", "service": "kronmem", "version": "1"})
    else:
        action = respond(200, body={"results": []})
    action(server, connection, request)


def failing_on(word: bytes, action: Any = None) -> Any:
    """A service that is well but fails on one word."""

    def answer(server: RawServer, connection: Any, request: Any) -> None:
        (action or respond(503) if word in request.content else keeping)(server, connection, request)

    return answer


class Switched:
    """A service that can be switched over to another action while it runs."""

    def __init__(self, action: Any) -> None:
        self.action = action

    def __call__(self, server: RawServer, connection: Any, request: Any) -> None:
        self.action(server, connection, request)


def texts(server: RawServer) -> list[str]:
    """The contents of every attempt to store, in the order of arrival."""
    return [request.body["content"] for request in server.requests if request.path.endswith("/remember")]


def until(condition: Callable[[], object], timeout: float = 30.0) -> None:
    """Wait for something that another thread or process does."""
    ends = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.005)


def change(path: Path, *statements: str) -> None:
    """Change the file behind the back of everybody."""
    db = sqlite3.connect(path)
    with db:
        for statement in statements:
            db.execute(statement)
    db.close()


def asked(client: Any, name: str, *args: Any) -> Any:
    """Ask the outbox of either shell."""
    method = getattr(client.inner.outbox, name)
    return client.portal.call(method, *args) if hasattr(client, "portal") else method(*args)
