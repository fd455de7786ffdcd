"""The table of abilities, asked by the version in the header of a reply, by the vendor's, and by missing routes."""

from __future__ import annotations

import pytest

from kronmem.api import rules
from kronmem.core import abilities, calls
from kronmem.core.abilities import Ability, RemoteService
from kronmem.core.wire import Reply
from kronmem.errors import UnsupportedError
from kronmem.kronvex import Kronvex

NO_ROUTE = Reply(404, b'{"detail":"Not Found"}')


def answered(*headers: dict[str, str]) -> RemoteService:
    service = RemoteService(Kronvex())
    for one in headers:
        service.learn(Reply(200, b"{}", one))
    return service


@pytest.mark.parametrize(
    ("header", "has"), [("0.2", False), ("0.2.9", False), ("0.3", True), ("0.3.1", True), ("0.10", True), ("?", False)]
)
def test_an_ability_of_a_later_version_is_lacked_by_an_earlier_one(
    monkeypatch: pytest.MonkeyPatch, header: str, has: bool
) -> None:
    monkeypatch.setitem(abilities.ABILITIES, "exclude", Ability("exclude=", since=(0, 3)))
    service = answered({rules.VERSION_HEADER: header})
    assert (service.has("exclude"), service.has("history")) == (has, True)


def test_the_vendors_server_lacks_all_of_them_and_a_service_that_has_not_answered_may_have_them() -> None:
    vendor, unknown = answered({"x-kronvex-version": "0.4.0"}), answered({})
    assert [(vendor.has(name), unknown.has(name)) for name in abilities.ABILITIES] == [(False, True)] * len(
        abilities.ABILITIES
    )


def test_a_service_that_is_upgraded_or_taken_back_has_the_abilities_of_its_last_reply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(abilities.ABILITIES, "exclude", Ability("exclude=", since=(0, 3)))
    assert answered({rules.VERSION_HEADER: "0.2"}, {rules.VERSION_HEADER: "0.3"}, {}).has("exclude")
    assert not answered({rules.VERSION_HEADER: "0.3"}, {rules.VERSION_HEADER: "0.2"}, {}).has("exclude")


def test_a_missing_route_is_noted_for_a_service_of_unknown_version_only() -> None:
    call, unknown, current = calls.get("a", "m1"), answered({}), answered({rules.VERSION_HEADER: "0.2"})
    with pytest.raises(UnsupportedError, match=r"reading one memory needs a kronmem service of version 0\.2 or newer"):
        unknown.require(call, NO_ROUTE)
    assert (unknown.has("get"), unknown.has("history")) == (False, True)
    current.require(call, NO_ROUTE)  # a proxy's
    assert current.has("get")
