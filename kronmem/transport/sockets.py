"""Sockets for httpcore that know the call's deadline.

httpx's timeout is per read: a reply dripped a byte a second outlives it for ever. Here each read gets what is left.
"""

from __future__ import annotations

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
    """A socket whose every read and write gets what is left of the deadline, not a fresh timeout."""

    def __init__(self, inner: httpcore.NetworkStream, clock: Clock) -> None:
        self._inner, self._clock = inner, clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._clock.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._clock.left())

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
