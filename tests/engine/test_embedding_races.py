"""A vector is of the text that its memory has now, and of the model that the database has now."""

from __future__ import annotations

import logging
import sqlite3
import struct
import threading
import uuid
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kronmem.engine.embedding import MADE_BY, unit
from kronmem.engine.engine import Engine
from kronmem.engine.postings import digest
from kronmem.engine.service import Service
from kronmem.engine.sqlite.reading import SqliteReader
from kronmem.engine.sqlite.store import SqliteStore
from kronmem.errors import DeadlineError, TransportError
from tests.engine.calling import Caller, Clock, calling
from tests.engine.test_embedding import Meanings, Named, opened, wait_for


def stored(path: str) -> list[bytes]:
    """The vectors of the agent's memories, by number."""
    with closing(opened(path)) as store, store.read(10.0) as rows:
        space = rows.find_space("", "bot")
        assert space is not None
        return [vector for _, vector in sorted(rows.embeddings(space, range(space.last + 1)).items())]


def packed(embed: Meanings, text: str) -> bytes:
    return struct.pack("<3f", *unit(embed([text])[0]))


class Slow(Meanings):
    """Thinks about one text until it is told to go on."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.thinks, self.go_on = text, threading.Event(), threading.Event()

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        if self.text in texts:
            self.thinks.set()
            assert self.go_on.wait(60)
        return super().__call__(texts)


def test_a_text_that_changes_while_the_model_has_it_gets_the_vector_of_the_new_one(path: str) -> None:
    embed = Slow("a kitten sleeps")
    with calling(path, embed=embed) as call:
        memory = call.remember("a kitten sleeps")
        assert embed.thinks.wait(60)
        assert call("PATCH", f"memories/{memory['id']}", {"content": "a loan of money"})[0] == 200
        embed.go_on.set()
        wait_for(embed, 2)
    assert stored(path) == [packed(Meanings(), "a loan of money")]


class LosingStore(SqliteStore):
    """Loses its connection once, when the worker first looks for memories without a vector; keeps the times asked."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.losing, self.lost = False, threading.Event()
        self.timeouts: dict[threading.Thread, list[float]] = {}

    @contextmanager
    def read(self, timeout: float) -> Generator[SqliteReader]:
        self.timeouts.setdefault(threading.current_thread(), []).append(timeout)
        if self.losing and not self.lost.is_set():
            self.lost.set()
            raise TransportError("the connection broke")
        with super().read(60.0) as rows:  # however slow the machine is
            yield rows


def test_memories_that_an_outage_kept_from_the_model_get_their_vectors_when_it_is_over(tmp_path: Path) -> None:
    path, before = str(tmp_path / "memory.db"), Meanings()
    with calling(path, embed=before) as call:
        call.remember("a ship")
        wait_for(before, 1)
    with calling(path) as call:
        call.remember("a kitten sleeps")
    embed, store = Meanings(), LosingStore(path)
    store.losing = True
    with closing(Service(Engine(store, embed=embed, now=Clock()))) as service:
        call = Caller(service, Clock())
        call.remember("a loan of money")
        assert store.lost.wait(60)
        call.remember("a boat")
        while len(set(embed.seen)) < 3:
            assert embed.done.acquire(timeout=60)
    assert len(stored(path)) == 4


def test_a_model_that_hangs_takes_its_time_from_that_of_the_store(tmp_path: Path) -> None:
    end = threading.Event()

    def hang(texts: Sequence[str]) -> list[list[float]]:
        end.wait(60)
        return [[1.0] for _ in texts]

    class Noting(LosingStore):
        def note(self, timeout: float = 0.0, *, most: float = 60.0) -> Any:
            self.timeouts.setdefault(threading.current_thread(), []).append(most)
            return super().note(timeout)

    store = Noting(str(tmp_path / "memory.db"))
    with closing(Service(Engine(store, embed=hang, now=Clock()))) as service:
        call = Caller(service, Clock())
        call.remember("Ada sleeps")
        for path in ("recall", "inject-context"):
            assert call("POST", path, {"query": "Who sleeps?"}, timeout=0.2)[0] == 200
        end.set()
    assert max(store.timeouts[threading.current_thread()]) <= 0.1


def test_memories_that_an_export_brings_back_get_their_vectors(path: str) -> None:
    embed = Meanings()
    with calling(path, embed=embed) as call:
        call.remember("a kitten sleeps")
        wait_for(embed, 1)
        exported = {"id": str(uuid.uuid4()), "content": "a loan of money", "created_at": "2026-01-01T00:00:00Z"}
        assert call("POST", "memories/restore", {"memories": [exported]})[1] == {"restored": 1, "present": 0}
        wait_for(embed, 2)
    assert stored(path) == [packed(Meanings(), "a kitten sleeps"), packed(Meanings(), "a loan of money")]


