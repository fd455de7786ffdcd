"""Reads a request from the web as the service takes it: bounded in size and in time."""

from __future__ import annotations

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as WebRequest

from kronmem.core.wire import Request

BODY_SECONDS = 30.0
"""How long a body may take to arrive: the largest at 5 Mbit/s. Slow headers are for a proxy to end."""
TIMEOUT = 10.0
"""Seconds a request may wait for the store: the default deadline of a client's call."""

_CLOSE = {"connection": "close"}


async def read(web: WebRequest, most: int, seconds: float = BODY_SECONDS) -> Request:
    """The whole request; HTTPException when it has more than `most` bytes, is too slow, or its sender has gone."""
    # Nobody waits for the body of a GET, which has no meaning: the open routes can be held up by nobody.
    body = b"" if web.method in ("GET", "HEAD") else await _body(web, most, seconds)
    headers = tuple((name, value) for name, value in web.headers.items())
    method, path = target(web)
    return Request(method, path, tuple(web.query_params.multi_items()), body, headers, TIMEOUT)


def target(web: WebRequest) -> tuple[str, str]:
    """The method, a HEAD as the GET that it stands for, and the path as sent: quoted ids stay quoted until checked."""
    raw: bytes = web.scope["raw_path"]
    return "GET" if web.method == "HEAD" else web.method, raw.decode("ascii", "surrogateescape")


async def _body(web: WebRequest, most: int, seconds: float) -> bytes:
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
    except TimeoutError:
        raise HTTPException(408, "The body did not arrive in time", _CLOSE) from None
    except ClientDisconnect:
        raise HTTPException(400, "The sender has gone", _CLOSE) from None
    return bytes(body)
