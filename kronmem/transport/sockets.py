"""Sockets that know the call's deadline.

httpx's timeout is per read: a reply dripped a byte a second outlives it for ever. Here each read gets what is left.
"""

from __future__ import annotations

import asyncio
import ipaddress
import select
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, cast

import anyio
import httpcore

SHARE = 0.1
"""Of the time that is left, an address with others after it gets so much: one may swallow every packet."""


class Clock:
    """The deadline of the request that a slot is busy with."""

    at = 0.0

    def left(self) -> float:
        left = self.at - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout
        return left


class _Stream(httpcore.NetworkStream):
    """A socket whose every read and write gets what is left of the deadline, not a fresh timeout.

    What is written is held until something is read: head and body leave in one packet instead of two.
    """

    def __init__(self, inner: httpcore.NetworkStream, clock: Clock) -> None:
        self._inner, self._clock, self._held = inner, clock, b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._held:
            held, self._held = self._held, b""
            self._inner.write(held, self._clock.left())
        return self._inner.read(max_bytes, self._clock.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._held += buffer

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, self._clock.left()), self._clock)

    def get_extra_info(self, info: str) -> Any:  # the signature is httpcore's
        return self._inner.get_extra_info(info)


class DeadlineBackend(httpcore.NetworkBackend):
    def __init__(self, clock: Clock) -> None:
        self._clock, self._inner = clock, httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,  # the signature is httpcore's
    ) -> httpcore.NetworkStream:
        failed: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        addresses = _addresses(host, port, self._clock.left())
        for address in addresses:
            left = self._clock.left()
            try:
                patience = left if address == addresses[-1] else left * SHARE
                inner = self._inner.connect_tcp(address, port, patience, local_address, socket_options)
                return _Stream(inner, self._clock)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed or httpcore.ConnectError


class _AsyncStream(httpcore.AsyncNetworkStream, asyncio.Protocol):
    """A connection of asyncio's without the layers in between, which cost as much as the rest of a request.

    The caller keeps the deadline, and closes what it breaks off.
    """

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wanted: asyncio.Future[None] | None = None
        self._got, self._ended = b"", False
        self._broken: Exception | None = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        while not self._got and not self._ended:
            if self._broken is not None:
                raise httpcore.ReadError from self._broken
            self._wanted = self._loop.create_future()
            await self._wanted
        got, self._got = self._got, b""
        return got

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._transport.write(buffer)

    async def aclose(self) -> None:
        self._transport.abort()  # a farewell could take as long as the service likes
        await asyncio.sleep(0)  # the socket is closed in the loop's next round

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        try:
            secured = await self._loop.start_tls(self._transport, self, ssl_context, server_hostname=server_hostname)
        except OSError as error:
            raise httpcore.ConnectError from error
        self._transport = cast("asyncio.Transport", secured)
        return self

    def get_extra_info(self, info: str) -> Any:  # the signature is httpcore's
        if info == "is_readable":  # of an idle connection: anything to read, its end included, means that it is over
            return bool(self._got) or self._ended or self._transport.is_closing() or _readable(self._transport)
        return self._transport.get_extra_info(info)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._got += data
        self._wake()

    def eof_received(self) -> None:
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._broken = exc or ConnectionAbortedError()
        self._wake()

    def _wake(self) -> None:
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)


def _readable(transport: asyncio.Transport) -> bool:
    """Has something arrived that the loop has not seen yet? It may have been held up for long by whoever blocks it."""
    number = transport.get_extra_info("socket").fileno()
    if sys.platform == "win32":
        return bool(select.select([number], [], [], 0)[0])
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(0))


class _AsyncioBackend(httpcore.AsyncNetworkBackend):
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,  # the signature is httpcore's
    ) -> httpcore.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        failed: OSError | None = None
        try:
            addresses = (
                [host] if _is_address(host) else _unique(await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            )
        except OSError as error:
            raise httpcore.ConnectError from error
        for address in addresses:
            left = anyio.current_effective_deadline() - anyio.current_time()
            try:
                with anyio.move_on_after(None if address == addresses[-1] else left * SHARE):
                    return (await loop.create_connection(_AsyncStream, address, port))[1]
            except OSError as error:
                failed = error
        raise httpcore.ConnectError from failed


def awaited_backend() -> httpcore.AsyncNetworkBackend:
    """The sockets of the event loop that runs here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return cast("httpcore.AsyncNetworkBackend", httpcore.TrioBackend())
    return _AsyncioBackend()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _unique(found: Iterable[tuple[Any, ...]]) -> Sequence[str]:
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def _addresses(host: str, port: int, timeout: float) -> Sequence[str]:
    """Look the host up within the deadline: the system's resolver takes no timeout, so a thread waits for it."""
    if _is_address(host):
        return [host]
    answers: SimpleQueue[Sequence[str] | OSError] = SimpleQueue()

    def look_up() -> None:
        try:
            answers.put(_unique(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
        except OSError as error:
            answers.put(error)

    threading.Thread(target=look_up, name="kronmem-resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=timeout)
    except Empty:
        raise httpcore.ConnectTimeout from None
    if isinstance(answer, OSError):
        raise httpcore.ConnectError from answer
    return answer
