"""Listings and histories: whole however large, at an end whatever the service sends, and of the agent asked for."""

from __future__ import annotations

import logging
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


def mixed(agent: str) -> list[dict[str, object]]:
    """A memory of the agent and one of another."""
    return [memory(1, agent_id=agent, similarity=0.9), memory(2, agent_id="another", similarity=0.9)]


READS: dict[str, tuple[Callable[[Any], dict[str, object]], Callable[[Any, str], Any]]] = {
    "recall": (
        lambda rows: {"results": [{"memory": one, "similarity": 0.9} for one in rows]},
        lambda client, agent: client.recall(agent, "note"),
    ),
    "flat recall": (lambda rows: {"memories": rows}, lambda client, agent: client.recall(agent, "note")),
    "inject_context": (
        lambda rows: {"memories": rows, "context": "-"},
        lambda client, agent: client.inject_context(agent, "note"),
    ),
    "memories": (lambda rows: {"memories": rows, "next": None}, lambda client, agent: client.memories(agent)),
    "by number": (lambda rows: {"memories": rows, "total": 2}, lambda client, agent: client.memories(agent)),
    "history": (
        lambda rows: {"memories": rows, "next": None},
        lambda client, agent: client.history(agent, memory(1)["id"]),
    ),
}


@pytest.mark.parametrize("name", READS)
def test_memories_of_another_agent_are_left_out_and_logged_once(
    kind: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent = f"asked by {kind} for {name}"
    body, read = READS[name]
    with scripted(lambda _: body(mixed(agent)), kind) as client, caplog.at_level(logging.WARNING, logger="kronmem"):
        for _ in range(2):
            found = str(read(client, agent))
            assert ("note 1" in found, "note 2" in found) == (True, False)
    assert len([one for one in caplog.records if "another agent" in one.message]) == 1


WRITES: dict[str, Callable[[Any], object]] = {
    "remember": lambda c: c.remember("mixed", "tea"),
    "remember_many": lambda c: c.remember_many("mixed", ["tea"]),
    "get": lambda c: c.get("mixed", memory(2)["id"]),
    "update": lambda c: c.update("mixed", memory(2)["id"], content="x"),
}


@pytest.mark.parametrize("name", WRITES)
def test_an_answer_about_another_agents_memory_is_an_error(kind: str, name: str) -> None:
    other = mixed("mixed")[1:]
    body = {"memories": other} if name == "remember_many" else other[0]
    with scripted(lambda _: body, kind) as client, pytest.raises(ReplyError, match="another agent"):
        WRITES[name](client)


TWICE = [memory(number, content="tea", metadata={"kronmem": {"id": "own"}}, similarity=0.9) for number in (1, 2)]


@pytest.mark.parametrize("name", ["recall", "flat recall", "inject_context", "by number"])
@pytest.mark.parametrize("total", [None, 2])
def test_a_row_that_a_service_without_ids_of_ours_stored_twice_is_shown_once(
    kind: str, name: str, total: int | None
) -> None:
    body, read = READS[name]
    with scripted(lambda _: {**body(TWICE), "total": total}, kind) as client:
        found = read(client, "ada")
        assert (found.count("tea") if isinstance(found, str) else len(found)) == 1