def test_a_memory_whose_tags_or_type_change_keeps_its_vector(path: str) -> None:
    embed = Meanings()
    with calling(path, embed=embed) as call:
        memory = call.remember("a kitten sleeps")
        wait_for(embed, 1)
    vector = [packed(Meanings(), "a kitten sleeps")]
    with calling(path) as call:
        assert call("PATCH", f"memories/{memory['id']}", {"tags": ["pet"], "memory_type": "preference"})[0] == 200
        assert stored(path) == vector
        assert call.remember("a kitten sleeps", tags=["home"])["deduplicated"]
        assert stored(path) == vector
        assert call("PATCH", f"memories/{memory['id']}", {"content": "a loan of money"})[0] == 200
        assert stored(path) == []


def test_a_vector_of_another_text_is_not_stored(path: str) -> None:
    with calling(path) as call:
        call.remember("a kitten sleeps")
    with closing(opened(path)) as store, store.write(10.0) as rows:
        [(key, text)] = rows.without_embedding(None, 10)
        rows.set_embeddings([(key, digest("another"), b"1234")])
        assert rows.without_embedding(None, 10) == [(key, text)]
        rows.set_embeddings([(key, digest(text), b"1234")])
        assert rows.without_embedding(None, 10) == []


def test_a_process_whose_model_was_replaced_adds_no_vectors_and_compares_none(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Named("one"), Named("another")
    with calling(path, embed=first) as one, calling(path, embed=second) as other:
        one.remember("a kitten sleeps")
        while not stored(path):
            threading.Event().wait(0.01)
        other.recall("feline", threshold=0)
        wait_for(second, 2)
        one.remember("a loan of money")
        wait_for(first, 2)
    # Both are closed: whatever was to be written has been. The second may have come upon the loan too, still catching up.
    kitten, *loan = stored(path)
    assert kitten == packed(Named("another"), "a kitten sleeps")
    assert loan in ([], [packed(Named("another"), "a loan of money")])
    assert caplog.text.count("this process adds none") == 1


def test_a_question_is_not_compared_with_vectors_of_a_model_that_came_meanwhile(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Named("one"), Named("another")
    with calling(path) as call:
        call.remember("котёнок спит")
        call.remember("пароход плывёт")
    with calling(path, embed=first) as one, calling(path, embed=second) as other:
        one.recall("кошка")
        wait_for(first, 3)
        other.recall("кошка")
        wait_for(second, 3)
        with caplog.at_level(logging.WARNING, logger="kronmem.engine"):
            assert one.recall("кошка") == [], "found by the vectors of another model"
        seen = len(first.seen)
        assert one.recall("кошка") == []
        assert len(first.seen) == seen, "a model that is not used any more is not asked"
    assert caplog.text.count("this process adds none") == 1


def test_nobody_adopts_another_model_while_vectors_are_being_added(path: str) -> None:
    with closing(opened(path)) as one, closing(opened(path)) as other:
        with one.write(10.0) as rows:
            rows.set_setting(MADE_BY, "one")
        with one.write(10.0) as rows:
            assert rows.hold_setting(MADE_BY) == "one"
            with pytest.raises(DeadlineError), other.write(0.2) as late:
                late.set_setting(MADE_BY, "another")


@pytest.mark.parametrize("damage", ["CAST(x'ff66fe' AS TEXT)", "x'00ff'"], ids=["text", "bytes"])
def test_a_damaged_memory_keeps_no_other_from_its_vector(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(tmp_path / "memory.db")
    with calling(path) as call:
        for number in range(6):
            call.remember(f"kitten {number}")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE memories SET content = {damage} WHERE content = 'kitten 2'")
    embed = Meanings()
    with calling(path, embed=embed) as call:
        call.recall("feline")
        wait_for(embed, 6)
    assert len(stored(path)) == 5
    assert "is damaged and gets no vector" in caplog.text


@pytest.mark.slow
def test_a_model_that_is_slower_than_close_leaves_its_batch_to_the_next_process(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    slow = Slow("a kitten sleeps")
    with caplog.at_level(logging.WARNING, logger="kronmem.engine"):
        with calling(path, embed=slow) as call:
            call.remember("a kitten sleeps")
            assert slow.thinks.wait(60)
        (worker,) = [thread for thread in threading.enumerate() if thread.name == "kronmem-embed"]
        slow.go_on.set()
        worker.join(60)
    assert not worker.is_alive()
    assert caplog.text == "", "nobody can do anything about it, and nothing is lost"
    with calling(path, embed=slow) as call:
        call.recall("kitten")  # a first call looks for memories without a vector
        wait_for(slow, 3)
    assert stored(path) == [packed(slow, "a kitten sleeps")]
