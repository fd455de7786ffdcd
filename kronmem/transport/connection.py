"""One connection to the service, blocking and awaited: two twins that differ by an `await`.

A connection is a `Conversation` over a socket: through a proxy if there is one, inside TLS if there is any. All of
that is bytes in and bytes out, so proxies, tunnels and TLS are the same in every shell, and so is the question
whether anything was left to read.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import anyio.lowlevel

from kronmem.core.wire import Reply, Request
from kronmem.transport import sockets
from kronmem.transport.failures import FAILURES, failure
from kronmem.transport.http1 import Conversation, Http1, Target, tunnel
from kronmem.transport.tls import Tls

T = TypeVar("T")
S = TypeVar("S", sockets.BlockingSocket, sockets.AwaitedSocket)


class Dialogue:
    """The layers between a socket and the requests: TLS to a proxy, TLS to the service, HTTP."""

    def __init__(self, target: Target) -> None:
        self._target, self._http = target, Http1(target)
        self._layers: list[Tls] = []
        if "https" in (target.scheme, target.proxy and target.proxy.scheme):
            self._context = target.context  # before anything is connected: the certificates may not be readable
        self.first_hop = (target.host, target.port) if target.proxy is None else (target.proxy.host, target.proxy.port)

    def opening(self) -> Conversation[None]:
        """All that precedes the first request."""
        target, proxy = self._target, self._target.proxy
        secure = target.scheme == "https"
        if proxy is not None and proxy.scheme == "https":
            yield from self._secured(proxy.host, proxy.address)
        if proxy is not None and secure:
            yield from self._inside(tunnel(target, proxy.authorization))
        if secure:
            yield from self._secured(target.host, target.address)

    def asking(self, request: Request) -> Conversation[Reply]:
        """Send one request and read its reply."""
        return self._inside(self._http.ask(request))

    @property
    def reusable(self) -> bool:
        """May another request follow? Not if any layer has something left to read."""
        return self._http.reusable and all(layer.drained for layer in self._layers)

    def _secured(self, host: str, address: str) -> Conversation[None]:
        layer = Tls(self._context, host, address)
        yield from self._inside(layer.handshake())
        self._layers.append(layer)

    def _inside(self, steps: Conversation[T]) -> Conversation[T]:
        for layer in reversed(self._layers):
            steps = layer.carry(steps)
        return steps


class _Carrier(Generic[S]):
    """A connection that is made for its first request and may carry others after it."""

    def __init__(self, target: Target) -> None:
        self._target, self._dialogue = target, Dialogue(target)
        self._socket: S | None = None
        self.closed = False

    @property
    def rested(self) -> bool:
        """Was the last reply read to its end, and nothing beyond it?"""
        return self._dialogue.reusable

    @property
    def reusable(self) -> bool:
        """May another request be sent? Bytes that came unasked, or the end of the stream, forbid it."""
        return self._dialogue.reusable and self._socket is not None and self._socket.silent

    def close(self) -> None:
        """Close at once, even in the middle of a request."""
        self.closed = True
        if self._socket is not None:
            self._socket.close()


class Connection(_Carrier[sockets.BlockingSocket]):
    """A connection, blocking."""

    def send(self, request: Request, deadline: float) -> Reply:
        """Send one request and read its reply."""
        sent = False
        try:
            if (socket := self._socket) is None:
                socket = self._socket = sockets.connect(*self._dialogue.first_hop, deadline)
                self._carry(self._dialogue.opening(), socket, deadline)
            sent = True
            return self._carry(self._dialogue.asking(request), socket, deadline)
        except FAILURES as error:
            raise failure(self._target, error, request, sent=sent) from None

    def _carry(self, steps: Conversation[T], socket: sockets.BlockingSocket, deadline: float) -> T:
        incoming: bytes | None = None
        try:
            while True:
                outgoing = steps.send(incoming)
                incoming = None
                if outgoing is not None:
                    incoming = socket.swap(outgoing, deadline)
                else:
                    sockets.left(deadline)
        except StopIteration as stop:
            answer: T = stop.value
            return answer


class AsyncConnection(_Carrier[sockets.AwaitedSocket]):
    """The same, awaited."""

    async def send(self, request: Request, deadline: float) -> Reply:
        """Send one request and read its reply."""
        sent = False
        try:
            if (socket := self._socket) is None:
                socket = self._socket = await sockets.aconnect(*self._dialogue.first_hop, deadline)
                await self._carry(self._dialogue.opening(), socket, deadline)
            sent = True
            return await self._carry(self._dialogue.asking(request), socket, deadline)
        except FAILURES as error:
            raise failure(self._target, error, request, sent=sent) from None

    async def _carry(self, steps: Conversation[T], socket: sockets.AwaitedSocket, deadline: float) -> T:
        incoming: bytes | None = None
        socket.asked = True
        try:
            while True:
                outgoing = steps.send(incoming)
                incoming = None
                if outgoing is not None:
                    incoming = await socket.swap(outgoing, deadline)
                else:
                    sockets.left(deadline)
                    await anyio.lowlevel.checkpoint()
        except StopIteration as stop:
            answer: T = stop.value
            return answer
        finally:
            socket.asked = False
