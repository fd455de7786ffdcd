"""Calls that are given up at any moment: nobody ever gets the reply to somebody else's question."""

from __future__ import annotations

import random
import threading
from typing import Any

import anyio
import pytest

from kronmem import DeadlineError
from kronmem.core.wire import Request
from kronmem.transport.http1 import Target
from kronmem.transport.pools import AsyncHttpTransport, HttpTransport
from tests.services import RawServer
from tests.services.raw import head
from tests.transport.conftest import Reached

SEED = 20_260_730
AT_ONCE = 8


def echo(chance: random.Random) -> Any:
    """Answer with the request's own body, now or a little later, in one piece or in two."""

    def act(server: RawServer, connection: Any, request: Any) -> None:
        reply = head(200, {"content-length": str(len(request.content))}) + request.content
        cut = chance.randrange(len(reply)) if chance.random() < 0.3 else len(reply)
        server.stopping.wait(chance.choice((0, 0, 0.001, 0.003)))
        connection.write(reply[:cut])
        if cut < len(reply):
            server.stopping.wait(chance.choice((0, 0.001)))
            connection.write(reply[cut:])

    def suppressed(server: RawServer, connection: Any, request: Any) -> None:
        try:
            act(server, connection, request)
        except OSError:  # the client has hung up
            connection.close()

    return suppressed


class Tally:
    """Counts calls by how they ended."""

    def __init__(self, total: int) -> None:
        self.chance, self.total = random.Random(SEED), total
        self.answered = self.given_up = 0
        self.wrong: list[tuple[bytes, bytes]] = []

    def questions(self, worker: int) -> Any:
        """Requests with bodies of their own, until enough have been given up."""
        number = 0
        while self.given_up < self.total:
            number += 1
            body = f"question {worker}-{number} ".encode() * self.chance.choice((1, 1, 1, 500))
            yield Request("POST", "/echo", body=body, timeout=30.0), self.chance.choice((0.0005, 0.002, 0.004, 5.0))

    def heard(self, request: Request, body: bytes) -> None:
        self.answered += 1
        if body != request.body:
            self.wrong.append((request.body or b"", body))


def blocking(url: str, tally: Tally) -> None:
    """Threads whose deadlines are too short, more often than not."""
    transport = HttpTransport(Target(url, None))

    def work(worker: int) -> None:
        for request, patience in tally.questions(worker):
            hurried = Request(request.method, request.path, body=request.body, timeout=patience)
            try:
                tally.heard(request, transport.send(hurried).body)
            except DeadlineError:
                tally.given_up += 1

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    transport.close()


async def awaiting(url: str, tally: Tally) -> None:
    """Tasks that are cancelled, more often than not."""
    transport = AsyncHttpTransport(Target(url, None))

    async def work(worker: int) -> None:
        for request, patience in tally.questions(worker):
            with anyio.move_on_after(patience) as scope:
                tally.heard(request, (await transport.asend(request)).body)
            tally.given_up += scope.cancelled_caught

    async with anyio.create_task_group() as group:
        for worker in range(AT_ONCE):
            group.start_soon(work, worker)
    await transport.aclose()


def give_up(kind: str, reach: Reached, total: int) -> None:
    server = RawServer([echo(random.Random(SEED))])
    with reach(server) as (url, _):
        tally = Tally(total)
        if kind == "sync":
            blocking(url, tally)
        else:
            anyio.run(awaiting, url, tally, backend=kind)
    assert tally.wrong == []
    assert tally.answered > 0
    assert server.connections < tally.given_up + tally.answered  # some were used again


def test_a_call_given_up_leaves_no_reply_to_the_next(kind: str, reach: Reached) -> None:
    give_up(kind, reach, 40)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["plain", "tls", "proxy", "connect"], indirect=True)
def test_ten_thousand_calls_given_up_leave_no_reply_to_the_next(kind: str, reach: Reached) -> None:
    give_up(kind, reach, 10_000 // 12 + 1)
