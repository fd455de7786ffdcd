"""The table of abilities, asked by the version in the header of a reply, by the vendor's, and by missing routes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kronmem.api import rules
from kronmem.core import abilities, calls
from kronmem.core.abilities import RemoteService
from kronmem.core.exchange import exchange
from kronmem.core.wire import Reply
from kronmem.errors import InvalidRequestError, UnsupportedError
from kronmem.kronvex import Kronvex
from tests.core.test_exchange import Clock, Steps, link

NO_ROUTE = Reply(404, b'{"detail":"Not Found"}')


def answered(*headers: dict[str, str]) -> RemoteService:
    service = RemoteService(Kronvex())
    for one in headers:
        service.learn(Reply(200, b"{}", one))
    return service


@pytest.mark.parametrize(
    ("header", "has"), [("0.2", False), ("0.2.9", False), ("0.3", True), ("0.3.1", True), ("0.10", True), ("?", False)]
)
def test_an_ability_of_a_later_version_is_lacked_by_an_earlier_one(header: str, has: bool) -> None:
    service = answered({rules.VERSION_HEADER: header})
    assert (service.has("options"), service.has("history")) == (has, True)


def test_the_vendors_server_lacks_all_of_them_and_a_service_that_has_not_answered_may_have_them() -> None:
    vendor, unknown = answered({"x-kronvex-version": "0.4.0"}), answered({})
    assert [(vendor.has(name), unknown.has(name)) for name in abilities.ABILITIES] == [(False, True)] * len(
        abilities.ABILITIES
    )


def test_a_service_that_is_upgraded_or_taken_back_has_the_abilities_of_its_last_reply() -> None:
    assert answered({rules.VERSION_HEADER: "0.2"}, {rules.VERSION_HEADER: "0.3"}, {}).has("options")
    assert not answered({rules.VERSION_HEADER: "0.3"}, {rules.VERSION_HEADER: "0.2"}, {}).has("options")


def test_a_missing_route_is_noted_for_a_service_of_unknown_version_only() -> None:
    call, unknown, current = calls.get("a", "m1"), answered({}), answered({rules.VERSION_HEADER: "0.2"})
    with pytest.raises(UnsupportedError, match=r"reading one memory needs a kronmem service of version 0\.2 or newer"):
        unknown.require(call, NO_ROUTE)
    assert (unknown.has("get"), unknown.has("history")) == (False, True)
    current.require(call, NO_ROUTE)  # a proxy's
    assert current.has("get")


NOTED = calls.recall("a", "question", 5, calls.MemoryFilter(), None, most=20, fill="profile")
FOUND, REFUSED = Reply(200, b'{"results":[]}'), Reply(422, b'{"detail":"fill is no boolean"}')
OLD = {rules.VERSION_HEADER: "0.2"}


@pytest.mark.parametrize("headers", [{}, OLD], ids=["unknown", "0.2"])
def test_standing_notes_are_asked_for_until_a_service_has_refused_them(headers: dict[str, str]) -> None:
    clock = Clock()
    older = link(clock)
    first = Steps(
        exchange(NOTED, older, 10.0), clock, replace(REFUSED, headers=headers), replace(FOUND, headers=headers)
    )
    assert first.run() == []
    next_ = Steps(exchange(NOTED, older, 10.0), clock, FOUND)
    assert next_.run() == []
    asked = [b"profile" in (one.body or b"") for one in (*first.requests, *next_.requests)]
    assert asked == [True, False, False]


def test_a_refusal_of_the_older_form_too_is_about_something_else_and_teaches_nothing() -> None:
    clock = Clock()
    unknown = link(clock)
    with pytest.raises(InvalidRequestError, match="no boolean"):
        Steps(exchange(NOTED, unknown, 10.0), clock, REFUSED, REFUSED).run()
    assert unknown.service.has("options")


def test_a_refusal_by_a_service_that_has_the_options_is_final() -> None:
    clock = Clock()
    played = Steps(exchange(NOTED, link(clock, version=(0, 3)), 10.0), clock, REFUSED)
    with pytest.raises(InvalidRequestError):
        played.run()
    assert len(played.requests) == 1
