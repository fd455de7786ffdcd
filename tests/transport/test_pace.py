"""Peers that send in crumbs, take in crumbs, or refuse before they have listened: deadlines hold, loops go on."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import trustme

from kronmem import AsyncClient, DeadlineError, Retry
from kronmem.core.wire import Reply, Request
from kronmem.transport.http1 import Http1, Target
from kronmem.transport.pools import AsyncHttpTransport, HttpTransport
from tests.services import RawServer
from tests.services.proxies import WAYS, server_context
from tests.services.raw import head
from tests.shells import shell

LARGE = bytes(24 * 1024 * 1024)
"""More than the kernel's buffers on both sides take."""
MANY = 20_000
NAME = "memory.example"
"""A service that is reached through a proxy only."""


def in_chunks_of_one(written: threading.Event) -> Any:
    """A whole reply at once, small enough for the kernel's buffers."""
    body = b'{"results": [' + b" " * MANY + b"]}"
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"

    def act(_server: Any, connection: Any, _request: Any) -> None:
        connection.write(head(200, {"transfer-encoding": "chunked"}) + chunks)
        written.set()

    return act


def endless_hints(server: Any, connection: Any, _request: Any) -> None:
    endless(server, connection, b"HTTP/1.1 103 Early Hints\r\n\r\n")


def endless_chunks(server: Any, connection: Any, _request: Any) -> None:
    connection.write(head(200, {"transfer-encoding": "chunked"}))
    endless(server, connection, b"1\r\n \r\n")


def endless(server: Any, connection: Any, crumb: bytes) -> None:
    with contextlib.suppress(OSError):
        while not server.stopping.is_set():
            connection.write(crumb * 1000)
    connection.close()


async def turns(client: AsyncClient, expected: Any = None, begin: Callable[[], bool] = lambda: True) -> int:
    """How often another task had its turn while one call was under way, since `begin` said so."""
    count = 0

    async def other() -> None:
        nonlocal count
        while not begin():
            await anyio.lowlevel.checkpoint()
        while True:
            await anyio.lowlevel.checkpoint()
            count += 1

    async with anyio.create_task_group() as group:
        group.start_soon(other)
        await anyio.lowlevel.checkpoint()
        with pytest.raises(expected) if expected else contextlib.nullcontext():
            await client.recall("alice", "question")
        group.cancel_scope.cancel()
    return count


CRUMBS = {
    "chunks of one byte": head(200, {"transfer-encoding": "chunked"}) + b"1\r\nx\r\n" * MANY,
    "interim replies": b"HTTP/1.1 103 Early Hints\r\n\r\n" * MANY,
}


@pytest.mark.parametrize("crumbs", CRUMBS.values(), ids=CRUMBS)
def test_a_reply_in_crumbs_is_read_in_short_stretches(crumbs: bytes) -> None:
    """However much arrives at once: a conversation yields None where others may run."""
    asking = Http1(Target("http://memory.example", None)).ask(Request("GET", "/health"))
    assert next(asking)
    assert asking.send(crumbs) is None
    assert sum(1 for _ in itertools.takewhile(lambda said: said is None, asking)) > MANY / 1000


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_reply_in_chunks_of_one_byte_lets_other_tasks_run(backend: str) -> None:
    """Turns are counted from when all of it has arrived, which holds up the loop: before, there are any number."""
    written = threading.Event()

    async def main(server: RawServer) -> int:
        async with AsyncClient(server.url, timeout=100) as client:
            return await turns(client, begin=lambda: bool(server.requests) and written.wait(60))

    with RawServer([in_chunks_of_one(written)]) as server:
        assert anyio.run(main, server, backend=backend) > MANY / 1000


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_interim_replies_without_end_keep_the_deadline_and_let_other_tasks_run(backend: str) -> None:
    async def main(url: str) -> int:
        async with AsyncClient(url, timeout=0.5, retry=Retry(attempts=1)) as client:
            return await turns(client, DeadlineError)

    with RawServer([endless_hints]) as server:
        assert anyio.run(main, server.url, backend=backend) > 10


@pytest.mark.parametrize("action", [endless_chunks, endless_hints])
def test_a_reply_in_crumbs_holds_nobody_beyond_the_deadline(kind: str, action: Any) -> None:
    with RawServer([action]) as server, shell(kind, server.url, timeout=0.05, retry=Retry(attempts=1)) as client:
        with pytest.raises(DeadlineError):
            client.recall("alice", "question")


def test_a_shorter_deadline_on_the_same_connection_is_kept(kind: str) -> None:
    given_up = threading.Event()

    def answer_the_first(server: Any, connection: Any, _request: Any) -> None:
        if len(server.requests) > 1:
            given_up.wait(30)
        connection.write(head(200, {"content-length": "15"}) + b'{"results": []}')

    with (
        RawServer([answer_the_first]) as server,
        shell(kind, server.url, timeout=60, retry=Retry(attempts=1)) as client,
    ):
        assert client.recall("alice", "question") == []
        with pytest.raises(DeadlineError):
            client.agent("alice").with_timeout(0.2).recall("question")
        given_up.set()
        assert server.connections == 1


