"""What is refused before anything is sent: every bad id on every method, and everything that makes a service fail."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client, InvalidInputError, InvalidRequestError, KronmemError, Memory
from kronmem.core import inputs
from tests.outbox.services import NOBODY, asked
from tests.services import RawServer
from tests.services.raw import respond
from tests.shells import shell

BAD_IDS = [
    "..",
    ".",
    "../../x",
    "a/b",
    "a\\b",
    "a?x",
    "a#f",
    "",
    " ",
    " a",
    "%2e%2e",
    "a\x00b",
    "a\nb",
    "a\u2028b",
    "\ud800",
    "x" * 10_240,
    5,
    None,
    b"bytes",
]

UUID = "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"
BY_AGENT: dict[str, Callable[[Any, Any], Any]] = {
    "remember": lambda c, bad: c.remember(bad, "text"),
    "remember_many": lambda c, bad: c.remember_many(bad, ["text"]),
    "recall": lambda c, bad: c.recall(bad, "question"),
    "recall_many": lambda c, bad: c.recall_many(bad, ["question"]),
    "recall_across": lambda c, bad: c.recall_across(["good", bad], "question"),
    "inject_context": lambda c, bad: c.inject_context(bad),
    "memories": lambda c, bad: c.memories(bad),
    "forget": lambda c, bad: c.forget(bad, "id"),
    "forget by id": lambda c, bad: c.forget("good", bad),
    "clear": lambda c, bad: c.clear(bad),
    "remember_later": lambda c, bad: c.remember_later(bad, "text"),
    "get": lambda c, bad: c.get(bad, UUID),
    "get by id": lambda c, bad: c.get("good", bad),
    "update": lambda c, bad: c.update(bad, UUID, pinned=True),
    "update by id": lambda c, bad: c.update("good", bad, pinned=True),
    "history": lambda c, bad: c.history(bad, UUID),
    "history by id": lambda c, bad: c.history("good", bad),
    "erase": lambda c, bad: c.erase(bad),
    "restore": lambda c, bad: c.restore(bad, [Memory(id=UUID, agent_id="good", content="text")]),
    "state": lambda c, bad: c.state(bad).keys(),
    "state get": lambda c, bad: c.state("good").get(bad),
    "state set": lambda c, bad: c.state("good").set(bad, 1),
    "state delete": lambda c, bad: c.state("good").delete(bad),
    "outbox drop": lambda c, bad: asked(c, "drop", bad),
    "sessions": lambda c, bad: c.sessions(bad),
    "agent": lambda c, bad: c.agent(bad),
}
BY_SESSION: dict[str, Callable[[Any, Any], Any]] = {
    "remember": lambda c, bad: c.remember("a", "text", session_id=bad),
    "recall": lambda c, bad: c.recall("a", "question", session_id=bad),
    "inject_context": lambda c, bad: c.inject_context("a", session_id=bad),
    "memories": lambda c, bad: c.memories("a", session_id=bad),
    "clear": lambda c, bad: c.clear("a", session_id=bad),
    "remember_later": lambda c, bad: c.remember_later("a", "text", session_id=bad),
    "agent": lambda c, bad: c.agent("a", session_id=bad),
}
BAD_ARGUMENTS = {
    "empty text": lambda c: c.remember("a", ""),
    "blank text": lambda c: c.remember("a", " \n "),
    "NUL": lambda c: c.remember("a", "a\x00b"),
    "lone surrogate": lambda c: c.remember("a", "bad \ud800"),
    "huge text": lambda c: c.remember("a", "x" * 1_000_000),
    "no text": lambda c: c.remember("a", None),
    "one bad of many": lambda c: c.remember_many("a", ["good", "\x00"]),
    "a string for a list": lambda c: c.remember_many("a", "good"),
    "a string for queries": lambda c: c.recall_many("a", "good"),
    "a string for agents": lambda c: c.recall_across("good", "question"),
    "empty type": lambda c: c.remember("a", "text", ""),
    "long type": lambda c: c.remember("a", "text", "t" * 51),
    "ttl 0": lambda c: c.remember("a", "text", ttl_days=0),
    "ttl below": lambda c: c.remember("a", "text", ttl_days=-1),
    "ttl beyond": lambda c: c.remember("a", "text", ttl_days=3651),
    "ttl half": lambda c: c.remember("a", "text", ttl_days=1.5),
    "ttl true": lambda c: c.remember("a", "text", ttl_days=True),
    "ttl text": lambda c: c.remember("a", "text", ttl_days="7"),
    "seconds below": lambda c: c.remember("a", "text", ttl_seconds=59),
    "seconds absurd": lambda c: c.remember("a", "text", ttl_seconds=10**16),
    "tags as text": lambda c: c.remember("a", "text", tags="red"),
    "tag not text": lambda c: c.remember("a", "text", tags=[1]),
    "101 tags": lambda c: c.remember("a", "text", tags=[str(n) for n in range(101)]),
    "tags not a list": lambda c: c.remember("a", "text", tags=5),
    "metadata list": lambda c: c.remember("a", "text", metadata=[1]),
    "metadata NaN": lambda c: c.remember("a", "text", metadata={"x": float("nan")}),
    "metadata object": lambda c: c.remember("a", "text", metadata={"x": object()}),
    "metadata key": lambda c: c.remember("a", "text", metadata={1: "x"}),
    "metadata NUL": lambda c: c.remember("a", "text", metadata={"x": ["\x00"]}),
    "metadata reserved": lambda c: c.remember("a", "text", metadata={"kronmem": {}}),
    "metadata huge": lambda c: c.remember("a", "text", metadata={"x": "y" * 100_000}),
    "metadata deep": lambda c: c.remember("a", "text", metadata={"x": deep(200)}),
    "empty question": lambda c: c.recall("a", ""),
    "blank question": lambda c: c.recall("a", "  "),
    "limit 0": lambda c: c.recall("a", "question", 0),
    "limit 21": lambda c: c.recall("a", "question", 21),
    "limit text": lambda c: c.recall("a", "question", "5"),
    "context limit 21": lambda c: c.inject_context("a", "question", 21),
    "context chars 0": lambda c: c.inject_context("a", "question", max_chars=0),
    "threshold above": lambda c: c.recall("a", "question", threshold=1.5),
    "threshold below": lambda c: c.recall("a", "question", threshold=-0.1),
    "threshold NaN": lambda c: c.recall("a", "question", threshold=float("nan")),
    "question None": lambda c: c.recall("a", None),
    "questions None": lambda c: c.recall_many("a", None),
    "agents None": lambda c: c.recall_across(None, "question"),
    "contents None": lambda c: c.remember_many("a", None),
    "context question None": lambda c: c.inject_context("a", None),
    "tags of many as text": lambda c: c.recall_many("a", ["question"], tags="work"),
    "tags across as text": lambda c: c.recall_across(["a"], "question", tags="work"),
    "tags of many None": lambda c: c.recall_many("a", ["question"], tags=None),
    "tags across None": lambda c: c.recall_across(["a"], "question", tags=None),
    "description surrogate": lambda c: c.describe("a", description="\ud800"),
    "description number": lambda c: c.describe("a", description=5),
    "description long": lambda c: c.describe("a", description="x" * 10_001),
    "description metadata object": lambda c: c.describe("a", metadata={"x": object()}),
    "description metadata list": lambda c: c.describe("a", metadata=[1]),
    "concurrency 0": lambda c: c.recall_many("a", ["question"], concurrency=0),
}


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.fixture
def untouched() -> Any:
    """A service that must not hear anything."""
    with RawServer([respond(200, body={})]) as server:
        yield server
        assert server.requests == []


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An outbox in which a memory waits for another service."""
    path = tmp_path_factory.mktemp("outbox") / "o.db"
    with Client(NOBODY, outbox=path, timeout=1.0) as client:
        client.remember_later("a", "text")
    return path


