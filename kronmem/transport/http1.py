"""HTTP/1.1 as bytes: a request's bytes to write, and the reply once enough was read. No I/O."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from typing import TypeVar

from kronmem.core.wire import Reply, Request
from kronmem.transport import headers
from kronmem.transport.failures import ProxyRefusedError
from kronmem.transport.reply_parser import ProtocolError, ReplyParser
from kronmem.transport.target import Target

T = TypeVar("T")

Conversation = Generator[bytes | None, bytes | None, T]
"""Yields bytes to write and is resumed with bytes read, none of them meaning the end of the stream.

It yields None after a stretch of work, so that others may run, and is resumed with None.
"""

_AUTHORITY = re.compile("[!-~]+")


class Http1:
    """The protocol of one connection, which carries one request at a time."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._parser: ReplyParser | None = None
        self.reusable = False
        """Is the connection between two requests, with nothing left to read?"""

    def ask(self, request: Request) -> Conversation[Reply]:
        """Send one request and read its reply."""
        heard = yield self.encode(request)
        while (reply := self.feed(heard)) is None:
            heard = yield b"" if self._parser is None or self._parser.starved else None
        return reply

    def encode(self, request: Request) -> bytes:
        """The bytes of a request, head and body."""
        self.reusable = False
        self._parser = ReplyParser()
        return headers.encode(self._target, request)

    def feed(self, data: bytes | None) -> Reply | None:
        """Take bytes that were read, b"" at the end of the stream; returns the reply when it is whole.

        None goes on with bytes that were fed before and not yet looked at.
        """
        parser = self._parser
        if parser is None or not parser.feed(data):
            return None
        self._parser = None  # a connection may be idle for long: it holds no megabytes meanwhile
        status = parser.status
        if status == 407 and self._target.proxy is not None:
            raise ProxyRefusedError(status)
        reply = self._target.reply(status, parser.body, parser.headers)
        # After a 500 some servers drop the connection, but only when it is used again.
        self.reusable = parser.reusable and status < 500
        return reply


def tunnel(target: Target, authorization: bytes | None) -> Conversation[None]:
    """Have a proxy open a tunnel to the target. It learns host and port, nothing else."""
    authority = target.authority
    if _AUTHORITY.fullmatch(authority) is None:
        raise ProtocolError("a host that cannot be written")
    said = f"CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\nuser-agent: kronmem".encode("ascii")
    if authorization is not None:
        said += b"\r\nproxy-authorization: " + authorization
    parser = ReplyParser(connect=True)
    heard = yield said + b"\r\n\r\n"
    while not parser.feed(heard):
        heard = yield b"" if parser.starved else None
    if not 200 <= parser.status < 300:
        raise ProxyRefusedError(parser.status)
    if parser.stray:
        raise ProtocolError("the proxy sent data before the tunnel was used")


def names(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by their names in lower case."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}
