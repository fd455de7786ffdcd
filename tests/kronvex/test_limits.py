"""What a plan allows, said once and not spent on retries; and what the server merges, said by forget."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client, NotFoundError, QuotaError, RateLimitError, Retry
from tests.kronvex.stores import counted
from tests.services import KronvexServer
from tests.services.habits import EVERY
from tests.shells import shell

EVENING = datetime(2026, 6, 1, 18, tzinfo=UTC)
WAIT = 30.0


@pytest.fixture
def spent(kind: str) -> Iterator[tuple[KronvexServer, Any]]:
    """A client whose day is used up at six in the evening."""
    with KronvexServer(daily_limits={"remember": 1, "recall": 0}, clock=lambda: EVENING) as server:
        with shell(kind, server.url, api_key=server.key, outbox=False, retry=Retry(first=0.0)) as client:
            client.remember("alice", "alpha bravo")
            yield server, client


def test_a_used_up_day_ends_at_midnight_and_is_asked_once(spent: tuple[KronvexServer, Any]) -> None:
    server, client = spent
    with counted(server) as sent, pytest.raises(RateLimitError, match="Daily remember limit") as caught:
        client.remember("alice", "charlie delta")
    assert (caught.value.retry_after, sent) == (6 * 3600.0, ["POST remember"])
    with counted(server) as sent, pytest.raises(RateLimitError, match="Daily recall limit"):
        client.recall("alice", "alpha bravo")
    assert sent == ["POST recall"]


def test_a_used_up_month_is_a_quota_error_after_one_request(kind: str) -> None:
    with KronvexServer(memory_limit=1) as server, shell(kind, server.url, api_key=server.key) as client:
        client.remember("alice", "alpha bravo")
        with counted(server) as sent, pytest.raises(QuotaError, match="Monthly memory limit of 1"):
            client.remember("alice", "charlie delta")
        assert sent == ["POST remember"]


def test_an_outage_of_the_embedding_sets_nothing_aside(tmp_path: Path) -> None:
    with KronvexServer() as server:
        with Client(server.url, api_key=server.key, outbox=tmp_path / "o.db") as client:
            client.remember("alice", "alpha bravo")
            server.embedding_down = True
            client.remember_later("alice", "charlie delta")
            assert client.outbox.flush(0.5) == 1
            assert client.outbox.dead() == []
            server.embedding_down = False
            assert client.outbox.flush(WAIT) == 0
            assert [hit.content for hit in client.recall("alice", "charlie delta")] == ["charlie delta"]


@pytest.mark.slow
def test_forget_says_that_the_server_may_have_merged_it(kind: str) -> None:
    with KronvexServer(habits=EVERY) as server, shell(kind, server.url, api_key=server.key) as client:
        tea = "Tea order is green jasmine {} morning for the whole big team"
        first = client.remember("alice", tea.format("every"))
        client.remember("alice", tea.format("each"))
        pinned = client.remember("alice", "the green jasmine tea of Anna", session_id="s")
        for number in range(47):
            client.remember("alice", f"{number}{number} thing{number}")
        assert any(one.content.startswith("MERGED") for one in client.memories("alice"))
        with pytest.raises(NotFoundError, match="may have merged it"):
            client.forget("alice", first.id)
        client.forget("alice", pinned.id)
        assert client.clear("alice") > 40


@pytest.mark.parametrize("habit", sorted(EVERY))
def test_the_first_minutes_of_a_user_work_with_any_one_habit(kind: str, habit: str) -> None:
    with KronvexServer(habits=[habit]) as server, shell(kind, server.url, api_key=server.key) as client:
        walk_through(client)


def test_the_first_minutes_of_a_user_work_with_every_habit_on_a_demo_key(kind: str) -> None:
    with KronvexServer(plan="demo", habits=EVERY) as server:
        with shell(kind, server.url, api_key=server.key) as client:
            walk_through(client)


def walk_through(client: Any) -> None:
    """The calls of a first session: every one answers as with any other service."""
    for session, drink in (("one", "coffee"), ("two", "milk")):
        client.remember("alice", f"Prefers tea over {drink}", "preference", session_id=session, tags=["drinks"])
    decided = client.remember("alice", "The release train leaves on Thursdays", "decision")
    assert [one.session_id for one in client.memories("alice", tags=["drinks"])] == ["two", "one"]
    assert [hit.content for hit in client.recall("alice", "release train", memory_type="decision")] == [decided.content]
    assert "Thursdays" in client.inject_context("alice", "release train leaves on Thursdays")
    assert client.clear("alice", session_id="one") == 1
    client.forget("alice", decided.id)
    assert [one.session_id for one in client.memories("alice")] == ["two"]
