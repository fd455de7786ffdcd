"""Listings and histories: whole however large, at an end whatever the service sends, and of the agent asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from kronmem import ReplyError
from tests.conftest import unused
from tests.services import RawServer
from tests.services.kronmem import ServedKronmem
from tests.services.raw import Action, respond
from tests.shells import shell

LARGE = {"note": "记" * 60_000}
"""In UTF-8 180,000 bytes: fifty of them are larger than a client reads."""


@pytest.fixture(params=["embedded", "served"])
def client(request: pytest.FixtureRequest, kind: str) -> Iterator[Any]:
    """A client with an agent of its own."""
    served: ServedKronmem | None = request.getfixturevalue("served") if request.param == "served" else None
    key = next(unused) if served else None
    with shell(kind, served.url if served else "sqlite://", api_key=key, outbox=False, timeout=60.0) as found:
        yield found


def test_many_large_memories_are_stored_listed_and_restored(client: Any) -> None:
    texts = [f"note {number}" for number in range(50)]
    assert len(client.remember_many("ada", texts, metadata=LARGE)) == 50
    listed = client.memories("ada")
    assert [one.content for one in listed] == texts[::-1]
    assert client.restore("bob", listed) == 50
    assert client.memories("bob", history=True) == [one.model_copy(update={"agent_id": "bob"}) for one in listed]


def test_a_history_of_many_large_versions_is_read(client: Any) -> None:
    for number in range(50):
        kept = client.remember("ada", f"note {number}", key="note", metadata=LARGE)
    found = client.history("ada", kept.id)
    assert [one.content for one in found] == [f"note {number}" for number in range(50)][::-1]


def memory(number: int, **fields: object) -> dict[str, object]:
    return {"id": f"{number:08}-0000-0000-0000-000000000000", "content": f"note {number}", **fields}


def numbered(page: int) -> list[dict[str, object]]:
    return [memory(100 * page + number) for number in range(100)]


ENDLESS: dict[str, Callable[[int], dict[str, object]]] = {
    "the same page and mark": lambda _: {"memories": numbered(0), "next": "~1~0"},
    "the same page, other marks": lambda at: {"memories": numbered(0), "next": f"~{at}~0"},
    "two pages in turn": lambda at: {"memories": numbered(at % 2), "next": f"~{at % 2}~0"},
    "empty pages": lambda at: {"memories": [], "next": f"~{at}~0"},
    "the same page, by number": lambda _: {"memories": numbered(0), "total": 1000},
}


@contextmanager
def scripted(answer: Callable[[int], object], kind: str) -> Iterator[Any]:
    """A client of a service that answers so, by the number of the request."""
    numbers = count()
    asked: list[int] = []

    def act(_connection: int, _request: int) -> Action:
        asked.append(next(numbers))
        assert len(asked) < 50, "there is no end"
        return respond(200, {"x-kronmem-version": "0.2"}, answer(asked[-1]))

    with RawServer(act) as server, shell(kind, server.url, outbox=False) as client:
        yield client


@pytest.mark.parametrize("name", ENDLESS)
def test_a_listing_that_repeats_itself_ends_in_an_error(kind: str, name: str) -> None:
    with scripted(ENDLESS[name], kind) as client, pytest.raises(ReplyError, match="repeats"):
        client.memories("ada")


def test_a_history_that_repeats_itself_ends_in_an_error(kind: str) -> None:
    with scripted(ENDLESS["the same page and mark"], kind) as client, pytest.raises(ReplyError, match="repeats"):
        client.history("ada", memory(1)["id"])
