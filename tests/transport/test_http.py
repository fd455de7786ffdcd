"""Faults of the network and of replies, on real sockets, in every shell."""

from __future__ import annotations

import contextlib
import gc
import gzip
import itertools
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import respx
from hypothesis import given
from hypothesis import strategies as st

from kronmem import (
    AsyncClient,
    Client,
    DeadlineError,
    KronmemError,
    RateLimitError,
    ReplyError,
    Retry,
    ServerError,
    StatusError,
    TransportError,
)
from kronmem.core.wire import Request
from kronmem.transport import pools
from kronmem.transport.failures import FAILURES
from kronmem.transport.http1 import Http1, Target, headers
from kronmem.transport.pools import HttpTransport
from tests.services import KronvexServer, RawServer
from tests.services.raw import close, drip, gzip_bomb, hang, head, redirect, reset, respond, respond_raw, truncated
from tests.shells import shell

FAST = Retry(first=0.001, longest=0.001)
STORED = {"id": "m1", "content": "text"}
FOUND: dict[str, Any] = {"results": []}


def ids(server: RawServer) -> set[str]:
    return {request.body["metadata"]["kronmem"]["id"] for request in server.requests}


@contextlib.contextmanager
def black_hole(port: int) -> Iterator[str]:
    """An address at which connecting never comes to an end: its queue is full and nobody accepts."""
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.2", port))
        full.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.2", port))
        yield "127.0.0.2"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a full queue swallows connections on Linux only")
def test_an_address_that_swallows_everything_does_not_use_up_the_call(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RawServer([respond(200, body=FOUND)]) as server:
        port = int(server.url.rsplit(":", 1)[1])
        with (
            black_hole(port) as nowhere,
            shell(kind, f"http://memory.example:{port}", timeout=5, retry=Retry(attempts=1)) as client,
        ):
            usual = socket.getaddrinfo

            def look_up(host: Any, *args: Any, **options: Any) -> Any:
                if host not in ("memory.example", b"memory.example"):
                    return usual(host, *args, **options)
                return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in (nowhere, "127.0.0.1")]

            monkeypatch.setattr(socket, "getaddrinfo", look_up)
            for _ in range(2):
                assert client.recall("alice", "question") == []
        assert server.connections == 1