@pytest.mark.slow
def test_a_longer_deadline_on_the_same_connection_outlives_the_shorter_one_before_it(kind: str) -> None:
    def answer_the_first(server: Any, connection: Any, _request: Any) -> None:
        if len(server.requests) > 1:
            server.stopping.wait(4)
        connection.write(head(200, {"content-length": "15"}) + b'{"results": []}')

    with (
        RawServer([answer_the_first]) as server,
        shell(kind, server.url, timeout=60, retry=Retry(attempts=1)) as client,
    ):
        assert client.agent("alice").with_timeout(3.0).recall("question") == []
        assert client.recall("alice", "question") == []
        assert server.connections == 1


# ── large requests ───────────────────────────────────────────────────────────────────────────────────────────────


Serve = Callable[[socket.socket], None]
Listening = Callable[[Serve], AbstractContextManager[tuple[str, list[int]]]]


@contextmanager
def listening(
    serve: Serve, way: str, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, list[int]]]:
    """The url of a server, or of one behind it as a proxy, that does as it is told; the list of its connections."""
    served: list[int] = []

    def opened(connection: socket.socket) -> socket.socket:
        if way == "connect":
            until_empty_line(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        return tls.wrap_socket(connection, server_side=True) if way in ("tls", "connect") else connection

    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        if way in ("proxy", "connect"):
            monkeypatch.setenv("ALL_PROXY", f"http://{address}")

        def run() -> None:
            for number in itertools.count():
                with contextlib.suppress(OSError):
                    connection, _ = listener.accept()
                    # A close with unread bytes drops what Nagle's algorithm still holds back, such as a refusal.
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    served.append(number)
                    with opened(connection) as one:
                        serve(one)
                if listener.fileno() < 0:
                    return

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        scheme = "https" if way in ("tls", "connect") else "http"
        yield f"{scheme}://{NAME if way in ('proxy', 'connect') else address}", served
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.fixture
def listen(way: str, trusted: None, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> Listening:
    """Start a server that is reached in one of the ways."""
    tls = server_context(authority, NAME if way == "connect" else "127.0.0.1")
    return lambda serve: listening(serve, way, tls, monkeypatch)


def send(kind: str, url: str, timeout: float) -> Reply:
    """One request with a large body."""
    request = Request("POST", "/upload", body=LARGE, timeout=timeout)
    if kind == "sync":
        transport = HttpTransport(Target(url, None))
        with contextlib.closing(transport):
            return transport.send(request)

    async def main() -> Reply:
        awaited = AsyncHttpTransport(Target(url, None))
        try:
            return await awaited.asend(request)
        finally:
            await awaited.aclose()

    return anyio.run(main, backend=kind)


def until_empty_line(connection: socket.socket) -> None:
    heard = b""
    while b"\r\n\r\n" not in heard:
        heard += connection.recv(1024)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("then", ["close", "wait"])
def test_a_refusal_before_the_body_was_read_is_that_refusal_after_one_try(
    kind: str, then: str, listen: Listening
) -> None:
    def refuse(connection: socket.socket) -> None:
        until_empty_line(connection)
        connection.sendall(head(413, {"content-length": "0", "connection": "close"}))
        if then == "wait":  # with the connection open, and reading nothing
            assert heard.wait(60)

    heard = threading.Event()
    with listen(refuse) as (url, served):
        assert send(kind, url, 60).status == 413
        heard.set()
        assert len(served) == 1


@pytest.mark.parametrize("way", [pytest.param(way, marks=pytest.mark.slow) for way in WAYS])
def test_a_refusal_is_heard_after_interim_replies_to_half_a_body(kind: str, listen: Listening) -> None:
    def refuse(connection: socket.socket) -> None:
        until_empty_line(connection)
        for _ in range(4):  # until no buffer takes any more of the body
            connection.sendall(b"HTTP/1.1 102 Processing\r\n\r\n")
            heard.wait(0.1)  # never set so early: the client is sending again by then
        connection.sendall(head(413, {"content-length": "0", "connection": "close"}))
        assert heard.wait(90)

    heard = threading.Event()
    with listen(refuse) as (url, served):
        try:
            assert send(kind, url, 60).status == 413
        finally:
            heard.set()
        assert len(served) == 1


SIP = 256 * 1024


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("interval", [0.06, 10.0], ids=["steadily", "hardly"])
def test_a_peer_that_reads_slowly_holds_nobody_beyond_the_deadline(
    kind: str, way: str, interval: float, listen: Listening
) -> None:
    """A steady one makes room for more several times a second, and needs six for it all: a fresh timeout is no help."""
    taken = 0

    def sip(connection: socket.socket) -> None:
        nonlocal taken
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * SIP)
        with contextlib.suppress(OSError):
            while got := connection.recv(SIP):
                whole, taken = taken // SIP, taken + len(got)
                if taken // SIP > whole:
                    gone.wait(interval)

    gone = threading.Event()
    with listen(sip) as (url, _):
        with pytest.raises(DeadlineError, match=r"timed out after 1 s: POST https?://[\w.]+:\d+/…"):
            send(kind, url, 1.0)
        taken_by_then = taken
        gone.set()
        assert taken_by_then < len(LARGE) * 2 // 3
