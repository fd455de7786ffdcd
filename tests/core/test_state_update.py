"""`state.update` when the reply of its write is lost, stepped by hand, and against the engine itself."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue
from pydantic_core import from_json

from kronmem import AsyncClient, Client, DeadlineError, Retry, ServerError, TransportError
from kronmem.core import state
from kronmem.core.wire import Reply, Request
from kronmem.transport.local import LocalTransport, open_sqlite
from tests.core.test_exchange import Clock, Steps, link

SOON = Retry(first=0.0)
DONE = Reply(200, b'{"stored":true}')
CHANGED = Reply(409, b'{"detail":"The value has changed since it was read"}')
MISSING = Reply(404, b'{"detail":"State not found"}')
RESET = TransportError("reset after the request was sent")


def value(number: int, second: int) -> Reply:
    return Reply(200, f'{{"value":{number},"updated_at":"2026-01-01T00:00:{second:02}Z"}}'.encode())


class Counting:
    """One call of `update` that adds one, and how often the function was asked."""

    def __init__(self, *answers: Reply | TransportError | float, attempts: int = 3) -> None:
        clock, self.asked = Clock(), list[Any]()
        known = link(clock, retry=Retry(attempts=attempts, first=0.0))
        self.played = Steps(state.update("a", "n", self.add, 0, known, 10.0), clock, *answers)

    def add(self, old: JsonValue) -> JsonValue:
        self.asked.append(old)
        return old + 1  # type: ignore[operator] # a number

    def methods(self) -> list[str]:
        return [request.method for request in self.played.requests]


@pytest.mark.parametrize("lost", [RESET, Reply(502), Reply(504)], ids=str)
def test_a_write_that_was_done_unheard_is_not_done_again(lost: Any) -> None:
    counting = Counting(value(0, 1), lost, value(1, 2))
    assert counting.played.run() == 1
    assert counting.methods() == ["GET", "PUT", "GET"]
    assert counting.asked == [0]


def test_a_write_that_was_lost_is_sent_again_without_asking_the_function() -> None:
    counting = Counting(value(0, 1), RESET, value(0, 1), DONE)
    assert counting.played.run() == 1
    assert counting.asked == [0]


def test_a_write_that_arrives_late_after_all_is_the_one_that_counts() -> None:
    counting = Counting(value(0, 1), RESET, value(0, 1), CHANGED, value(1, 2))
    assert counting.played.run() == 1
    assert counting.asked == [0]


def test_a_value_that_may_hold_the_lost_write_is_left_alone() -> None:
    counting = Counting(value(0, 1), RESET, value(7, 2))
    with pytest.raises(TransportError, match="reset after"):
        counting.played.run()
    assert counting.methods() == ["GET", "PUT", "GET"]


def test_what_was_never_sent_is_tried_again_as_ever() -> None:
    counting = Counting(value(0, 1), TransportError("refused", sent=False), Reply(503), DONE)
    assert counting.played.run() == 1
    assert counting.methods() == ["GET", "PUT", "PUT", "PUT"]


def test_somebody_who_was_faster_is_answered_by_asking_the_function_again() -> None:
    counting = Counting(value(0, 1), Reply(503), CHANGED, value(5, 2), DONE)
    assert counting.played.run() == 6
    assert counting.asked == [0, 5]


def test_an_error_says_that_the_write_may_have_been_sent() -> None:
    late = Counting(value(0, 1), 11.0, DeadlineError("slow"))
    with pytest.raises(DeadlineError) as caught:
        late.played.run()
    assert caught.value.sent
    with pytest.raises(ServerError):
        Counting(value(0, 1), Reply(504), value(0, 1), attempts=1).played.run()


def test_a_first_value_whose_reply_was_lost_is_written_once() -> None:
    counting = Counting(MISSING, RESET, value(1, 1))
    assert counting.played.run() == 1
    again = Counting(MISSING, RESET, MISSING, DONE)
    assert again.played.run() == 1
    assert from_json(again.played.requests[1].body or b"") == {"value": 1, "if_updated_at": None}


class Lossy:
    """The engine, behind a line that loses the reply of the first conditional write."""

    def __init__(self) -> None:
        self.inner: LocalTransport = open_sqlite(":memory:")
        self.lost = 0

    def send(self, request: Request) -> Reply:
        reply = self.inner.send(request)
        if request.method == "PUT" and b"if_updated_at" in (request.body or b"") and not self.lost:
            self.lost += 1
            raise TransportError("reset after commit")
        return reply

    async def asend(self, request: Request) -> Reply:
        return self.send(request)

    def close(self) -> None:
        self.inner.close()

    async def aclose(self) -> None:
        self.inner.close()


def add(old: JsonValue) -> JsonValue:
    return old + 1  # type: ignore[operator] # a number


def test_one_lost_reply_adds_one_at_the_engine() -> None:
    line = Lossy()
    with Client("http://localhost:1", transport=line, outbox=False, retry=SOON) as client:
        client.state("a").set("n", 0)
        assert client.state("a").update("n", add) == 1
        assert client.state("a").get("n") == 1
    assert line.lost == 1


@pytest.mark.anyio
async def test_one_lost_reply_adds_one_at_the_engine_awaited() -> None:
    line = Lossy()
    async with AsyncClient("http://localhost:1", transport=line, outbox=False, retry=SOON) as client:
        await client.state("a").set("n", 0)
        assert await client.state("a").update("n", add) == 1
        assert await client.state("a").get("n") == 1
    assert line.lost == 1


def test_none_deletes_the_key_unless_somebody_was_faster() -> None:
    with Client("sqlite://") as client:
        there = client.state("a")
        assert there.update("k", lambda _old: None) is None  # there was none
        there.set("k", 1)
        seen: list[JsonValue] = []

        def gone(old: JsonValue) -> JsonValue:
            seen.append(old)
            if old == 1:
                there.set("k", 2)  # somebody else, in between
            return None

        assert there.update("k", gone) is None
        assert seen == [1, 2]
        assert there.get("k", "nothing") == "nothing"
        assert there.keys() == []


def test_a_deletion_whose_reply_was_lost_is_done() -> None:
    line = Lossy()
    with Client("http://localhost:1", transport=line, outbox=False, retry=SOON) as client:
        client.state("a").set("n", 1)
        assert client.state("a").update("n", lambda _old: None) is None
        assert client.state("a").keys() == []
    assert line.lost == 1
