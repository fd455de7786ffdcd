"""An outage is not a refusal: nothing that only waits is set aside, nobody is asked before the time that was named."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client
from kronmem.core.calls import Draft
from kronmem.core.policy import status_error
from kronmem.core.wire import Reply
from kronmem.kronvex import Kronvex
from kronmem.outbox import deliver, policy
from kronmem.outbox.deliver import Delivery
from kronmem.outbox.queue import OutboxFile
from tests.outbox.services import ONCE, Switched, asked, change, failing_on, keeping, texts, until
from tests.services import KronvexServer, RawServer
from tests.services.kronmem import ServedKronmem
from tests.services.raw import close, hang, respond
from tests.shells import shell

HURRY = "UPDATE waiting SET backoff = 0, noted = 0"


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backoffs of milliseconds in place of minutes."""
    monkeypatch.setattr(policy, "LONGEST_BACKOFF", 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("action", [respond(503), respond(429), respond(529), close()])
def test_hours_of_failure_set_nothing_aside_and_keep_the_order(tmp_path: Path, hurried: None, action: Any) -> None:
    service = Switched(action)
    with RawServer([service]) as server:
        for number in range(5):  # short processes, each of which flushes and closes
            with Client(server.url, outbox=tmp_path / "o.db", timeout=2.0) as client:
                client.remember_later("alice", f"text {number}")
                client.outbox.flush(0.1)
                until(lambda least=3 * number: len(texts(server)) > least)  # the thread goes on trying
                assert client.outbox.dead() == []
        assert len(texts(server)) > 10
        del server.requests[:]
        service.action = keeping
        with Client(server.url, outbox=tmp_path / "o.db") as client:
            assert client.outbox.flush(30.0) == 0
            assert client.outbox.dead() == []
        assert texts(server) == [f"text {number}" for number in range(5)]


def test_one_text_that_the_service_fails_on_is_set_aside_and_the_next_go(
    kind: str, tmp_path: Path, hurried: None
) -> None:
    with RawServer([failing_on(b"poison")]) as server, shell(kind, server.url, outbox=tmp_path / "o.db") as client:
        bad = client.remember_later("alice", "poison")
        client.remember_later("alice", "wholesome")
        until(lambda: "wholesome" in texts(server))
        (letter,) = asked(client, "dead")
        assert (letter.id, letter.content) == (bad, "poison")
        assert "answers others" in letter.error
        assert "503" in letter.error
        assert texts(server).count("poison") == 3
        assert asked(client, "retry_dead") == 1
        until(lambda: texts(server).count("poison") > 3)


def test_another_agents_row_tells_as_much_as_a_probe(tmp_path: Path) -> None:
    """A service without health and recall: only what it stores shows that it is well."""

    def answer(server: RawServer, connection: Any, request: Any) -> None:
        well = request.path.endswith("/remember") and b"poison" not in request.content
        (keeping if well else respond(503))(server, connection, request)

    with RawServer([answer]) as server, Client(server.url, outbox=tmp_path / "o.db") as client:
        client.remember_later("alice", "poison")
        until(lambda: client.outbox.list()[0].attempts == 1)
        for number in range(20):  # two will do, unless a slow machine tries it twice between two of the others
            if client.outbox.dead():
                break
            client.remember_later("bob", f"text {number}")
            until(lambda: client.outbox.pending() < 2)
            tried = texts(server).count("poison")
            change(tmp_path / "o.db", HURRY)
            client.remember_later("bob", "wakes the thread")
            until(lambda least=tried: texts(server).count("poison") > least or client.outbox.dead())
            until(lambda: client.outbox.pending() < 2)
        assert [letter.content for letter in client.outbox.dead()] == ["poison"]


@pytest.mark.slow
def test_at_kronvex_a_recall_tells_an_outage_from_a_bad_text(tmp_path: Path, hurried: None) -> None:
    """Its health is well while it cannot embed anything: only a short text that is embedded proves something."""
    down = threading.Event()
    down.set()
    with KronvexServer() as real:

        def answer(server: RawServer, connection: Any, request: Any) -> None:
            unwell = down.is_set() and request.path.endswith(("/remember", "/recall"))
            poison = b"poison" in request.content
            action = (
                respond(503, body={"detail": {"error": "embedding_unavailable"}}) if unwell or poison else relay(real)
            )
            action(server, connection, request)

        with RawServer([answer]) as server, Client(server.url, api_key=real.key, outbox=tmp_path / "o.db") as client:
            client.remember_later("alice", "poison")
            client.remember_later("alice", "wholesome")
            until(lambda: texts(server).count("poison") > 3)
            assert client.outbox.dead() == []
            down.clear()
            until(lambda: "wholesome" in texts(server))
            assert [letter.content for letter in client.outbox.dead()] == ["poison"]


def test_a_service_whose_store_is_away_sets_nothing_aside_though_its_health_is_good(
    tmp_path: Path, hurried: None
) -> None:
    database, elsewhere = tmp_path / "memory.db", tmp_path / "away.db"
    with ServedKronmem(database) as server:
        with Client(server.url) as client:
            client.remember("alice", "the first")
        database.rename(elsewhere)  # an unmounted disk: reads and writes fail
        for number in range(6):  # one after the other: each has a circuit breaker of its own
            with Client(server.url, outbox=tmp_path / "o.db") as client:
                assert client.health().ok
                client.remember_later("alice", f"text {number}")
                until(lambda least=number: client.outbox.list()[0].attempts > least or client.outbox.dead())
                assert client.outbox.dead() == []
        elsewhere.rename(database)
        with Client(server.url, outbox=tmp_path / "o.db") as client:
            assert client.outbox.flush(30.0) == 0
            assert len(list(client.memories("alice"))) == 7


@pytest.mark.parametrize("header", [{}, {"kronmem-unavailable": "store"}, {"kronmem-unavailable": "agent"}])
def test_only_what_it_says_tells_a_store_that_takes_nothing_from_a_bad_text(
    tmp_path: Path, hurried: None, header: dict[str, str]
) -> None:
    """A full disk, a replica, a lost node: it reads, and stores for others, but not this."""
    with (
        RawServer([failing_on(b"poison", respond(503, header))]) as server,
        Client(server.url, outbox=tmp_path / "o.db") as client,
    ):
        client.remember_later("alice", "poison")
        until(lambda: texts(server).count("poison") > 2)
        client.remember_later("bob", "wholesome")
        until(lambda: texts(server).count("poison") > 6 or client.outbox.dead())
        assert [letter.content for letter in client.outbox.dead()] == ([] if header else ["poison"])


@pytest.mark.slow
def test_a_store_that_is_away_is_told_from_a_bad_text_at_a_service_that_does_not_say_so(
    tmp_path: Path, hurried: None
) -> None:
    def answer(server: RawServer, connection: Any, request: Any) -> None:
        (keeping if request.path == "/health" else respond(503))(server, connection, request)

    with RawServer([answer]) as server, Client(server.url, outbox=tmp_path / "o.db") as client:
        client.remember_later("alice", "wholesome")
        until(lambda: len(texts(server)) > 6)
        assert client.outbox.dead() == []


def relay(real: KronvexServer) -> Any:
    """Hand a request on to a real server."""
    import httpx

    def act(server: RawServer, connection: Any, request: Any) -> None:
        kept = {name: request.headers[name] for name in ("content-type", "x-api-key") if name in request.headers}
        # Without a context for TLS, which takes longer to make than all the rest.
        with httpx.Client(trust_env=False, verify=False, timeout=60) as http:
            reply = http.request(request.method, real.url + request.target, headers=kept, content=request.content)
        respond(reply.status_code, body=reply.content)(server, connection, request)

    return act


def test_a_flush_is_one_try_per_agent_past_every_wait_and_counts_towards_nothing(kind: str, tmp_path: Path) -> None:
    service = Switched(respond(503, {"retry-after": "3600"}))
    with RawServer([service]) as server, shell(kind, server.url, outbox=tmp_path / "o.db", retry=ONCE) as client:
        for agent in ("alice", "bob"):
            for number in range(2):
                client.remember(agent, f"{agent} {number}")
        before = len(texts(server))
        for number in range(1, 6):
            assert asked(client, "flush", 0.5) == 4
            assert len(texts(server)) == before + 2 * number
        assert {row.attempts for row in asked(client, "list")} == {0}
        service.action = keeping
        assert asked(client, "flush", 30.0) == 0
        assert texts(server)[-4:] == ["alice 0", "alice 1", "bob 0", "bob 1"]


def test_a_row_under_way_when_a_person_asks_is_tried_once_more(tmp_path: Path) -> None:
    arrived, asked_for = threading.Event(), threading.Event()

    def answer(server: RawServer, connection: Any, request: Any) -> None:
        if asked_for.is_set():
            return keeping(server, connection, request)
        arrived.set()
        assert asked_for.wait(30)
        return respond(503, {"retry-after": "3600"})(server, connection, request)

    with RawServer([answer]) as server, Client(server.url, outbox=tmp_path / "o.db", timeout=60.0) as client:
        client.remember_later("alice", "text")
        assert arrived.wait(30)
        with pytest.MonkeyPatch.context() as patch:
            once = Delivery._ask_all
            patch.setattr(Delivery, "_ask_all", lambda *args: (once(*args), asked_for.set())[0])
            assert client.outbox.flush(60.0) == 0
        assert texts(server) == ["text", "text"]


@pytest.mark.parametrize(("status", "named"), [(429, "3600"), (503, "3600"), (429, "99999999"), (503, "99999999")])
def test_nobody_asks_before_the_named_time_but_a_person(kind: str, tmp_path: Path, status: int, named: str) -> None:
    with RawServer([respond(status, {"retry-after": named})]) as server:
        with shell(kind, server.url, outbox=tmp_path / "o.db", timeout=2.0) as client:
            assert client.remember("alice", "text").queued
        assert len(server.requests) == 1  # not by the outbox that it was handed to, not by closing
        with shell(kind, server.url, outbox=tmp_path / "o.db", timeout=2.0) as client:
            with pytest.raises(Exception, match=str(status)):
                client.recall("alice", "question")
            (row,) = asked(client, "list")
        assert len(texts(server)) == 1  # nor by the next process
        if status == 503:
            assert row.next_attempt_at is not None
            assert (row.next_attempt_at - row.queued_at).total_seconds() <= 86_500
        else:
            with closing(sqlite3.connect(tmp_path / "o.db")) as db:
                assert db.execute("SELECT until - noted FROM pause").fetchone()[0] <= 86_400


def test_a_named_time_beyond_a_day_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with RawServer([respond(429, {"retry-after": "99999999"})]) as server:
        with Client(server.url, outbox=tmp_path / "o.db") as client:
            client.remember("alice", "text")
    assert sum("a day is enough" in record.message for record in caplog.records) == 1


def test_a_limit_of_the_key_holds_for_every_agent(tmp_path: Path) -> None:
    with RawServer([respond(429, {"retry-after": "3600"})]) as server:
        with Client(server.url, outbox=tmp_path / "o.db") as client:
            client.remember("alice", "text")
            client.remember_later("bob", "text")
        assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_until_the_time_that_the_service_named_for_an_agent_its_memories_are_queued_without_asking(
    kind: str, tmp_path: Path, status: int
) -> None:
    service = Switched(respond(status, {"retry-after": "80000"}))
    with RawServer([service]) as server, shell(kind, server.url, outbox=tmp_path / "o.db") as client:
        assert client.remember("alice", "first").queued
        assert client.remember("alice", "second").queued
        assert [one.queued for one in client.remember_many("alice", ["third"])] == [True]
        assert len(server.requests) == 1, "asked before the time that was named"
        service.action = keeping
        del server.requests[:]
        assert client.remember("alice", "fourth").queued
        assert asked(client, "flush", 30.0) == 0
        assert texts(server) == ["first", "second", "third", "fourth"]
        assert not client.remember("alice", "fifth").queued


def test_another_agents_success_ends_a_pause_of_the_key(tmp_path: Path) -> None:
    service = Switched(respond(429, {"retry-after": "80000"}))
    with RawServer([service]) as server, Client(server.url, outbox=tmp_path / "o.db") as client:
        client.remember("alice", "waits")
        service.action = keeping
        assert not client.remember("bob", "stored").queued
        until(lambda: texts(server).count("waits") == 2)
        until(lambda: client.outbox.pending() == 0)


@pytest.mark.slow
def test_a_service_that_hangs_costs_one_deadline_and_not_every_callers(kind: str, tmp_path: Path) -> None:
    with RawServer([hang()]) as server, shell(kind, server.url, outbox=tmp_path / "o.db", timeout=2.0) as client:
        assert all(client.remember("alice", f"text {number}").queued for number in range(20))
        assert [row.content for row in asked(client, "list")] == [f"text {number}" for number in range(20)]


@pytest.mark.parametrize(
    ("date", "seconds"),
    [("Wed, 01 Jan 2025 23:00:00 GMT", 3600.0), ("Wed, 01 Jan 2025 00:00:01 GMT", 86_399.0), ("", 7200.0)],
)
def test_kronvex_counts_anew_at_midnight(date: str, seconds: float) -> None:
    body = b'{"detail": {"error": "daily_quota_exceeded", "message": "used up"}}'
    headers = {"retry-after": "86400", **({"date": date} if date else {})}
    refused = Kronvex().received(Reply(429, body, headers, at=86_400 * 100 - 7200.0))
    assert status_error(refused).retry_after == seconds
    assert status_error(Kronvex().received(Reply(429, b'{"detail": "Rate limit"}', headers))).retry_after == 86_400


def test_a_certificate_or_a_closed_way_pauses_and_buries_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    from kronmem import ConfigError

    def refuse(self: object, *args: object) -> None:
        raise ConfigError("the certificate of the service cannot be trusted")

    monkeypatch.setattr(deliver.Sender, "remember", refuse)
    with RawServer([keeping]) as server, Client(server.url, outbox=tmp_path / "o.db") as client:
        client.remember_later("alice", "text")
        assert client.outbox.flush(0.3) == 1
        assert client.outbox.dead() == []
        monkeypatch.undo()
        assert client.outbox.flush(20.0) == 0


def test_the_longest_of_the_times_that_the_service_named_holds(tmp_path: Path) -> None:
    """A limit of the minute, heard by another thread, does not end that of the day."""
    file = OutboxFile(str(tmp_path / "o.db"))
    lane = file.lane("http://a", "key")
    file.put(lane, [Draft("alice", "1", "one")], policy.Delay(lane=6 * 3600.0))
    file.put(lane, [Draft("bob", "2", "two")], policy.Delay(lane=60.0))
    assert (file.next_due(lane) or 0.0) > 3600.0
    file.go_on(lane)
    assert file.next_due(lane) == 0.0
    file.close()


def test_a_pause_on_disk_that_a_clock_left_in_the_future_does_not_hold(tmp_path: Path) -> None:
    service = Switched(respond(429, {"retry-after": "3600"}))
    with RawServer([service]) as server:
        with Client(server.url, outbox=tmp_path / "o.db") as client:
            client.remember("alice", "text")
        service.action = keeping
        change(tmp_path / "o.db", "UPDATE pause SET noted = noted + 1000000, until = until + 1000000")
        with Client(server.url, outbox=tmp_path / "o.db") as client:
            client.remember_later("bob", "more")
            until(lambda: client.outbox.pending() == 0)
