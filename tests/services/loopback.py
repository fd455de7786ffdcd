"""Real sockets on 127.0.0.1: listening, one thread per connection, resetting and closing without a trace."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import ssl
import struct
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True)
class Recorded:
    """One request as it arrived; header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def path(self) -> str:
        """The path as sent, still quoted, without the query."""
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        """The query; the last value of a repeated name wins."""
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def body(self) -> Any:
        """The parsed JSON body, or None when there is none or it is not JSON."""
        try:
            return json.loads(self.content)
        except ValueError:
            return None


class Connection(BaseHTTPRequestHandler):
    """One kept-alive connection: reads requests and hands each to its server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listener

    def setup(self) -> None:
        """Number the connection and its requests, both from zero."""
        super().setup()
        self.owner = self.server.owner
        self.index = self.owner.count_connection()
        self.answered = 0
        self.doomed = False

    def handle(self) -> None:
        """Serve until either side hangs up."""
        with contextlib.suppress(ConnectionError, ssl.SSLError):  # a client may dislike the certificate
            super().handle()

    def handle_one_request(self) -> None:
        """Read one whole request and pass it on."""
        self.raw_requestline = self.rfile.readline(65537)
        if self.raw_requestline and self.doomed:
            self.reset()
        elif not self.raw_requestline:
            self.close_connection = True
        elif self.parse_request():
            self.owner.serve(self, self.owner.record(self._read()))
            self.answered += 1

    def _read(self) -> Recorded:
        headers = {name.lower(): value for name, value in self.headers.items()}
        content = self.rfile.read(int(headers.get("content-length", 0)))
        return Recorded(self.command, self.path, headers, content)

    def send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Write one whole response in one piece."""
        lines = [f"HTTP/1.1 {status} {reason(status)}", *(f"{name}: {value}" for name, value in headers.items())]
        self.write("\r\n".join([*lines, "", ""]).encode("latin-1") + (b"" if self.command == "HEAD" else body))

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        self.wfile.write(data)

    def close(self) -> None:
        """Hang up politely after this request."""
        self.close_connection = True

    def reset(self) -> None:
        """Hang up with an RST after this request."""
        self.server.reset_on_close(self.connection)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class Listener(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """The listening socket; it knows its open connections so that it can end them."""

    request_queue_size = 256

    def __init__(self, owner: Loopback) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.owner = owner
        self._open: set[socket.socket] = set()
        self._resetting: set[socket.socket] = set()
        self._workers: list[threading.Thread] = []
        self._lock = threading.Lock()

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection; its handshake is left to its own thread."""
        request, address = super().get_request()
        if self.owner.tls is not None:
            request = self.owner.tls.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        return request, address

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a new connection in its own thread."""
        worker = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        with self._lock:
            self._open.add(request)
            self._workers.append(worker)
        worker.start()

    def reset_on_close(self, request: socket.socket) -> None:
        """Make the end of this connection an RST."""
        with self._lock:
            self._resetting.add(request)

    def shutdown_request(self, request: Any) -> None:
        """End one connection, politely or not."""
        with self._lock:
            self._open.discard(request)
            rude = request in self._resetting
            self._resetting.discard(request)
        if rude:
            request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request.close()
        else:
            super().shutdown_request(request)

    def handle_error(self, *_: Any) -> None:
        """Keep what went wrong for the end of the test."""
        self.owner.failures.append(sys.exc_info()[1])

    def hang_up(self) -> None:
        """End every open connection and wait for its thread."""
        with self._lock:
            for request in self._open:
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)
        for worker in self._workers:
            worker.join()


class Loopback:
    """A server for the length of a `with` block; subclasses say what a request gets by `serve`."""

    tls: ssl.SSLContext | None = None
    """Speak TLS, once this is set."""

    def __init__(self) -> None:
        self.requests: list[Recorded] = []
        self.connections = 0
        self.failures: list[BaseException | None] = []
        self.stopping = threading.Event()
        self.lock = threading.RLock()
        self._listener: Listener | None = None
        self._thread: threading.Thread | None = None

    def serve(self, connection: Connection, request: Recorded) -> None:
        """Answer one request, or do not."""
        raise NotImplementedError

    @property
    def url(self) -> str:
        """The base URL, known once started."""
        assert self._listener is not None, "start the server first"
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self._listener.server_address[1]}"

    def start(self) -> Self:
        """Listen on a free port."""
        self._listener = Listener(self)
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop listening, end every connection and every thread; may be called twice."""
        self.stopping.set()
        if self._listener is not None and self._thread is not None and self._thread.is_alive():
            self._listener.shutdown()
            self._thread.join()
            self._listener.server_close()
            self._listener.hang_up()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: object, *_: object) -> None:
        self.close()
        if self.failures and kind is None:
            raise RuntimeError("the test server failed") from self.failures[0]

    def record(self, request: Recorded) -> Recorded:
        """Remember a request."""
        with self.lock:
            self.requests.append(request)
        return request

    def count_connection(self) -> int:
        """Number a new connection."""
        with self.lock:
            self.connections += 1
            return self.connections - 1


def reason(status: int) -> str:
    """The phrase after a status code."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
