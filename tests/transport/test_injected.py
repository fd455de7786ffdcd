"""Transports that a user passes in: bodies within bounds of size and time, and nothing after `close`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
import httpx
import pytest

from kronmem import ConfigError, DeadlineError, ReplyError, Retry
from tests.shells import shell

URL = "http://memory.example"
# httpx leaves its own generators half-way when a reply is given up, and trio says so of each.
given_up = pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")


class Stream(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body of many chunks, which counts those that were taken."""

    def __init__(self, chunk: bytes, count: int, pause: float = 0.0) -> None:
        self.chunk, self.count, self.pause, self.taken = chunk, count, pause, 0

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(self.count):
            self.taken += 1
            time.sleep(self.pause)
            yield self.chunk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(self.count):
            self.taken += 1
            await anyio.sleep(self.pause)
            yield self.chunk


def answering(body: Stream, **headers: str) -> httpx.MockTransport:
    return httpx.MockTransport(lambda _request: httpx.Response(200, headers=headers, stream=body))


@given_up
def test_a_body_is_not_collected_beyond_its_bound(kind: str) -> None:
    body = Stream(b"x" * 2**20, 100)
    with shell(kind, URL, transport=answering(body), outbox=False) as client:
        with pytest.raises(ReplyError, match="larger than 8 MB"):
            client.recall("a", "question")
    assert body.taken == 9


def test_a_body_that_drips_in_ends_with_the_deadline(kind: str) -> None:
    body = Stream(b"x", 300, pause=0.01)
    once = {"outbox": False, "retry": Retry(attempts=1), "timeout": 0.1}
    with shell(kind, URL, transport=answering(body), **once) as client:
        with pytest.raises(DeadlineError):
            client.recall("a", "question")
    assert body.taken < 300


@given_up
def test_a_body_that_cannot_be_decompressed_is_a_typed_error(kind: str) -> None:
    transport = answering(Stream(b"no gzip", 1), **{"content-encoding": "gzip"})
    with shell(kind, URL, transport=transport, outbox=False) as client:
        with pytest.raises(ReplyError, match="could not be decompressed"):
            client.recall("a", "question")


CALLS: dict[str, Callable[[Any], object]] = {
    "recall": lambda client: client.recall("a", "question"),
    "recall_many": lambda client: client.recall_many("a", ["question"]),
    "recall_across": lambda client: client.recall_across(["a"], "question"),
    "remember": lambda client: client.remember("a", "text"),
    "remember_many": lambda client: client.remember_many("a", ["text"]),
    "memories": lambda client: client.memories("a"),
    "forget": lambda client: client.forget("a", "m1"),
    "erase": lambda client: client.erase("a"),
    "agents": lambda client: client.agents(),
    "health": lambda client: client.health(),
    "state": lambda client: client.state("a").get("k"),
}


def test_every_call_of_a_closed_client_is_refused_whoever_made_its_transport(kind: str) -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={"value": 1})

    with shell(kind, URL, transport=httpx.MockTransport(answer), outbox=False) as client:
        state = client.state("a")
        assert state.get("k") == 1
        client.close()
        for name, call in {**CALLS, "older state": lambda _client: state.get("k")}.items():
            with pytest.raises(ConfigError, match="this client is closed"):
                call(client)
                pytest.fail(f"{name} was carried out")
    assert len(asked) == 1
