"""A primary with a synchronous standby: what was acknowledged survives the primary, and a replica can be read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from kronmem import Client, DeadlineError, StoreError
from kronmem.core.policy import Retry
from kronmem.engine.postgres.schema import examine
from tests.services.postgres import Postgres, new_server, standby_of

pytestmark = pytest.mark.slow


def run(server: Postgres, sql: str) -> Any:
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as connection:
        return connection.execute(sql.encode())


@pytest.fixture
def pair() -> Iterator[tuple[Postgres, Postgres]]:
    """A primary that commits only when its standby can be asked for the same."""
    with ExitStack() as stack:
        primary = new_server()
        stack.callback(primary.remove)
        standby = standby_of(primary)
        stack.callback(standby.remove)
        run(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        run(primary, "ALTER SYSTEM SET synchronous_commit = 'remote_apply'")
        run(primary, "SELECT pg_reload_conf()")
        yield primary, standby


def both(primary: Postgres, standby: Postgres) -> str:
    hosts = f"{primary.folder},{standby.folder}"
    return f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write"


def test_a_call_waits_for_the_standby_that_takes_over_and_nothing_acknowledged_is_lost(
    pair: tuple[Postgres, Postgres],
) -> None:
    primary, standby = pair
    acknowledged: list[str] = []
    enough, stop = threading.Event(), threading.Event()

    def write(number: int) -> None:
        # One attempt a call: what succeeds did so within the deadline of that very call.
        with Client(both(primary, standby), timeout=120.0, retry=Retry(1)) as client:
            for step in range(10_000):
                if stop.is_set() and step > 5:
                    return
                acknowledged.append(client.remember(f"agent-{number}", f"fact {step} of {number}").content)
                if step == 5:
                    enough.set()

    with ThreadPoolExecutor(3) as threads:
        working = [threads.submit(write, number) for number in range(3)]
        assert enough.wait(120)
        primary.kill()
        before = len(acknowledged)
        with Client(both(primary, standby), timeout=120.0, retry=Retry(1)) as client:
            waiting = threads.submit(client.remember, "late", "said while there was no primary")
            run(standby, "SELECT pg_promote()")
            assert waiting.result(120).content == "said while there was no primary"
        stop.set()
        # The call under way when the primary died is the only one that may fail, and it says so.
        failed = [one.exception(120) for one in working]
    assert before
    with Client(standby.url()) as client:
        kept = {memory.content for number in range(3) for memory in client.memories(f"agent-{number}")}
    assert set(acknowledged) <= kept
    assert all(error is None or "lost" in str(error) for error in failed)


def test_a_commit_that_no_standby_confirmed_is_not_acknowledged(pair: tuple[Postgres, Postgres]) -> None:
    primary, standby = pair
    with Client(primary.url(), retry=Retry(1), timeout=3.0) as client:
        client.remember("bot", "tea at five")
        standby.stop()
        with pytest.raises(DeadlineError) as caught:
            client.remember("bot", "coffee at six")
        assert caught.value.sent  # it may be there, or not: its id tells, when it is sent again
    standby.start()
    with Client(primary.url(), timeout=60.0) as client:
        assert "tea at five" in [memory.content for memory in client.memories("bot")]
        client.remember("bot", "soup at seven")


def test_a_replica_is_read_and_written_once_it_is_promoted_by_the_same_client(
    pair: tuple[Postgres, Postgres],
) -> None:
    primary, standby = pair
    with Client(primary.url()) as client:
        client.remember("bot", "tea at five")
    with Client(standby.url(), timeout=60.0) as replica:
        assert [hit.content for hit in replica.recall("bot", "tea")] == ["tea at five"]
        with pytest.raises(StoreError, match="may not be written: it is a replica"):
            replica.remember("bot", "coffee at six")
        assert "a replica" in examine(standby.url()).looks[0].words
        primary.kill()
        run(standby, "SELECT pg_promote()")
        replica.remember("bot", "coffee at six")
        assert {hit.content for hit in replica.recall("bot", "tea or coffee")} == {"tea at five", "coffee at six"}
