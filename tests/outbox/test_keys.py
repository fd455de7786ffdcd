"""A rotated or mistyped key strands nothing in silence, and nothing is ever sent with another key by itself."""

from __future__ import annotations

import logging
from pathlib import Path

import anyio
import httpx
import pytest

from kronmem import AsyncClient, Client
from tests.outbox.services import NOBODY, ONCE, asked, keeping, texts, until
from tests.services import RawServer
from tests.shells import shell


@pytest.mark.parametrize("second", ["kv-new", None])
def test_rows_of_another_key_are_shown_named_once_and_adopted_by_request_only(
    kind: str, tmp_path: Path, second: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with Client(NOBODY, api_key="kv-old", outbox=tmp_path / "o.db", retry=ONCE) as client:
        ids = [client.remember_later("alice", f"old {number}") for number in range(3)]
    with RawServer([keeping]) as server:
        change_url(tmp_path / "o.db", server.url)
        with shell(kind, server.url, api_key=second, outbox=tmp_path / "o.db") as client:
            client.remember_later("alice", "new")
            assert asked(client, "flush", 20.0) == 0
            assert texts(server) == ["new"]
            assert [row.content for row in asked(client, "stranded")] == ["old 0", "old 1", "old 2"]
            health = client.health()
            assert (health.pending, health.stranded) == (0, 3)
            until(lambda: "under another key" in caplog.text)
            assert asked(client, "drop", ids[1])
            assert not asked(client, "drop", ids[1])
            assert asked(client, "adopt") == 2
            assert asked(client, "flush", 20.0) == 0
            assert asked(client, "stranded") == []
        assert texts(server) == ["new", "old 0", "old 2"]
        assert {request.headers.get("x-api-key") for request in server.requests} == {second}
    named = [record for record in caplog.records if "under another key" in record.message]
    assert [record.levelno for record in named] == [logging.WARNING]
    assert "o.db holds 3 memories" in named[0].message


def change_url(path: Path, url: str) -> None:
    """Let the rows wait for a service that has moved."""
    from tests.outbox.services import change

    change(path, f"UPDATE waiting SET service = '{url}', lease = 0, backoff = 0")


def test_a_row_that_is_listed_says_why_it_waits_and_can_be_dropped(kind: str, tmp_path: Path) -> None:
    with shell(kind, NOBODY, outbox=tmp_path / "o.db", retry=ONCE) as client:
        first = client.remember_later("alice", "one", "decision", session_id="s")
        second = client.remember_later("alice", "two")
        until(lambda: asked(client, "list")[0].attempts > 0)
        row, other = asked(client, "list")
        assert (row.id, row.agent_id, row.content, row.memory_type, row.session_id) == (
            first,
            "alice",
            "one",
            "decision",
            "s",
        )
        assert "connect" in row.error.lower()
        assert row.next_attempt_at is not None
        assert (other.error, other.attempts, other.url) == ("", 0, NOBODY)
        assert asked(client, "drop", first)
        assert [row.id for row in asked(client, "list")] == [second]
        assert asked(client, "drop", "no such id") is False


def test_an_embedded_client_has_nothing_to_list(kind: str) -> None:
    with shell(kind, "sqlite://") as client:
        assert [asked(client, name) for name in ("list", "stranded", "adopt")] == [[], [], 0]
        assert asked(client, "drop", "x") is False


def test_rows_for_another_url_stay_in_sight_and_move_by_request_only(kind: str, tmp_path: Path) -> None:
    with Client(NOBODY, api_key="kv-1", outbox=tmp_path / "o.db", retry=ONCE) as client:
        client.remember_later("alice", "said at the old address")
    with RawServer([keeping]) as server:
        with shell(kind, server.url, api_key="kv-1", outbox=tmp_path / "o.db") as client:
            client.remember_later("alice", "said here")
            assert asked(client, "flush", 20.0) == 0
            assert asked(client, "stranded") == []
            assert asked(client, "elsewhere") == {NOBODY: 1}
            assert asked(client, "adopt") == 0
            assert texts(server) == ["said here"]
            assert asked(client, "adopt", NOBODY) == 1
            assert asked(client, "flush", 20.0) == 0
            assert texts(server) == ["said here", "said at the old address"]
            assert asked(client, "elsewhere") == {}


def test_a_url_may_be_adopted_from_as_it_was_given_to_its_client(tmp_path: Path) -> None:
    with Client(f"{NOBODY}/", outbox=tmp_path / "o.db") as old:
        old.remember_later("alice", "text")
    with Client("http://127.0.0.1:1", outbox=tmp_path / "o.db") as client:
        assert client.outbox.adopt(f"{NOBODY}/") == 1


def test_an_outbox_that_a_transport_cannot_empty_in_the_background_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        client = AsyncClient(NOBODY, outbox=tmp_path / "o.db", transport=httpx.AsyncHTTPTransport())
        await client.remember_later("alice", "text")
        until(lambda: "cannot be asked" in caplog.text)
        await client.close()

    anyio.run(main)
    assert "cannot empty in the background" in caplog.text
    assert "refuses" not in caplog.text
