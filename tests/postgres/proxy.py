"""Stands between a client and PostgreSQL and breaks the line where a test wants it broken."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from urllib.parse import parse_qs, urlsplit

WRITE = b"INSERT INTO kronmem.memories("
COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"


class Proxy:
    """Forwards everything; breaks the first `times` lines that commit a memory, before or after the server heard of it."""

    def __init__(self, url: str, *, heard: bool, times: int = 1) -> None:
        parts = urlsplit(url)
        self._server = _address(url)
        self._heard, self._left = heard, times
        self._door = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = [self._door]
        port = self._door.getsockname()[1]
        self.url = f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}?sslmode=disable&gssencmode=disable"
        self.broken = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX if isinstance(self._server, str) else socket.AF_INET)
            server.connect(self._server)
            self._open += [client, server]
            threading.Thread(target=self._forward, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answer, args=(server, client), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        wrote, before = False, b""
        for data in _read(client):
            wrote, before = wrote or WRITE in before + data, data[-len(WRITE) :]  # it may come in two parts
            if wrote and COMMIT in data and self._left:
                self._left -= 1
                self.broken += 1
                _cut(client)
                if self._heard:
                    _pass_on(data, server)  # the server commits, and answers nobody
                    _cut(server, socket.SHUT_WR)
                    return
                break
            _pass_on(data, server)
        _cut(server)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        for data in _read(server):
            _pass_on(data, client)
        _cut(client)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._open:
            _cut(one)
            one.close()


def _address(url: str) -> str | tuple[str, int]:
    parts = urlsplit(url)
    if folder := parse_qs(parts.query).get("host"):
        return f"{folder[0]}/.s.PGSQL.5432"
    return parts.hostname or "127.0.0.1", parts.port or 5432


def _read(line: socket.socket) -> Iterator[bytes]:
    return iter(lambda: _receive(line), b"")


def _pass_on(data: bytes, line: socket.socket) -> None:
    with suppress(OSError):
        line.sendall(data)


def _receive(line: socket.socket) -> bytes:
    try:
        return line.recv(65536)
    except OSError:
        return b""


def _cut(line: socket.socket, how: int = socket.SHUT_RDWR) -> None:
    with suppress(OSError):
        line.shutdown(how)
