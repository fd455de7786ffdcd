"""State at a BotWire service that others write to at the same time."""

from __future__ import annotations

import pytest

from kronmem.core import state
from kronmem.core.wire import Reply
from kronmem.errors import ReplyError
from tests.core.test_exchange import Clock, Steps, link

GONE = Reply(404, b'{"detail":"Key not found: k"}')
OLD, NEW = Reply(200, b'{"value":"kronmem-parts:00000000:2"}'), Reply(200, b'{"value":"kronmem-parts:11111111:2"}')
HALVES = (Reply(200, b'{"value":"[1,"}'), Reply(200, b'{"value":"2]"}'))


@pytest.mark.parametrize(
    ("answers", "value"),
    [
        ((OLD, GONE, Reply(200, b'{"value":"3"}')), 3),
        ((OLD, HALVES[0], GONE, NEW, *HALVES), [1, 2]),
        ((OLD, GONE, NEW, GONE, OLD, *HALVES), [1, 2]),
    ],
)
def test_a_long_value_replaced_while_it_is_read_is_read_again(answers: tuple[Reply, ...], value: object) -> None:
    clock = Clock()
    assert Steps(state.botwire_get("a", "k", link(clock), 10.0), clock, *answers).run() == value


def test_a_long_value_that_lost_a_part_is_an_error_and_not_absent() -> None:
    clock = Clock()
    with pytest.raises(ReplyError, match="parts"):
        Steps(state.botwire_get("a", "k", link(clock), 10.0), clock, OLD, GONE, OLD).run()


@pytest.mark.parametrize("name", ["k64-x", "k64-\u00fc", "k64-_w"])
def test_a_key_that_somebody_else_wrote_in_our_spelling_is_listed_as_it_is(name: str) -> None:
    clock = Clock()
    listed = Reply(200, f'{{"keys":[{{"key":"{name}"}},{{"key":"k64-YSBi"}}]}}'.encode())
    assert Steps(state.botwire_keys("a", link(clock), 10.0), clock, listed).run() == sorted([name, "a b"])
