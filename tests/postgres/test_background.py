"""Work in the background beside writers: vectors of memories that change or go meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from kronmem import Client, DeadlineError
from kronmem.engine import embedding
from kronmem.engine.postgres.store import PostgresStore
from kronmem.engine.postings import digest
from tests.engine.calling import Caller
from tests.outbox.services import until
from tests.postgres.test_store import role

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
