"""TCP sockets that know a call's deadline: blocking ones, those of asyncio and those of trio. Bytes only.

All have the same face: `swap` writes, and returns the next bytes that were read, even before all is written (a service
may refuse a request before it has read its body); `silent` is true while nothing has arrived unasked. Each wait gets
the rest of the deadline, not a fresh timeout: a peer that sends or takes a byte a second would outlive it for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import math
import os
import select
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, cast

import anyio

if TYPE_CHECKING:
    import trio


AT_ONCE = 64 * 1024
"""Bytes read at a time: a whole usual reply, and four records of TLS."""
SHARE = 0.1
"""Of the time that is left, an address with others after it gets so much: one may swallow every packet."""


def left(deadline: float) -> float:
    """Seconds until the deadline, which has not passed."""
    rest = deadline - time.monotonic()
    if rest <= 0:
        raise TimeoutError
    return rest


class BlockingSocket:
    """A non-blocking socket that is waited for: a socket with a timeout costs two more system calls each time."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock
        self._readable, self._either = waiter(sock, write=False), waiter(sock, write=True)
        self.unsent = memoryview(b"")

    def swap(self, data: bytes, deadline: float) -> bytes:
        """Write, then read; arriving bytes end the writing."""
        if data:
            self.unsent = memoryview(bytes(self.unsent) + data)
        while self.unsent:
            try:
                self.unsent = self.unsent[self._sock.send(self.unsent) :]
            except BlockingIOError:
                if self._either(left(deadline)) == "read":
                    break
            except OSError as error:
                return _last_words(self._sock, error)
        while not self._readable(left(deadline)):
            pass
        return self._sock.recv(AT_ONCE)

    @property
    def silent(self) -> bool:
        """Has nothing arrived, the end of the stream included?"""
        return not self.unsent and not self._readable(0)

    def close(self) -> None:
        """Close at once."""
        self._sock.close()


def waiter(sock: socket.socket, *, write: bool) -> Callable[[float], str]:
    """A function that waits until the socket is readable ("read") or else writable ("write"), or "" when it is not."""
    if not hasattr(select, "poll"):  # Windows

        def choose(timeout: float) -> str:
            ready = select.select([sock], [sock] if write else [], [sock], timeout)
            return "read" if ready[0] or ready[2] else "write" if ready[1] else ""

        return choose
    poll = select.poll()
    poll.register(sock, select.POLLIN | select.POLLOUT if write else select.POLLIN)

    def wait(timeout: float) -> str:
        ready = poll.poll(math.ceil(timeout * 1000))
        return "" if not ready else "write" if ready[0][1] == select.POLLOUT else "read"

    return wait


def _last_words(sock: socket.socket, error: OSError) -> bytes:
    """The bytes that a peer sent before it hung up on our writing; a refusal stands there, if anything."""
    try:
        return sock.recv(AT_ONCE)
    except OSError:
        raise error from None


def connect(host: str, port: int, deadline: float) -> BlockingSocket:
    """Open a connection to the first address of the host that answers."""
    failed: OSError = ConnectionError("the host has no address")
    addresses = _addresses(host, port, left(deadline))
    for address in addresses:
        rest = left(deadline)
        patience = rest if address == addresses[-1] else rest * SHARE
        try:
            return BlockingSocket(socket.create_connection((address, port), patience))
        except OSError as error:
            failed = error
    left(deadline)  # a timeout of the last one is the call's
    raise failed


