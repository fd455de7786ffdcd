"""What is kept of a space in memory: never what is gone, within bounds, and nobody waits for another's store."""

from __future__ import annotations

import threading
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from kronmem.engine import scan
from kronmem.engine.engine import Engine
from kronmem.engine.service import Service
from kronmem.engine.sqlite.reading import SqliteReader
from kronmem.engine.sqlite.store import SqliteStore
from kronmem.engine.store import Space
from tests.engine.calling import Caller, Clock, calling

NOTES = ("The violin stands in the hall", "Dinner is at eight", "The server runs Debian")
QUESTION = "Which instrument is there?"
PLENTY = 60.0


class WatchedReader(SqliteReader):
    """Notes which vectors are read, and can hold a reading up."""

    store: WatchedStore

    def vectors(self, space: Space, numbers: Sequence[int], known: Collection[int]) -> Mapping[int, bytes | None]:
        self.store.read_vectors.append(len(set(numbers) - set(known)))
        if (held := self.store.held) is not None:
            self.store.held = None
            self.store.holding.set()
            assert held.wait(PLENTY)
        return super().vectors(space, numbers, known)


class WatchedStore(SqliteStore):
    """A store of such readers."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.read_vectors: list[int] = []
        self.held: threading.Event | None = None
        self.holding = threading.Event()

    @contextmanager
    def read(self, timeout: float) -> Generator[SqliteReader]:
        with super().read(timeout) as rows:
            rows.__class__ = WatchedReader
            assert isinstance(rows, WatchedReader)
            rows.store = self
            yield rows


@contextmanager
def watched(folder: Path) -> Generator[tuple[Caller, WatchedStore]]:
    store = WatchedStore(str(folder / "memory.db"))
    service = Service(Engine(store))
    call = Caller(service, Clock())
    for text in NOTES:
        call.remember(text)
    try:
        yield call, store
    finally:
        service.close()


def test_vectors_are_read_once(tmp_path: Path) -> None:
    with watched(tmp_path) as (call, store):
        for _ in range(2):
            assert call.recall(QUESTION, threshold=0)[0] == NOTES[0]
        call.remember("The cello is at the repair shop")
        assert "The cello is at the repair shop" in call.recall(QUESTION, threshold=0, limit=2)
        assert store.read_vectors == [3, 0, 1]


def test_a_memory_that_another_service_forgot_is_compared_no_more(tmp_path: Path) -> None:
    with watched(tmp_path) as (call, _), calling(str(tmp_path / "memory.db")) as other:
        assert call.recall(QUESTION)[0] == NOTES[0]
        violin = call.hits(QUESTION)[0]["memory"]["id"]
        assert other("DELETE", f"/api/v1/agents/bot/memories/{violin}")[0] == 204
        assert call.recall(QUESTION) == [], "answered for the sake of a memory that is gone"


def test_a_changed_text_is_compared_by_its_new_meaning(tmp_path: Path) -> None:
    with watched(tmp_path) as (call, _), calling(str(tmp_path / "memory.db")) as other:
        violin = call.hits(QUESTION)[0]["memory"]["id"]
        assert other("PATCH", f"/api/v1/agents/bot/memories/{violin}", {"content": "The car needs new tyres"})[0] == 200
        assert call.recall(QUESTION) == []
        assert call.recall("When is the vehicle serviced?", threshold=0)[0] == "The car needs new tyres"


def test_vectors_make_room_before_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(tmp_path) as (call, store):
        monkeypatch.setattr(scan, "MOST_PASSAGES", 3)  # the codes fit, their vectors do not
        for _ in range(3):
            assert call.recall(QUESTION, threshold=0)[0] == NOTES[0]
        assert store.read_vectors == [3, 3, 3]


def test_a_recall_that_the_store_holds_up_holds_up_no_other_of_its_agent(tmp_path: Path) -> None:
    with watched(tmp_path) as (call, store):
        release = store.held = threading.Event()
        found: list[list[str]] = []
        slow = threading.Thread(target=lambda: found.append(call.recall(QUESTION, threshold=0)))
        slow.start()
        try:
            assert store.holding.wait(PLENTY)
            quick = threading.Thread(target=lambda: found.append(call.recall("When is dinner?")))
            quick.start()
            quick.join(PLENTY)
            assert [texts[0] for texts in found] == [NOTES[1]]
        finally:
            release.set()
            slow.join()
        assert [texts[0] for texts in found] == [NOTES[1], NOTES[0]]
