"""A server that does what a script says, for the faults a network has; every action is a plain function."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tests.services.loopback import Connection, Loopback, Recorded, reason

Action = Callable[["RawServer", Connection, Recorded], None]
Script = Sequence[Action] | Callable[[int, int], Action]


class RawServer(Loopback):
    """Plays a script: a list of actions for the requests in order of arrival, or (connection, request) → action.

    The last action of a list repeats for ever; with `repeat=False` a connection is closed after it instead.
    A function gets the number of the connection and of the request within it, both from zero.
    Every request is read whole and recorded before its action.
    """

    def __init__(self, script: Script, *, repeat: bool = True) -> None:
        super().__init__()
        self._script = script
        self._repeat = repeat
        self._played = 0

    def serve(self, connection: Connection, request: Recorded) -> None:
        """Play the next action."""
        self._next(connection)(self, connection, request)

    def _next(self, connection: Connection) -> Action:
        if not isinstance(self._script, Sequence):
            return self._script(connection.index, connection.answered)
        with self.lock:
            index, self._played = self._played, self._played + 1
        if index < len(self._script):
            return self._script[index]
        return self._script[-1] if self._repeat else close()


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """The status line and the headers, with the empty line after them."""
    lines = [f"HTTP/1.1 {status} {reason(status)}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def respond(status: int = 200, headers: Mapping[str, str] | None = None, body: object = b"") -> Action:
    """A whole response; a body that is not bytes or str goes as JSON. The headers given replace the usual ones."""
    data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    usual = {"content-type": "application/json", "content-length": str(len(data))}
    given = {name.lower(): value for name, value in (headers or {}).items()}
    return respond_raw(head(status, {**usual, **given}) + data)


def respond_raw(data: bytes) -> Action:
    """These bytes and nothing else; the connection stays open."""
    return lambda _server, connection, _request: connection.write(data)


def redirect(location: str, status: int = 307) -> Action:
    """Send the client elsewhere."""
    return respond(status, {"location": location})


def truncated(body: bytes = b'{"id": "', missing: int = 100, status: int = 200) -> Action:
    """Promise more bytes than come, then close."""

    def act(_server: RawServer, connection: Connection, _request: Recorded) -> None:
        length = str(len(body) + missing)
        connection.write(head(status, {"content-type": "application/json", "content-length": length}) + body)
        connection.close()

    return act


def close() -> Action:
    """Close without an answer."""
    return lambda _server, connection, _request: connection.close()


def reset() -> Action:
    """Reset the connection without an answer."""
    return lambda _server, connection, _request: connection.reset()


def reset_after(callback: Callable[[Recorded], object]) -> Action:
    """Do what was asked, then reset the connection without an answer."""

    def act(_server: RawServer, connection: Connection, request: Recorded) -> None:
        callback(request)
        connection.reset()

    return act


def hang() -> Action:
    """Say nothing until the server is closed."""

    def act(server: RawServer, connection: Connection, _request: Recorded) -> None:
        server.stopping.wait()
        connection.close()

    return act


def drip(data: Iterable[int], interval: float = 0.01, stop: threading.Event | None = None) -> Action:
    """One byte at a time, `interval` seconds apart, until the data ends, `stop` is set or the server is closed.

    The data may be bytes, or never end: `itertools.chain(b"HTTP/1.1 200 OK\\r\\nx: ", itertools.repeat(120))`.
    """

    def act(server: RawServer, connection: Connection, _request: Recorded) -> None:
        for byte in data:
            if server.stopping.wait(interval) or (stop is not None and stop.is_set()):
                return connection.close()
            connection.write(bytes([byte]))
        return None

    return act


def gzip_bomb(megabytes: int) -> Action:
    """A valid JSON reply of so many megabytes, gzipped to about a thousandth and made while it is sent."""
    headers = {"content-type": "application/json", "content-encoding": "gzip", "transfer-encoding": "chunked"}

    def act(_server: RawServer, connection: Connection, _request: Recorded) -> None:
        connection.write(head(200, headers))
        for piece in _zipped(megabytes):
            connection.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        connection.write(b"0\r\n\r\n")

    return act


def _zipped(megabytes: int) -> Iterator[bytes]:
    squeeze = zlib.compressobj(wbits=31)
    blank = b" " * 1_000_000
    for data in (b"{", *([blank] * megabytes), b"}"):
        piece = squeeze.compress(data)
        if piece:
            yield piece
    yield squeeze.flush()
