"""Every way to a service: directly, through a proxy, through a tunnel, each with and without TLS."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import pytest
import trustme

from tests.services.loopback import Connection, Loopback, Recorded
from tests.services.raw import RawServer

WAYS = ("plain", "tls", "proxy", "connect")
LONG_WAYS = ("tls proxy", "tls in tls")


class Reachable(Protocol):
    """A server with an address."""

    @property
    def url(self) -> str: ...


class Tunnels(Loopback):
    """A proxy that leads every CONNECT to one place."""

    def __init__(self, to: Reachable) -> None:
        super().__init__()
        self._to = to
        self._quiet = threading.Condition()
        self._rounds = self._open = 0

    def serve(self, connection: Connection, request: Recorded) -> None:
        """Open a tunnel, and carry bytes until one end is closed."""
        connection.close()
        if request.method != "CONNECT":
            return connection.send(405, {"content-length": "0"}, b"")
        connection.write(b"HTTP/1.1 200 OK\r\n\r\n")
        port = int(self._to.url.rsplit(":", 1)[1])
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as far:
            far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._was_quiet(opened=1)
            try:
                self._carry(connection.connection, far)
            finally:
                self._was_quiet(opened=-1)
        return None

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        while not self.stopping.is_set():
            ready = select.select([near, far], [], [], 0.02)[0]
            for one in ready:
                if not (data := _received(one)):
                    return
                (far if one is near else near).sendall(data)
            if not ready:
                self._was_quiet()

    def _was_quiet(self, opened: int = 0) -> None:
        with self._quiet:
            self._rounds += 1
            self._open += opened
            self._quiet.notify_all()

    def wait_until_quiet(self) -> None:
        """Wait until all that was written before has been carried to the other end, or the tunnel has ended."""
        with self._quiet:
            until = self._rounds + 2
            assert self._quiet.wait_for(lambda: not self._open or self._rounds >= until, 30)


def _received(one: socket.socket) -> bytes:
    data = one.recv(65536)
    while isinstance(one, ssl.SSLSocket) and one.pending():
        data += one.recv(65536)
    return data


def secured(server: RawServer, authority: trustme.CA, name: str = "127.0.0.1") -> RawServer:
    """The same server, with a certificate for that name."""
    server.tls = server_context(authority, name)
    return server


def server_context(authority: trustme.CA, name: str) -> ssl.SSLContext:
    """What a server needs to speak TLS under that name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


@contextmanager
def reached(
    way: str, server: RawServer, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Tunnels | None]]:
    """The url under which the server is reached that way, and the tunnel if there is one."""
    if way == "plain":
        with server:
            yield server.url, None
    elif way == "tls":
        with secured(server, authority):
            yield server.url, None
    elif way in ("proxy", "tls proxy"):
        with secured(server, authority) if way == "tls proxy" else server:
            monkeypatch.setenv("HTTP_PROXY", server.url)
            yield "http://memory.example", None
    else:
        proxy = Tunnels(server)
        proxy.tls = server_context(authority, "127.0.0.1") if way == "tls in tls" else None
        with secured(server, authority, "memory.example"), proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url)
            yield "https://memory.example", proxy