def _addresses(host: str, port: int, timeout: float) -> Sequence[str]:
    """Look the host up within the deadline: the system's resolver takes no timeout, so a thread waits for it."""
    if is_address(host):
        return [host]
    answers: SimpleQueue[Sequence[str] | OSError] = SimpleQueue()

    def look_up() -> None:
        try:
            answers.put(unique(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
        except OSError as error:
            answers.put(error)

    threading.Thread(target=look_up, name="kronmem-resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=timeout)
    except Empty:
        raise TimeoutError from None
    if isinstance(answer, OSError):
        raise answer
    return answer


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def unique(infos: Iterable[tuple[Any, ...]]) -> Sequence[str]:
    return list(dict.fromkeys(str(info[4][0]) for info in infos))


# asyncio and trio, with the same face as the blocking socket.

_MOST_UNREAD = 256 * 1024
"""Bytes that asyncio may have read ahead of us: as much as it reads at once."""

# ── asyncio ──────────────────────────────────────────────────────────────────────────────────────────────────────


class AsyncioSocket(asyncio.Protocol):
    """A connection of asyncio's without its streams, which cost as much as the rest of a request.

    Bytes that arrive while no call waits for any end it: they are not kept, so they cannot pile up either.
    """

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wanted: asyncio.Future[None] | None = None
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._got, self._ended, self._paused = b"", False, False
        self._broken: Exception | None = None
        self.asked = False
        """Is a request under way?"""

    async def swap(self, data: bytes, deadline: float) -> bytes:
        """Write, then read; reading does not wait for the writing."""
        if data:
            self._transport.write(data)
        while not self._got and not self._ended:
            if self._broken is not None:
                raise self._broken
            await self._arrival(deadline)
        got, self._got = self._got, b""
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return got

    async def _arrival(self, deadline: float) -> None:
        # A timer of the loop's costs a tenth of a cancel scope, and one serves many requests: it is set again only for
        # an earlier deadline, and checks when it fires whether a call waits for so long.
        rest = left(deadline)
        self._deadline = deadline
        self._wanted = wanted = self._loop.create_future()
        if self._timer is None or self._timer.when() > self._loop.time() + rest:
            self._set_timer(rest)
        try:
            await wanted
        finally:
            self._wanted = None

    def _set_timer(self, rest: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(rest, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._wanted is None or self._wanted.done():
            return
        if (rest := self._deadline - time.monotonic()) > 0:
            self._set_timer(rest)
        else:
            self._wanted.set_exception(TimeoutError())

    @property
    def silent(self) -> bool:
        """Has nothing arrived, the end of the stream included? The loop may have been held up for long."""
        if self._got or self._ended or self._transport.is_closing() or self._transport.get_write_buffer_size():
            return False
        return not self._readable(0)

    def close(self) -> None:
        """Close at once; a farewell could take as long as the service likes."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = cast("asyncio.Transport", transport)
        self._readable = waiter(transport.get_extra_info("socket"), write=False)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        if not self.asked:
            self._ended = True
            return self._transport.abort()
        self._got = self._got + data if self._got else data
        if len(self._got) > _MOST_UNREAD and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        return self._wake()

    def eof_received(self) -> None:
        """Called by asyncio, which then closes the connection."""
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio, just before it closes the socket."""
        if exc is not None and self.asked and not self._ended:
            with contextlib.suppress(OSError), _copied(self._transport.get_extra_info("socket")) as sock:
                self._got += sock.recv(AT_ONCE)  # a refusal may have come before the writing failed
        self._broken = exc or ConnectionAbortedError("connection closed")
        if self._timer is not None:
            self._timer.cancel()
        self._wake()

    def _wake(self) -> None:
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)


def _copied(sock: socket.socket) -> socket.socket:
    return socket.socket(sock.family, sock.type, sock.proto, os.dup(sock.fileno()))


async def _dial_asyncio(address: str, port: int) -> AsyncioSocket:
    return (await asyncio.get_running_loop().create_connection(AsyncioSocket, address, port))[1]


# ── trio ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class TrioSocket:
    """A socket of trio's. It is not read while no call waits: the kernel bounds the bytes that arrive then."""

    asked = False

    def __init__(self, sock: trio.socket.SocketType) -> None:
        self._sock = sock
        self._unsent = memoryview(b"")

    async def swap(self, data: bytes, deadline: float) -> bytes:
        """Write, then read; arriving bytes end the writing."""
        import trio

        stuck = bool(self._unsent)
        if data:
            self._unsent = memoryview(bytes(self._unsent) + data)
        with trio.move_on_after(left(deadline)):
            try:
                return await self._swap(stuck)
            except trio.ClosedResourceError as error:  # by the client's own close()
                raise ConnectionAbortedError("connection closed") from error
        raise TimeoutError

    async def _swap(self, stuck: bool) -> bytes:
        while self._unsent and not (stuck and await self._readable_first()):
            try:
                self._unsent = self._unsent[await self._sock.send(self._unsent) :]
            except OSError as error:
                return await self._last_words(error)
            stuck = True
        return await self._sock.recv(AT_ONCE)

    async def _readable_first(self) -> bool:
        """Wait until the socket takes more, or has something to read."""
        import trio

        async def wait(until: Callable[[Any], Awaitable[None]]) -> None:
            await until(self._sock)
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, trio.lowlevel.wait_readable)
            nursery.start_soon(wait, trio.lowlevel.wait_writable)
        return self._sock.is_readable()

    async def _last_words(self, error: OSError) -> bytes:
        if not self._sock.is_readable():
            raise error
        try:
            return await self._sock.recv(AT_ONCE)
        except OSError:
            raise error from None

    @property
    def silent(self) -> bool:
        """Has nothing arrived, the end of the stream included?"""
        return not self._unsent and not self._sock.is_readable()

    def close(self) -> None:
        """Close at once."""
        self._sock.close()


async def _dial_trio(address: str, port: int) -> TrioSocket:
    import trio

    sock = trio.socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await sock.connect((address, port))
    except BaseException:
        sock.close()
        raise
    return TrioSocket(sock)


# ── both ─────────────────────────────────────────────────────────────────────────────────────────────────────────

AwaitedSocket = AsyncioSocket | TrioSocket


async def aconnect(host: str, port: int, deadline: float) -> AwaitedSocket:
    """Open a connection to the first address of the host that answers, on the event loop that runs here."""
    with anyio.fail_after(left(deadline)):
        dial = _dial_asyncio if _on_asyncio() else _dial_trio
        infos = [] if is_address(host) else await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = unique(infos) or [host]
        failed: OSError = ConnectionError("the host has no address")
        for address in addresses:
            patience = None if address == addresses[-1] else left(deadline) * SHARE
            try:
                with anyio.move_on_after(patience):
                    return await dial(address, port)
            except OSError as error:
                failed = error
        raise failed


def _on_asyncio() -> bool:
    """Is it asyncio's loop that runs here, and not trio's?"""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
