"""A 404 of a proxy does not teach a client that a kronmem service lacks a call; an older service does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kronmem.api.rules import VERSION_HEADER
from kronmem.core import calls, flows, state
from kronmem.core.exchange import Link
from kronmem.core.wire import Reply
from kronmem.errors import NotFoundError
from tests.core.test_exchange import Clock, Steps, link

OF_A_PROXY = Reply(404, b"<html>default backend - 404</html>")
BEFORE = datetime(2100, 1, 1, tzinfo=UTC)
QUESTIONS: dict[str, Callable[[Link], Any]] = {
    "get": lambda to: flows.get("a", "m1", to, 10.0),
    "history": lambda to: flows.history("a", "m1", to, 10.0),
    "clear a session": lambda to: flows.clear("a", "s", None, to, 10.0),
    "clear old ones": lambda to: flows.clear("a", None, BEFORE, to, 10.0),
    "erase": lambda to: flows.erase("a", to, 10.0),
    "remember_many": lambda to: flows.remember_many([calls.Draft("a", "id", "text")], to, 10.0, []),
    "state.get": lambda to: state.get("a", "k", to, 10.0),
    "state.update": lambda to: state.update("a", "k", lambda value: 1, None, to, 10.0),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_404_in_front_of_a_kronmem_service_is_an_error_and_teaches_nothing(name: str) -> None:
    clock = Clock()
    known = link(clock, version=(0, 2))
    played = Steps(QUESTIONS[name](known), clock, OF_A_PROXY)
    with pytest.raises(NotFoundError):
        played.run()
    assert len(played.requests) == 1
    assert known.service.missing == set()


def test_calls_that_a_service_lacked_are_tried_again_once_a_kronmem_answers() -> None:
    clock = Clock()
    upgraded = link(clock, missing=["history"])
    row = b'{"id":"m1","content":"new"}'
    assert (
        len(Steps(flows.history("a", "m1", upgraded, 10.0), clock, Reply(200, row, {VERSION_HEADER: "2"})).run()) == 1
    )
    two = Reply(200, b'{"memories":[%s,{"id":"m0","content":"old"}]}' % row, {VERSION_HEADER: "2"})
    assert len(Steps(flows.history("a", "m1", upgraded, 10.0), clock, two).run()) == 2