@pytest.mark.parametrize("bad", BAD_IDS, ids=lambda bad: ascii(bad)[:12])
def test_a_bad_id_is_refused_on_every_method_before_any_request(
    untouched: RawServer, kind: str, bad: Any, used: Path
) -> None:
    with shell(kind, untouched.url, outbox=used) as client:
        for name, ask in BY_AGENT.items():
            with pytest.raises(InvalidInputError):
                ask(client, bad)
                pytest.fail(f"{name} took {bad!r}")
        for name, ask in BY_SESSION.items():
            if bad is not None:
                with pytest.raises(InvalidInputError):
                    ask(client, bad)
                    pytest.fail(f"{name} took the session {bad!r}")


def test_a_bad_argument_is_refused_before_any_request(untouched: RawServer, kind: str) -> None:
    with shell(kind, untouched.url) as client:
        for name, ask in BAD_ARGUMENTS.items():
            with pytest.raises(InvalidInputError) as caught:
                ask(client)
                pytest.fail(f"{name} was taken")
            assert isinstance(caught.value, KronmemError)
            assert len(str(caught.value)) < 200


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the zone of a process cannot be set here")
@pytest.mark.parametrize(
    ("local", "expected"),
    [
        ("2025-03-30T01:59:59", "2025-03-30T00:59:59+00:00"),
        ("2025-03-30T02:30:00", "2025-03-30T01:00:00+00:00"),  # left out: the moment at which clocks are put forward
        ("2025-03-30T03:00:00", "2025-03-30T01:00:00+00:00"),
        ("2025-10-26T02:30:00", "2025-10-26T00:30:00+00:00"),  # there twice: the first one
        ("2025-10-26T03:00:00", "2025-10-26T02:00:00+00:00"),
    ],
)
def test_a_time_without_a_zone_is_local_also_where_clocks_change(
    monkeypatch: pytest.MonkeyPatch, local: str, expected: str
) -> None:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    try:
        found = inputs.moment(local, "since")
        again = inputs.moment(datetime.fromisoformat(local).replace(fold=1), "since")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert found is not None
    assert found.isoformat() == expected
    assert again == (found if "10-26T02" not in local else found + timedelta(hours=1))


@pytest.mark.parametrize("field", ["created_at", "said_at", "expires_at"])
def test_a_restored_time_without_a_date_in_utc_is_refused(field: str) -> None:
    with Client("sqlite://") as client:
        kept = client.remember("bot", "tea")
        early = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
        with pytest.raises((InvalidInputError, InvalidRequestError), match=rf"{field}.*(range|years)"):
            client.restore("other", [kept.model_copy(update={field: early})])
        assert [agent.name for agent in client.agents()] == ["bot"]
