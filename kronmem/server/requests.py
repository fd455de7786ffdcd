"""Reads a request from the web as the service takes it: bounded in size and in time."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as WebRequest

from kronmem.core.wire import Request

BODY_SECONDS = 30.0
"""How long a body may take to arrive: the largest at 5 Mbit/s. Slow headers are for a proxy to end."""
TIMEOUT = 10.0
"""Seconds a request may wait for the store: the default deadline of a client's call."""
SMALL = 256 * 1024
"""Bytes of a body that there is always room for: far more than a memory has."""
LARGE = 256 * 1024 * 1024
"""Bytes beyond those, in all bodies at a time: sixteen of the largest."""

_CLOSE = {"connection": "close"}


class BodyRoom:
    """Bounds the memory that large bodies take together. Small ones always fit."""

    def __init__(self, most: int = LARGE) -> None:
        self._left = most

    @contextmanager
    def share(self) -> Generator[Callable[[int], None], None, None]:
        """Room for one body until it is answered: a function to be told how long the body has become."""
        taken = 0

        def grow(length: int) -> None:
            nonlocal taken
            more = max(length - SMALL, 0) - taken
            if more > self._left:
                raise HTTPException(503, "Too many large bodies at once", {**_CLOSE, "retry-after": "1"})
            taken, self._left = taken + more, self._left - more

        try:
            yield grow
        finally:
            self._left += taken


def _anything(_length: int) -> None:
    """Room for a body of any length."""


async def read(
    web: WebRequest, most: int, grow: Callable[[int], None] = _anything, *, seconds: float = BODY_SECONDS
) -> Request:
    """The whole request; HTTPException when it has more than `most` bytes, is too slow, or its sender has gone.

    `grow` is told how long the body has become, and may refuse it.
    """
    # Nobody waits for the body of a GET, which has no meaning: the open routes can be held up by nobody.
    body = b"" if web.method in ("GET", "HEAD") else await _body(web, most, grow, seconds)
    query = tuple(web.query_params.multi_items()) if web.scope.get("query_string") else ()
    method, path = target(web)
    return Request(method, path, query, body, tuple(web.headers.items()), TIMEOUT)


def target(web: WebRequest) -> tuple[str, str]:
    """The method, a HEAD as the GET that it stands for, and the path as sent: quoted ids stay quoted until checked."""
    raw: bytes = web.scope["raw_path"]
    return "GET" if web.method == "HEAD" else web.method, raw.decode("ascii", "surrogateescape")


async def _body(web: WebRequest, most: int, grow: Callable[[int], None], seconds: float) -> bytes:
    declared = web.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise HTTPException(413, "The body is too large", _CLOSE)
    body = bytearray()
    try:
        with anyio.fail_after(seconds):
            async for chunk in web.stream():
                body += chunk
                if len(body) > most:
                    raise HTTPException(413, "The body is too large", _CLOSE)
                grow(len(body))
    except TimeoutError:
        raise HTTPException(408, "The body did not arrive in time", _CLOSE) from None
    except ClientDisconnect:
        raise HTTPException(400, "The sender has gone", _CLOSE) from None
    return bytes(body)
