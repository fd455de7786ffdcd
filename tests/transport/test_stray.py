"""Replies that nobody asked for, over every way to a service and in every shell: none is anybody's answer."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

import pytest
import trustme

from kronmem import Retry
from kronmem.core.wire import Request
from kronmem.transport.http1 import Http1, Target
from kronmem.transport.tls import Tls
from tests.services import RawServer
from tests.services.proxies import Tunnels, server_context
from tests.services.raw import head, respond
from tests.shells import shell
from tests.transport.conftest import Reached

FOUND: dict[str, Any] = {"results": []}
ONCE = Retry(attempts=1)


def hit(content: str) -> bytes:
    """A reply to recall with one memory."""
    body = json.dumps({"results": [{"memory": {"id": "m1", "content": content}, "similarity": 0.9}]}).encode()
    return head(200, {"content-length": str(len(body))}) + body


def recalled(client: Any) -> list[str]:
    return [one.content for one in client.recall("alice", "question")]


def in_one_write(_server: Any, connection: Any, _request: Any) -> None:
    connection.write(hit("mine") + hit("somebody else's"))


def in_one_segment(_server: Any, connection: Any, _request: Any) -> None:
    """Two writes, and in TLS two records, that leave together."""
    cork = getattr(socket, "TCP_CORK", None)
    if cork is not None:
        connection.connection.setsockopt(socket.IPPROTO_TCP, cork, 1)
    connection.write(hit("mine"))
    connection.write(hit("somebody else's"))
    if cork is not None:
        connection.connection.setsockopt(socket.IPPROTO_TCP, cork, 0)


@pytest.mark.parametrize("too_much", [in_one_write, in_one_segment])
def test_a_second_reply_along_with_the_first_answers_no_other_question(
    kind: str, reach: Reached, too_much: Any
) -> None:
    server = RawServer([too_much])
    with reach(server) as (url, _), shell(kind, url) as client:
        assert [recalled(client) for _ in range(4)] == [["mine"]] * 4
        assert server.connections == 4


def test_a_reply_that_arrives_on_an_idle_connection_answers_no_other_question(kind: str, reach: Reached) -> None:
    idle, written = threading.Semaphore(0), threading.Semaphore(0)

    def late(_server: Any, connection: Any, _request: Any) -> None:
        connection.write(hit("mine"))
        assert idle.acquire(timeout=60)
        connection.write(hit("somebody else's"))
        written.release()

    server = RawServer([late])
    with reach(server) as (url, tunnels), shell(kind, url, retry=ONCE, timeout=60) as client:
        for _ in range(3):
            assert recalled(client) == ["mine"]
            idle.release()
            assert written.acquire(timeout=60)
            if tunnels is not None:
                tunnels.wait_until_quiet()
        assert server.connections == 3


def test_what_keeps_arriving_on_an_idle_connection_is_not_kept(kind: str, reach: Reached) -> None:
    flood = bytes(1 << 20)
    written: list[int] = []
    ended = threading.Event()

    def gush(_server: Any, connection: Any, _request: Any) -> None:
        if written:
            return respond(200, body=FOUND)(_server, connection, _request)
        connection.write(hit("mine"))
        written.append(0)
        try:
            while written[0] < 256:
                connection.write(flood)
                written[0] += 1
        except OSError:
            return None
        finally:
            connection.close()
            ended.set()
        return None

    with reach(RawServer([gush])) as (url, _), shell(kind, url, timeout=60) as client:
        assert recalled(client) == ["mine"]
        assert ended.wait(30) if kind == "asyncio" else True  # the others only notice when they use it again
        assert recalled(client) == []
        assert ended.wait(60)
        assert written[0] < 64  # the kernel's buffers, one for each hop


def half_ahead(line: socket.socket, context: ssl.SSLContext) -> None:
    """Answer in TLS, each time with the next reply behind the first; its last bytes leave after the next request."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    service = context.wrap_bio(incoming, outgoing, server_side=True)

    def heard(step: Callable[[], Any]) -> Any:
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                line.sendall(outgoing.read())
                if not (data := line.recv(65536)):
                    raise ConnectionError from None
                incoming.write(data)

    heard(service.do_handshake)
    rest = b""
    while True:
        asked = b""
        while not asked.endswith(b"}"):  # the end of a request to recall
            asked += heard(lambda: service.read(65536))
        service.write(hit("mine"))
        service.write(hit("somebody else's"))
        records = rest + outgoing.read()
        rest = records[-20:]
        line.sendall(records[:-20])


class HalfAhead:
    """A service at which every connection is served so."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._context, self.connections = context, 0
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = self._listener.accept()
                self.connections += 1
                self._threads.append(threading.Thread(target=self._serve, args=(line,), daemon=True))
                self._threads[-1].start()

    def _serve(self, line: socket.socket) -> None:
        with line, contextlib.suppress(OSError):  # the client has hung up
            half_ahead(line, self._context)

    def close(self) -> None:
        """Stop listening, and wait for the clients to go."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(60)


@pytest.mark.parametrize("way", ["tls", "connect"])
def test_a_reply_that_has_half_arrived_with_the_first_answers_no_other_question(
    kind: str, way: str, trusted: None, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a record waits inside the TLS layer: no socket is readable, nothing is decrypted."""
    name = "127.0.0.1" if way == "tls" else "memory.example"
    with contextlib.closing(HalfAhead(server_context(authority, name))) as server, contextlib.ExitStack() as stack:
        if way == "connect":
            proxy = stack.enter_context(Tunnels(server))
            monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        with shell(kind, server.url if way == "tls" else f"https://{name}", retry=ONCE, timeout=60) as client:
            assert [recalled(client) for _ in range(3)] == [["mine"]] * 3
            assert server.connections == 3


def test_half_a_record_beyond_the_reply_is_noticed(trusted: None, authority: trustme.CA) -> None:
    """The other half would come after the next request, and look like its answer."""
    target = Target("https://memory.example", None)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    service = server_context(authority, "memory.example").wrap_bio(incoming, outgoing, server_side=True)
    layer, http = Tls(target.context, target.host, target.address), Http1(target)

    def answered(said: bytes | None) -> bytes:
        incoming.write(said or b"")
        with contextlib.suppress(ssl.SSLWantReadError):
            service.do_handshake()
        return outgoing.read()

    steps = layer.handshake()
    said = next(steps)
    with pytest.raises(StopIteration):
        while True:
            said = steps.send(answered(said))
    asking = layer.carry(http.ask(Request("GET", "/health")))
    tickets = answered(next(asking))
    service.read(65536)
    service.write(hit("mine"))
    mine = tickets + outgoing.read()
    service.write(hit("somebody else's"))
    with pytest.raises(StopIteration) as done:
        asking.send(mine + outgoing.read()[:40])
    assert done.value.value.status == 200
    assert http.reusable
    assert not layer.drained
