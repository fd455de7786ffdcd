"""Behind PgBouncer in transaction mode: a client gets another server connection with every transaction."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import pytest

from kronmem import Client, DeadlineError, TransportError
from kronmem.core.policy import Retry
from kronmem.engine.engine import Engine
from kronmem.engine.postgres.schema import examine
from kronmem.engine.postgres.store import PostgresStore
from kronmem.engine.service import Service
from tests.engine.calling import Caller, Clock
from tests.services.pgbouncer import PgBouncer, pooler_before, program
from tests.services.postgres import Postgres, new_server

SERVER_CONNECTIONS = 4
# PgBouncer itself keeps these as its client has them.
FOLLOWED = ["application_name", "client_encoding", "DateStyle", "standard_conforming_strings", "TimeZone"]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    program()
    server = new_server()
    yield server
    server.remove()


@pytest.fixture
def pooler(server: Postgres) -> Iterator[PgBouncer]:
    with pooler_before(server.url(), size=SERVER_CONNECTIONS) as pooler:
        with Client(pooler.url) as client:
            for agent in client.agents():
                client.erase(agent.name)
        yield pooler


def connected(stack: ExitStack, url: str) -> Any:
    """A transaction under way that keeps a server connection."""
    import psycopg

    connection = stack.enter_context(psycopg.connect(url))
    connection.execute("SELECT 1")
    return connection


def work(client: Client, number: int, agents: int = 5) -> int:
    """Fifteen times, remember, then recall just that; how many succeeded."""
    done = 0
    for step in range(15):
        text = f"client {number} keeps fact {number * 100 + step}"
        stored = client.remember(f"agent-{number % agents}", text)
        found = client.recall(f"agent-{number % agents}", text, limit=1)
        done += found[0].memory.id == stored.id
    return done


def test_every_call_of_many_clients_succeeds_and_leaves_nothing_behind(pooler: PgBouncer) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(pooler.url, retry=Retry(1), timeout=60.0)) for _ in range(12)]
        with ThreadPoolExecutor(12) as threads:
            assert sum(threads.map(work, clients, range(12))) == 180
    with ExitStack() as stack:
        lines = [connected(stack, pooler.url) for _ in range(SERVER_CONNECTIONS)]
        assert len({line.execute("SELECT pg_backend_pid()").fetchone() for line in lines}) == SERVER_CONNECTIONS
        for line in lines:
            changed = "SELECT name FROM pg_settings WHERE source = 'session' AND name <> ALL(%s)"
            assert line.execute(changed, (FOLLOWED,)).fetchall() == []
            assert line.execute("SELECT name FROM pg_prepared_statements").fetchall() == []
            assert line.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'").fetchall() == []


def test_a_killed_pooler_that_comes_back_is_used_again(pooler: PgBouncer) -> None:
    with Client(pooler.url, retry=Retry(1)) as client:
        client.remember("bot", "tea at five")
        pooler.kill()
        with pytest.raises(TransportError, match="cannot be reached"):
            client.remember("bot", "coffee at six")
        pooler.start()
        assert [hit.content for hit in client.recall("bot", "tea")] == ["tea at five"]
        client.remember("bot", "coffee at six")
        assert {memory.content for memory in client.memories("bot")} == {"tea at five", "coffee at six"}


def test_a_database_killed_behind_the_pooler_is_used_again(pooler: PgBouncer, server: Postgres) -> None:
    with Client(pooler.url, retry=Retry(1), timeout=2.0) as client:
        client.remember("bot", "tea at five")
        server.kill()
        with pytest.raises(TransportError):
            client.remember("bot", "coffee at six")
        server.start()
        pooler.reach_server()
        client.remember("bot", "soup at seven")
        assert {memory.content for memory in client.memories("bot")} == {"tea at five", "soup at seven"}


def test_without_a_free_server_connection_the_deadline_holds_and_nothing_is_stored_later(pooler: PgBouncer) -> None:
    with Client(pooler.url, retry=Retry(1), timeout=5.0) as client:
        client.remember("bot", "tea at five")
        with ExitStack() as stack:
            for _ in range(SERVER_CONNECTIONS):
                connected(stack, pooler.url)
            # They are released only afterwards, and the pooler would wait for two minutes.
            for call in (client.remember, client.recall):
                with pytest.raises(DeadlineError) as caught:
                    call("bot", "coffee at six")
                assert not caught.value.sent
        assert [memory.content for memory in client.memories("bot")] == ["tea at five"]


def test_doctor_names_the_pooler_and_what_follows(pooler: PgBouncer, server: Postgres) -> None:
    def line(url: str) -> str:
        return next(look.words for look in examine(url).looks if look.what == "pooler")

    assert "transaction mode" in line(pooler.url)
    assert "prepared statements are off" in line(pooler.url)
    assert line(server.url()).startswith("none")


# Inside DO, where psycopg does not see it: another client of the same server connection did it.
DEALLOCATE = "DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$"


@pytest.mark.parametrize("trouble", ["PREPARE _pg3_0 AS SELECT 1", DEALLOCATE], ids=["duplicate", "missing"])
def test_a_pooler_that_hides_is_noticed_by_its_first_error_and_the_call_repeated(
    server: Postgres, trouble: str
) -> None:
    store = PostgresStore(server.url(), connections=1)
    with closing(Service(Engine(store))) as service:
        call = Caller(service, Clock(), agent="hidden")
        if trouble == DEALLOCATE:
            _ask_often(call)
            assert _prepared(store) > 0
        with store.read(10.0) as rows:
            rows._session.run(trouble)  # pyright: ignore[reportPrivateUsage]  # nothing public does
        _ask_often(call)
        with store.read(10.0) as rows:
            rows._session.run(DEALLOCATE)  # pyright: ignore[reportPrivateUsage]
        _ask_often(call)
        assert _prepared(store) == 0


def test_statements_are_prepared_on_a_direct_connection(server: Postgres) -> None:
    store = PostgresStore(server.url(), connections=1)
    with closing(Service(Engine(store))) as service:
        _ask_often(Caller(service, Clock(), agent="direct"))
        assert _prepared(store) > 3


def _ask_often(call: Caller) -> None:
    for number in range(8):
        call.remember(f"tea number {number}")
        assert call.recall(f"tea number {number}")


def _prepared(store: PostgresStore) -> int:
    with store.read(10.0) as rows:
        sql = "SELECT count(*) FROM pg_prepared_statements"
        return int(rows._session.ask(sql)[0][0])  # pyright: ignore[reportPrivateUsage]  # of this very connection
