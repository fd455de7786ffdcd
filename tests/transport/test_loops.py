"""One awaited client on many event loops: right answers, and every connection closed with its loop."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import warnings

import anyio
import pytest

from kronmem import AsyncClient
from tests.services import RawServer
from tests.services.raw import head


def echo(_server: object, connection: object, request: object) -> None:
    """Find the question itself."""
    query = request.body["query"]  # type: ignore[attr-defined] # a Recorded
    body = b'{"results": [{"memory": {"id": "m", "content": "%s"}, "similarity": 0.9}]}' % query.encode()
    connection.write(head(200, {"content-length": str(len(body))}) + body)  # type: ignore[attr-defined] # a Connection


async def asked(client: AsyncClient, query: str) -> None:
    assert [hit.content for hit in await client.recall("alice", query)] == [query]


def open_sockets() -> int:
    """Descriptors of this process that are sockets."""
    links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    return sum(os.readlink(link).startswith("socket:") for link in links if os.path.lexists(link))


linux = pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted in /proc")


@pytest.mark.slow
@linux
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_loops_one_after_another_leave_no_connection_behind(backend: str) -> None:
    with RawServer([echo]) as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        client = AsyncClient(server.url)
        anyio.run(asked, client, "first", backend=backend)
        gc.collect()
        before = open_sockets()
        for number in range(30):
            anyio.run(asked, client, f"question {number}", backend=backend)
        gc.collect()
        assert open_sockets() <= before + 2  # the server's side of the last one may still be closing
        assert server.connections == 31
        anyio.run(client.close, backend=backend)


@linux
def test_two_running_loops_keep_their_own_connections() -> None:
    """A call on one loop, then one on the other, and so on: neither takes the other's connections away."""
    turn = [threading.Semaphore(1), threading.Semaphore(0)]
    failures: list[BaseException] = []

    async def talk(client: AsyncClient, mine: int) -> None:
        for number in range(50):
            assert await asyncio.to_thread(turn[mine].acquire, timeout=60)
            try:
                await asked(client, f"loop {mine} question {number}")
            finally:
                turn[1 - mine].release()

    def run(client: AsyncClient, mine: int) -> None:
        try:
            asyncio.run(talk(client, mine))
        except BaseException as error:  # noqa: BLE001 -- for the main thread to raise
            failures.append(error)

    with RawServer([echo]) as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        client = AsyncClient(server.url)
        threads = [threading.Thread(target=run, args=(client, mine)) for mine in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert server.connections == 2
        gc.collect()


def test_a_client_that_is_dropped_unclosed_closes_its_connections() -> None:
    async def main(url: str) -> None:
        client = AsyncClient(url)
        await asked(client, "question")
        del client
        gc.collect()
        await asyncio.sleep(0)

    with RawServer([echo]) as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main(server.url))
        gc.collect()
