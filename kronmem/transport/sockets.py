"""TCP sockets that know a call's deadline, blocking; `async_sockets` has those of asyncio and trio. Bytes only.

All have the same face: `swap` writes, and returns the next bytes that were read, even before all is written (a service
may refuse a request before it has read its body); `silent` tells whether nothing has arrived unasked. Each wait gets
the rest of the deadline, not a fresh timeout: a peer that sends or takes a byte a second would outlive it for ever.
"""

from __future__ import annotations

import ipaddress
import math
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import Any

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


def unique(found: Iterable[tuple[Any, ...]]) -> Sequence[str]:
    return list(dict.fromkeys(str(info[4][0]) for info in found))