@pytest.mark.parametrize(
    "script",
    [
        [respond(503), respond(503), respond(201, body=STORED)],
        [respond(500, body="<html>boom</html>"), respond(201, body=STORED)],
        [respond(502, {"content-type": "text/html"}, "<html>"), respond(201, body=STORED)],
        [respond(429, {"retry-after": "0"}), respond(201, body=STORED)],
        [respond(429, {"retry-after": "-5"}), respond(201, body=STORED)],
        [respond(429, {"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}), respond(201, body=STORED)],
        [reset(), respond(201, body=STORED)],
        [close(), reset(), respond(201, body=STORED)],
        [truncated(), respond(201, body=STORED)],
    ],
)
def test_a_write_survives_passing_faults_with_one_id(kind: str, script: Any) -> None:
    with RawServer(script) as server, shell(kind, server.url, retry=FAST) as client:
        assert client.remember("alice", "text").id == "m1"
        assert len(server.requests) == len(script)
        assert len(ids(server)) == 1
        assert {request.headers["idempotency-key"] for request in server.requests} == ids(server)


def test_a_write_whose_reply_was_lost_is_stored_once(kind: str) -> None:
    with KronvexServer() as server, shell(kind, server.url, api_key=server.key, retry=FAST) as client:
        client.remember("alice", "first words")
        server.lose_next(1)
        assert client.remember("alice", "alpha bravo charlie").deduplicated
        assert len(client.memories("alice")) == 2


def test_a_refused_connection_is_a_typed_error_at_once(kind: str) -> None:
    with RawServer([close()]) as server:
        url = server.url
    with shell(kind, url, retry=FAST) as client:
        with pytest.raises(TransportError) as caught:
            client.recall("alice", "question")
        assert not caught.value.sent
        health = client.health()
        assert (health.ok, health.status) == (False, "unreachable")


@pytest.mark.slow
@pytest.mark.parametrize(
    "action",
    [
        hang,
        lambda: drip(head(200, {"content-length": "900"}) + b" " * 900, interval=0.02),
        lambda: drip(itertools.chain(b"HTTP/1.1 200 OK\r\nx: ", itertools.repeat(120)), interval=0.02),
    ],
    ids=["hang", "dripped body", "dripped headers"],
)
def test_a_slow_service_holds_nobody_beyond_the_deadline(kind: str, action: Any) -> None:
    with RawServer([action()]) as server, shell(kind, server.url, timeout=0.3) as client:
        with pytest.raises(DeadlineError):
            client.recall("alice", "question")
        assert len(server.requests) == 1


def test_a_redirect_is_not_followed_and_nothing_leaves(kind: str) -> None:
    with RawServer([respond(200, body=FOUND)]) as other, RawServer([redirect(f"{other.url}/api")]) as server:
        with shell(kind, server.url, api_key="kv-secret") as client, pytest.raises(StatusError, match="redirect"):
            client.recall("alice", "question")
        assert other.requests == []


def test_a_decompression_bomb_is_a_typed_error(kind: str) -> None:
    with RawServer([gzip_bomb(300)]) as server, shell(kind, server.url, retry=FAST) as client:
        with pytest.raises(ReplyError, match="larger than 8 MB"):
            client.recall("alice", "question")


def test_a_compressed_reply_is_read(kind: str) -> None:
    packed = gzip.compress(json.dumps(FOUND).encode())
    cut = respond(200, {"content-encoding": "gzip"}, packed[:-9])
    with RawServer(
        [respond(200, {"content-encoding": "gzip"}, packed), cut, respond(200, {"content-encoding": "br"}, b"x")]
    ) as server:
        with shell(kind, server.url, retry=Retry(attempts=1)) as client:
            assert client.recall("alice", "question") == []
            with pytest.raises(KronmemError):
                client.recall("alice", "question")
            with pytest.raises(ReplyError, match="unsupported Content-Encoding"):
                client.recall("alice", "question")


@pytest.mark.parametrize(
    "body",
    [
        b"<html>hello</html>",
        b"[]",
        b"null",
        b"",
        b'{"results": [{"memory": {"id": null, "content": "x"}}]}',
        b'{"results": [{"memory": {"id": "m", "content": "x"}, "similarity": NaN}]}',
        b'{"results": [{"memory": {"id": "m"}}]}',
        b'{"results": {"a": 1}}',
        b'{"results": [1]}',
        b'\xff\xfe{"results": []}',
        b'{"results": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b'{"results": [{"memory": {"id": "m", "content": "x", "metadata": '
        + b'{"a":' * 200_000
        + b"1"
        + b"}" * 200_002,
    ],
    ids=lambda body: ascii(body[:24]),
)
def test_a_reply_that_cannot_be_read_is_a_typed_error_that_does_not_echo_it(kind: str, body: bytes) -> None:
    with RawServer([respond(200, body=body)]) as server, shell(kind, server.url) as client:
        with pytest.raises(ReplyError) as caught:
            client.recall("alice", "question")
        assert len(str(caught.value)) < 200
        assert len(server.requests) == 1


def test_no_content_and_double_keys_have_a_defined_meaning(kind: str) -> None:
    twice = b'{"results": [], "results": [{"memory": {"id": "m", "content": "x"}, "similarity": 0.9}]}'
    with RawServer([respond(200, body=twice), respond(204), respond(204)]) as server, shell(kind, server.url) as client:
        assert [hit.memory.id for hit in client.recall("alice", "question")] == ["m"]
        assert client.forget("alice", "m") is None
        assert client.clear("alice") == 0


def test_a_connection_is_reused_but_never_after_a_500(kind: str) -> None:
    script = [respond(200, body=FOUND), respond(200, body=FOUND), respond(500), respond(200, body=FOUND)]
    with RawServer(script) as server, shell(kind, server.url, retry=FAST) as client:
        client.recall("alice", "question")
        client.recall("alice", "question")
        assert server.connections == 1
        assert client.recall("alice", "question") == []
        assert server.connections == 2


def test_a_connection_the_server_closed_meanwhile_is_not_used(kind: str) -> None:
    def answer_and_close(_server: Any, connection: Any, _request: Any) -> None:
        connection.write(head(200, {"content-length": "15"}) + b'{"results": []}')
        connection.close()

    with (
        RawServer([answer_and_close]) as server,
        shell(kind, server.url, retry=Retry(attempts=2, first=0.01)) as client,
    ):
        for _ in range(5):
            assert client.recall("alice", "question") == []


def test_a_connection_closed_while_the_loop_was_blocked_is_not_used() -> None:
    import asyncio

    async def main(server: RawServer) -> None:
        async with AsyncClient(server.url, retry=Retry(attempts=1)) as client:
            for _ in range(3):
                assert await client.recall("alice", "question") == []
                assert closed.acquire(timeout=10)  # nobody else gets a turn: so do agents that block their loop
                time.sleep(0.05)

    def answer_and_close(_server: Any, connection: Any, _request: Any) -> None:
        connection.write(head(200, {"content-length": "15"}) + b'{"results": []}')
        connection.close()
        closed.release()

    closed = threading.Semaphore(0)
    with RawServer([answer_and_close]) as server:
        asyncio.run(main(server))
        assert server.connections == 3


BODY = b'{"results": []}'
PIECES = [
    b"HTTP/1.1 200 OK",
    b"HTTP/1.1 204 OK",
    b"\r\n",
    b"\r\n\r\n",
    b"content-length: 2\r\n",
    b"{}",
    b"2\r\n",
    b"0\r\n",
]
PIECES += [
    b"transfer-encoding: chunked\r\n",
    b"content-encoding: gzip\r\n",
    b"connection: close\r\n",
    gzip.compress(b"{}"),
]


@pytest.mark.parametrize(
    ("reply", "reused"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n" + BODY, True),
        (b"HTTP/1.1 200\r\nContent-Length:15\r\nx: a\r\nx: b\r\n\r\n" + BODY, True),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n" + BODY[:5] + b"\r\na;x=y\r\n" + BODY[5:] + b"\r\n0\r\nt: 1\r\n\r\n", True),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n" + BODY, True),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 15\r\n\r\n" + BODY, False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 15\r\n\r\n" + BODY, False),
    ],
)  # fmt: skip
def test_every_form_of_a_reply_is_read(kind: str, reply: bytes, reused: bool) -> None:
    with RawServer([respond_raw(reply)]) as server, shell(kind, server.url, retry=Retry(attempts=1)) as client:
        for _ in range(3):
            assert client.recall("alice", "question") == []
        assert server.connections == (1 if reused else 3)


def test_a_reply_that_ends_with_its_connection_is_read(kind: str) -> None:
    def answer_and_close(_server: Any, connection: Any, _request: Any) -> None:
        connection.write(b"HTTP/1.1 200 OK\r\n\r\n" + BODY)
        connection.close()

    with RawServer([answer_and_close]) as server, shell(kind, server.url, retry=Retry(attempts=1)) as client:
        assert client.recall("alice", "question") == []
        assert client.recall("alice", "question") == []


@pytest.mark.parametrize(
    "reply",
    [
        b"hello there\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 15\r\ncontent-length: 16\r\n\r\n" + BODY,
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n" + BODY,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n" + BODY,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n" + BODY,
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 1_000_000 + b"\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nanything",
    ],
)
def test_what_is_no_reply_is_a_typed_error_at_once(kind: str, reply: bytes) -> None:
    def answer(_server: Any, connection: Any, _request: Any) -> None:
        with contextlib.suppress(ConnectionError):  # hung up on, and rightly so
            connection.write(reply)

    with RawServer([answer]) as server, shell(kind, server.url, retry=Retry(attempts=1), timeout=60) as client:
        with pytest.raises(TransportError, match="broke"):
            client.recall("alice", "question")


@given(st.lists(st.one_of(st.binary(max_size=20), st.sampled_from(PIECES)), max_size=12))
def test_whatever_bytes_come_back_are_a_reply_or_a_typed_failure(pieces: list[bytes]) -> None:
    http = Http1(Target("http://memory.example", None))
    http.encode(Request("POST", "/", body=b"{}"))
    try:  # until there is a reply, as a connection does; an end without one is a failure
        assert any(http.feed(piece) for piece in (*filter(None, pieces), b""))
    except (*FAILURES, KronmemError):
        assert not http.reusable


@pytest.mark.parametrize("apart", [0.0, 0.05])
def test_what_a_service_sends_beyond_its_reply_answers_no_other_question(kind: str, apart: float) -> None:
    def hit(content: str) -> bytes:
        found = {"results": [{"memory": {"id": "m1", "content": content}, "similarity": 0.9}]}
        body = json.dumps(found).encode()
        return head(200, {"content-length": str(len(body))}) + body

    written = threading.Semaphore(0)

    def too_much(_server: Any, connection: Any, _request: Any) -> None:
        if apart:
            connection.write(hit("mine"))
            time.sleep(apart)
            connection.write(hit("somebody else's"))
        else:
            connection.write(hit("mine") + hit("somebody else's"))
        written.release()

    with RawServer([too_much]) as server, shell(kind, server.url) as client:
        for _ in range(3):
            assert [one.content for one in client.recall("alice", "question")] == ["mine"]
            assert written.acquire(timeout=60)  # HTTP/1.1 cannot tell a reply that comes after the next request
        assert server.connections == 3


def test_a_rate_limit_carries_how_long_to_wait(kind: str) -> None:
    with KronvexServer(rate_limit=1) as server, shell(kind, server.url, api_key=server.key) as client:
        client.remember("alice", "alpha bravo")
        client.recall("alice", "alpha bravo")
        with pytest.raises(RateLimitError) as caught:
            client.recall("alice", "alpha bravo")
        assert caught.value.retry_after == 60.0


def test_requests_in_flight_stay_within_the_concurrency(kind: str) -> None:
    with KronvexServer() as server, shell(kind, server.url, api_key=server.key) as client:
        client.remember("alice", "alpha bravo")
        client.recall_many("alice", ["alpha bravo"] * 40, concurrency=4)
        assert 1 <= server.most_in_flight <= 4


@pytest.mark.slow
def test_the_client_itself_bounds_what_is_under_way() -> None:
    import asyncio

    async def main(server: KronvexServer) -> None:
        async with AsyncClient(server.url, api_key=server.key) as client:
            await client.remember("alice", "alpha bravo")
            answers = await asyncio.gather(*(client.recall("alice", "alpha bravo") for _ in range(300)))
            assert all(len(hits) == 1 for hits in answers)

    with KronvexServer() as server:
        asyncio.run(main(server))
        assert server.connections <= 101


@pytest.mark.slow
@pytest.mark.parametrize("headers", [{}, {"connection": "close"}], ids=["kept", "closed"])
def test_more_calls_than_connections_wait_for_their_turn(kind: str, headers: dict[str, str]) -> None:
    with RawServer([respond(200, headers, FOUND)]) as server, shell(kind, server.url, timeout=100) as client:
        assert client.recall_many("alice", ["question"] * 300, concurrency=150) == [[]] * 300
        assert server.connections <= 100 or headers


def test_partial_results_are_kept(kind: str) -> None:
    def answer(_connection: int, _request: int) -> Any:
        return lambda server, connection, request: respond(
            *((500,) if b"bad" in request.content else (200,)), body=FOUND
        )(server, connection, request)

    with RawServer(answer) as server, shell(kind, server.url, retry=Retry(attempts=1)) as client:
        with pytest.raises(KronmemError, match="2 of 4 calls failed") as caught:
            client.recall_many("alice", ["good 1", "bad 1", "good 2", "bad 2"])
        assert list(caught.value.partial) == [0, 2]  # type: ignore[attr-defined] # FanOutError
        assert {type(cause) for cause in caught.value.causes.values()} == {ServerError}  # type: ignore[attr-defined] # FanOutError
        with pytest.raises(KronmemError) as across:
            client.recall_across(["alice", "bob"], "bad")
        assert list(across.value.causes) == ["alice", "bob"]  # type: ignore[attr-defined] # FanOutError


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_cancelled_call_gives_its_connection_up_cleanly(backend: str) -> None:
    import anyio

    async def main(server: RawServer) -> None:
        async with AsyncClient(server.url) as client:
            with anyio.move_on_after(0.1) as scope:
                await client.recall_many("alice", ["question"] * 10)
            assert scope.cancelled_caught
            assert client._wiring.link.breaker.state == "closed"

    with RawServer([hang()]) as server:
        anyio.run(main, server, backend=backend)


def test_an_async_client_goes_from_one_event_loop_to_the_next() -> None:
    import asyncio

    with KronvexServer() as server:
        client = AsyncClient(server.url, api_key=server.key)
        asyncio.run(client.remember("alice", "alpha bravo"))
        assert len(asyncio.run(client.recall("alice", "alpha bravo"))) == 1
        asyncio.run(client.close())
        gc.collect()


def test_a_client_works_in_many_threads_and_after_a_fork() -> None:
    with KronvexServer() as server, Client(server.url, api_key=server.key) as client:
        client.remember("alice", "alpha bravo")
        found: list[int] = []
        threads = [
            threading.Thread(target=lambda: found.append(len(client.recall("alice", "alpha bravo")))) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [1] * 8
        child = os.fork()
        if child == 0:
            os._exit(0 if len(client.recall("alice", "alpha bravo")) == 1 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(client.recall("alice", "alpha bravo")) == 1


def test_a_transport_can_be_passed_in() -> None:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json=FOUND)

    with Client("https://memory.example", api_key="kv-x", transport=httpx.MockTransport(handler)) as client:
        assert client.recall("alice", "question") == []
    assert seen[0].headers["x-api-key"] == "kv-x"
    assert str(seen[0].url) == "https://memory.example/api/v1/agents/alice/recall"

    def fails(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no", request=request)

    broken = Client("https://memory.example", retry=FAST, transport=httpx.MockTransport(fails))
    with pytest.raises(TransportError, match=r"cannot connect to https://memory\.example:443"):
        broken.recall("alice", "question")


@pytest.mark.anyio
async def test_a_transport_can_be_passed_in_to_await() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=FOUND))
    async with AsyncClient("https://memory.example", transport=transport) as client:
        assert await client.recall("alice", "question") == []


@pytest.mark.anyio
async def test_respx_answers_for_an_httpx_transport_that_is_handed_over() -> None:
    url = "http://memory.example"
    with respx.mock(base_url=url) as mock:
        route = mock.post("/api/v1/agents/alice/recall").respond(json=FOUND)
        with Client(url, transport=httpx.HTTPTransport(), retry=FAST) as client:
            assert client.recall("alice", "question") == []
        async with AsyncClient(url, transport=httpx.AsyncHTTPTransport(), retry=FAST) as patient:
            assert await patient.recall("alice", "question") == []
            assert len(mock.calls) == 2
            route.mock(side_effect=httpx.ConnectError)
            with pytest.raises(TransportError, match="cannot connect") as caught:
                await patient.recall("alice", "question")
    assert not caught.value.sent


@pytest.mark.parametrize(
    ("url", "host", "sent"),
    [
        ("https://Bücher.example:8443/mé moire/", "xn--bcher-kva.example", "xn--bcher-kva.example:8443"),
        ("http://[::1]:8000", "::1", "[::1]:8000"),
        ("http://my_service/100%25", "my_service", "my_service"),
    ],
)
def test_any_host_and_path_can_be_written(url: str, host: str, sent: str) -> None:
    target, request = Target(url, None), Request("GET", "/health")
    assert target.host == host
    assert dict(headers(target, request))[b"host"] == sent.encode()
    assert httpx.URL(url).raw_path.rstrip(b"/") == target.prefix.encode()


def test_the_url_may_have_a_path(kind: str) -> None:
    with RawServer([respond(200, body=FOUND)]) as server, shell(kind, f"{server.url}/memory/") as client:
        client.recall("alice", "question")
        assert server.requests[0].path == "/memory/api/v1/agents/alice/recall"


class Late:
    """A connection whose transport is closed by another thread just before it would be idle."""

    closed, reusable = False, True

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport

    @property
    def rested(self) -> bool:
        self._transport.close()
        return True

    def close(self) -> None:
        self.closed = True


def test_a_connection_that_comes_to_rest_while_its_client_is_closed_is_closed_too() -> None:
    transport = HttpTransport(Target("http://127.0.0.1:1", None))
    late = Late(transport)
    transport._stock.give_back(late)  # type: ignore[arg-type] # as much of a Connection as is used
    assert late.closed


@pytest.mark.parametrize(("seconds", "connections"), [(pools.KEEP_ALIVE, 1), (0.0, 2)])
def test_a_connection_that_was_idle_for_too_long_is_not_used_again(
    kind: str, monkeypatch: pytest.MonkeyPatch, seconds: float, connections: int
) -> None:
    monkeypatch.setattr(pools, "KEEP_ALIVE", seconds)
    with RawServer([respond(200, body=FOUND)]) as server, shell(kind, server.url) as client:
        for _ in range(2):
            client.recall("alice", "question")
        assert server.connections == connections
