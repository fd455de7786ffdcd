"""Requests over sockets, blocking.

Idle connections are used last in first out: httpcore's own pool looks at every connection for every request.
Redirects are never followed. A call's deadline covers connecting, every header byte and every body byte.
"""

from __future__ import annotations

import os
import threading
import time

from kronmem.core.wire import Reply, Request
from kronmem.errors import ConfigError, DeadlineError
from kronmem.transport.connection import Line
from kronmem.transport.httpx import Detour
from kronmem.transport.target import FAILURES, IN_FLIGHT, Target, failure


class HttpTransport:
    """Blocking requests to one service. Safe to share between threads; at most `IN_FLIGHT` requests at a time."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._idle: list[Line | Detour] = []
        self._room = threading.BoundedSemaphore(IN_FLIGHT)
        self._pid = os.getpid()
        self._closed = False

    def send(self, request: Request) -> Reply:
        """Send once, within `request.timeout`."""
        if self._closed:
            raise ConfigError("this client is closed")
        if self._pid != os.getpid():
            self._after_fork()
        deadline = time.monotonic() + request.timeout
        if not self._room.acquire(timeout=request.timeout):
            raise DeadlineError("too many requests under way: none ended in time", sent=False)
        try:
            return self._exchange(request, deadline)
        finally:
            self._room.release()

    def _exchange(self, request: Request, deadline: float) -> Reply:
        line = self._take()
        reusable = False
        try:
            reply = line.send(request, deadline)
            # After a 500 the server drops the connection, but only when it is used again.
            reusable = reply.status < 500
            return reply
        except FAILURES as error:
            raise failure(error) from None
        finally:
            if reusable and not self._closed:
                self._idle.append(line)
            else:
                line.close()

    def _take(self) -> Line | Detour:
        kind = Detour if Detour.needed(self._target) else Line
        while self._idle:
            try:
                line = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if type(line) is kind and line.usable():
                return line
            line.close()
        return kind(self._target)

    def _after_fork(self) -> None:
        # The parent still speaks on these sockets: drop them without a word.
        self._pid, self._idle, self._room = os.getpid(), [], threading.BoundedSemaphore(IN_FLIGHT)

    def close(self) -> None:
        """Close every connection."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
