"""Work in the background beside writers: vectors and index entries of memories that change or go meanwhile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest

from kronmem import Client, DeadlineError
from kronmem.engine import embedding, reindexing
from kronmem.engine.postgres.store import PostgresStore
from kronmem.engine.postings import digest, indexed
from kronmem.engine.reindexing import Filler
from tests.engine.calling import Caller, calling
from tests.outbox.services import until
from tests.postgres.test_store import as_role, role

__all__ = ["role"]  # a fixture
WAIT = 60.0


@pytest.fixture
def store(postgres: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(postgres)) as made:
        yield made


@pytest.fixture
def other(postgres: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(postgres)) as made:
        yield made


def unfill(sql: Any) -> None:
    """As a migration leaves it."""
    sql("UPDATE kronmem.memories SET passages = 0")
    sql("INSERT INTO kronmem.settings VALUES ('unfilled', '1')")


def test_a_vector_that_comes_while_its_agent_is_erased_waits_and_is_not_kept(
    call: Caller, store: PostgresStore, other: PostgresStore, sql: Any
) -> None:
    call.remember("tea at five")
    with store.read(WAIT) as rows:
        [(key, text)] = rows.without_embedding(None, 10)
    with other.write(WAIT) as rows:
        rows.erase("", "bot", call.clock.time)
        with pytest.raises(DeadlineError), store.write(0.2) as late:
            late.set_embeddings([(key, digest(text), b"1234")])
    with store.write(WAIT) as rows:
        rows.set_embeddings([(key, digest(text), b"1234")])
    assert sql("SELECT count(*) FROM kronmem.embeddings").fetchone() == (0,)


def test_an_agent_that_is_being_changed_holds_up_no_other_and_gets_its_vectors_later(
    postgres: str, other: PostgresStore, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 2.0] for _ in texts]

    monkeypatch.setattr(embedding, "_AGAIN", 0.05)
    with Client(postgres) as client:
        client.remember("busy", "the first")
        client.remember("free", "the first")
    with Client(postgres, embed=embed, timeout=WAIT) as client:
        with other.write(WAIT) as rows:
            assert rows.find_space("", "busy") is not None  # which locks it
            client.recall("free", "anything")  # begins to make the vectors that are missing
            until(lambda: vectors(sql) == 1)
            client.remember("free", "the second")
            until(lambda: vectors(sql) == 2)
        until(lambda: vectors(sql) == 3)


def vectors(sql: Any) -> int:
    return int(sql("SELECT count(*) FROM kronmem.embeddings").fetchone()[0])


def test_a_memory_that_is_indexed_anew_keeps_its_vector(call: Caller, store: PostgresStore, sql: Any) -> None:
    call.remember("tea at five")
    with store.write(WAIT) as rows:
        rows.set_embeddings([(key, digest(text), b"1234") for key, text in rows.without_embedding(None, 10)])
    unfill(sql)
    with store.note(WAIT) as rows:
        for space, row in rows.unfilled(10):
            rows.fill(space, row, indexed(row))
    assert sql("SELECT vector FROM kronmem.embeddings").fetchone() == (b"1234",)
    assert call.recall("tea") == ["tea at five"]


def test_an_agent_that_is_cleared_while_it_waits_to_be_indexed_does_not_end_the_work(
    call: Caller, store: PostgresStore, other: PostgresStore, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reindexing, "BATCH", 1)
    for agent in ("one", "two"):
        call.as_(agent=agent).remember("tea at five")
    unfill(sql)
    first = "(SELECT space FROM kronmem.memories WHERE passages = 0 AND successor IS NULL LIMIT 1)"
    [(name,)] = sql(f"SELECT name FROM kronmem.spaces WHERE id = {first}").fetchall()
    with store.read(WAIT):  # is connected
        pass
    with ThreadPoolExecutor(1) as threads:
        with other.write(WAIT) as rows:
            space = rows.find_space("", name)
            assert space is not None
            batch = threads.submit(Filler(store)._batch)
            while not sql("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").fetchall():
                assert not batch.done()
                threading.Event().wait(0.01)
            rows.clear(space, None, None)
        assert batch.result(WAIT)[0], "there is more to do"
    assert Filler(store)._batch()[0]
    assert not Filler(store)._batch()[0]
    assert sql("SELECT count(*) FROM kronmem.memories WHERE passages = 0").fetchone() == (0,)
    assert sql("SELECT count(*) FROM kronmem.settings WHERE name = 'unfilled'").fetchone() == (0,)


def test_a_role_that_may_only_read_says_once_that_others_have_to_index_and_stops_when_they_have(
    database: str, role: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reindexing, "_RETRY", 0.001)
    with calling(database) as call:
        call.remember("tea at five")
    with psycopg.connect(database, autocommit=True) as owner:
        unfill(owner.execute)
        owner.execute(f"GRANT USAGE ON SCHEMA kronmem TO {role}".encode())
        owner.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA kronmem TO {role}".encode())
        with calling(as_role(database, role)) as call, caplog.at_level(logging.WARNING, logger="kronmem.engine"):
            tried = counted(call, monkeypatch)
            assert call.recall("tea") == ["tea at five"]
            for _ in range(3):
                assert tried.acquire(timeout=WAIT)
            thread = call.service._engine._filler._thread
            assert thread is not None
            owner.execute("DELETE FROM kronmem.settings WHERE name = 'unfilled'")
            thread.join(WAIT)
            assert not thread.is_alive()
    assert caplog.text.count("is delayed") == 1


def counted(call: Caller, monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Released at every attempt to fill."""
    filler, tried = call.service._engine._filler, threading.Semaphore(0)
    plain = filler._batch

    def batch() -> tuple[bool, float]:
        tried.release()
        return plain()

    monkeypatch.setattr(filler, "_batch", batch)
    return tried
