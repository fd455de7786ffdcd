"""Sockets for httpcore that know the call's deadline.

httpx's timeout is per read: a reply dripped a byte a second outlives it for ever. Here each read gets what is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import Any

import httpcore

from kronmem.settings import is_loopback


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
        for address in _addresses(host, port, self._clock.left()):
            try:
                inner = self._inner.connect_tcp(address, port, self._clock.left(), local_address, socket_options)
                return _Stream(inner, self._clock)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed or httpcore.ConnectError


class _AsyncStream(httpcore.AsyncNetworkStream):
    """A plain asyncio connection that holds what is written until something is read. The caller keeps the deadline."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer, self._held = reader, writer, b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._held:
            held, self._held = self._held, b""
            self._writer.write(held)
        try:
            return await self._reader.read(max_bytes)
        except OSError as error:
            raise httpcore.ReadError from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._held += buffer

    async def aclose(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):  # it was broken already: so it is closed
            await self._writer.wait_closed()

    def get_extra_info(self, info: str) -> Any:  # the signature is httpcore's
        if info == "is_readable":  # it asks this of an idle connection: anything to read means that it is over
            return self._reader.at_eof() or self._writer.is_closing()
        return self._writer.get_extra_info(info)


class AsyncioBackend(httpcore.AsyncNetworkBackend):
    """Plain http on asyncio without the layers in between, which cost as much as the rest of a request."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,  # the signature is httpcore's
    ) -> httpcore.AsyncNetworkStream:
        try:
            reader, writer = await asyncio.open_connection(host, port, limit=2**20)
        except OSError as error:
            raise httpcore.ConnectError from error
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _AsyncStream(reader, writer)


def _addresses(host: str, port: int, timeout: float) -> Sequence[str]:
    """Look the host up within the deadline: the system's resolver takes no timeout, so a thread waits for it."""
    if is_loopback(host) and host != "localhost":
        return [host]
    answers: SimpleQueue[Sequence[str] | OSError] = SimpleQueue()

    def look_up() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answers.put(list(dict.fromkeys(str(info[4][0]) for info in found)))
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
