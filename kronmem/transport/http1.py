"""HTTP/1.1 as bytes, by h11: a request's bytes to write, and the reply once enough was read. No I/O."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable
from typing import TypeVar

import h11

from kronmem.core.wire import Reply, Request
from kronmem.transport import headers
from kronmem.transport.body import Body
from kronmem.transport.failures import ProxyRefusedError
from kronmem.transport.target import Target

T = TypeVar("T")

Conversation = Generator[bytes | None, bytes | None, T]
"""Yields bytes to write and is resumed with bytes read, none of them meaning the end of the stream.

It yields None after a stretch of work, so that others may run, and is resumed with None.
"""

KEEP_ALIVE = 30.0
"""Seconds that an idle connection may be used again: the usual balancers close after 60, uvicorn after 5."""
_LONGEST_HEAD = 100 * 1024
"""Bytes of a reply's head: httpcore's bound."""
_STRETCH = 200
"""Events of h11 in a row: a few milliseconds, so that a reply in tiny pieces does not hold up an event loop."""
_ANY = h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")])
_END = h11.EndOfMessage()


class Http1:
    """The protocol of one connection, which carries one request at a time."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
        self._status, self._headers, self._body = 0, dict[str, str](), Body({})
        self._reusable_until = 0.0
        self._starved = True

    def ask(self, request: Request) -> Conversation[Reply]:
        """Send one request and read its reply."""
        heard = yield self.encode(request)
        while (reply := self.feed(heard)) is None:
            heard = yield b"" if self._starved else None
        return reply

    def encode(self, request: Request) -> bytes:
        """The bytes of a request, head and body."""
        self._reusable_until = 0.0
        data = headers.encode(self._target, request)
        # h11 only has to know that a request is out: to build and write it there costs a third of the whole cycle.
        self._h11.send(_ANY)
        self._h11.send(_END)
        return data

    def feed(self, data: bytes | None) -> Reply | None:
        """Take bytes that were read, b"" at the end of the stream; returns the reply when it is whole.

        None goes on with bytes that were fed before and not yet looked at.
        """
        if data is not None:
            self._h11.receive_data(data)
        for _ in range(_STRETCH):
            event = self._h11.next_event()
            self._starved = event is h11.NEED_DATA
            if self._starved:
                return None
            if isinstance(event, h11.EndOfMessage):
                return self._replied()
            self._take(event)
        return None

    def _take(self, event: object) -> None:
        if isinstance(event, h11.Data):
            self._body.add(event.data)
        elif isinstance(event, h11.Response):
            self._status, self._headers = event.status_code, names(event.headers)
            self._body = Body(self._headers)
        elif not isinstance(event, h11.InformationalResponse):
            raise h11.RemoteProtocolError("unexpected 101 Switching Protocols")

    def _replied(self) -> Reply:
        if self._status == 407 and self._target.proxy is not None:
            raise ProxyRefusedError(self._status)
        reply = Reply(self._status, self._body.bytes(), self._headers, time.time())
        self._body = Body({})  # a connection may be idle for long: it holds no megabytes meanwhile
        stray, _ = self._h11.trailing_data  # taken for the next reply, it would be somebody else's
        # After a 500 some servers drop the connection, but only when it is used again.
        if not stray and self._status < 500 and self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE:
            self._h11.start_next_cycle()
            self._reusable_until = time.monotonic() + KEEP_ALIVE
        return reply

    @property
    def reusable(self) -> bool:
        """Is the connection between two requests, with nothing left to read, and not for too long?"""
        return time.monotonic() < self._reusable_until


def tunnel(target: Target, authorization: bytes | None) -> Conversation[None]:
    """Have a proxy open a tunnel to the target. It learns host and port, nothing else."""
    protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
    headers = [(b"host", target.authority.encode("ascii")), (b"user-agent", b"kronmem")]
    if authorization is not None:
        headers.append((b"proxy-authorization", authorization))
    said = protocol.send(h11.Request(method="CONNECT", target=target.authority, headers=headers))
    protocol.send(_END)
    protocol.receive_data((yield said or b"") or b"")
    while not isinstance(event := protocol.next_event(), h11.Response):
        if event is h11.NEED_DATA:
            protocol.receive_data((yield b"") or b"")
        else:  # a 1xx, and there may be no end of them
            yield None
    if not 200 <= event.status_code < 300:
        raise ProxyRefusedError(event.status_code)
    protocol.next_event()  # from here on the connection is not HTTP any more
    if protocol.trailing_data[0]:
        raise h11.RemoteProtocolError("the proxy sent data before the tunnel was used")


def names(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by their names in lower case."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}
