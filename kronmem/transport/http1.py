"""HTTP/1.1 as bytes, by h11: what to write for a request, and the reply once enough has been read. No I/O."""

from __future__ import annotations

import time

import h11

from kronmem.core.wire import Reply, Request
from kronmem.transport.body import Body
from kronmem.transport.target import KEEP_ALIVE, Target, names

_LONGEST_HEAD = 100 * 1024


class Http1:
    """The protocol of one connection, which carries one request at a time."""

    def __init__(self) -> None:
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
        self._status, self._headers, self._body = 0, dict[str, str](), Body({})
        self._rests_until = 0.0

    def asks(self, request: Request, target: Target) -> bytes:
        """The bytes of a request, head and body."""
        self._rests_until = 0.0
        head = h11.Request(method=request.method, target=target.path(request), headers=target.headers(request))
        asked = self._h11.send(head) or b""
        if request.body:
            asked += self._h11.send(h11.Data(request.body)) or b""
        self._h11.send(h11.EndOfMessage())
        return asked

    def hears(self, data: bytes) -> Reply | None:
        """Take what was read, nothing meaning that the service has closed; the answer is the reply when it is whole."""
        self._h11.receive_data(data)
        while (event := self._h11.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Data):
                self._body.add(event.data)
            elif isinstance(event, h11.Response):
                self._status, self._headers = event.status_code, names(event.headers)
                self._body = Body(self._headers)
            elif isinstance(event, h11.EndOfMessage):
                reply = Reply(self._status, self._body.bytes(), self._headers, time.time())
                self._body = Body({})  # a connection may rest for long, with megabytes in hand
                self._rest()
                return reply
            elif not isinstance(event, h11.InformationalResponse):
                raise h11.RemoteProtocolError("the service wants to speak another protocol")
        return None

    @property
    def rests(self) -> bool:
        """Is the connection between two requests, and not for too long?"""
        return time.monotonic() < self._rests_until

    def _rest(self) -> None:
        stray, _ = self._h11.trailing_data  # read as the answer to the next question, it would be somebody else's
        if not stray and self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE:
            self._h11.start_next_cycle()
            self._rests_until = time.monotonic() + KEEP_ALIVE
