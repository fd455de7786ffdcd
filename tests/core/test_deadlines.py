"""A question of several requests has one deadline: each request gets what is left of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kronmem.core import flows, state
from kronmem.core.exchange import Link
from kronmem.core.wire import Reply
from tests.core.test_exchange import Clock, Steps, link

NO_ROUTE = Reply(404, b'{"detail":"Not Found"}')
ROW = b'{"id":"m1","content":"text"}'
LISTED = Reply(200, b'{"memories":[%s],"total":1}' % ROW)
LONG = "x" * 150_000
PARTS = Reply(200, b'{"value":"kronmem-parts:00000000:2"}')
DONE = Reply(200, b"{}")
QUESTIONS: dict[str, tuple[Callable[[Link], Any], list[Reply]]] = {
    "get": (lambda to: flows.get("a", "m1", to, 10.0), [NO_ROUTE, Reply(200, ROW), LISTED]),
    "history": (lambda to: flows.history("a", "m1", to, 10.0), [NO_ROUTE, NO_ROUTE, Reply(200, ROW), LISTED]),
    "describe": (
        lambda to: flows.describe("a", {"metadata": {"x": 1}}, to, 10.0),
        [Reply(200, b'{"id":"a","name":"a"}'), Reply(200, b'{"id":"a","name":"a","metadata":{"x":1}}')],
    ),
    "erase": (lambda to: flows.erase("a", to, 10.0), [NO_ROUTE, Reply(200, b'{"deleted":1}'), Reply(204)]),
    "clear": (
        lambda to: flows.clear("a", None, datetime(2100, 1, 1, tzinfo=UTC), to, 10.0),
        [
            NO_ROUTE,
            Reply(
                200,
                b'{"memories":[{"id":"m1","content":"t","created_at":"2026-01-01T00:00:00Z"},'
                b'{"id":"m2","content":"u","created_at":"2026-01-01T00:00:00Z"}],"total":2}',
            ),
            Reply(204),
            Reply(204),
        ],
    ),
    "BotWire's get": (
        lambda to: state.botwire_get("a", "k", to, 10.0),
        [PARTS, Reply(200, b'{"value":"[1,"}'), Reply(200, b'{"value":"2]"}')],
    ),
    "BotWire's put": (lambda to: state.botwire_put("a", "k", LONG, to, 10.0), [PARTS, *[DONE] * 5]),
    "BotWire's delete": (lambda to: state.botwire_delete("a", "k", to, 10.0), [PARTS, *[DONE] * 3]),
    "state": (lambda to: state.get("a", "k", to, 10.0), [NO_ROUTE, Reply(200, b'{"value":"1"}')]),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_request_gets_what_the_ones_before_it_left(name: str) -> None:
    clock = Clock()
    ask, replies = QUESTIONS[name]
    slowly = [step for reply in replies for step in (1.0, reply)]
    played = Steps(ask(link(clock)), clock, *slowly)
    played.run()
    assert [request.timeout for request in played.requests] == [10.0 - n for n in range(len(replies))]
