"""A fork while other threads are at work in the engine: the child finds every lock open, and nothing half done."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client
from kronmem.engine import terms
from kronmem.engine.code_cache import CodeCache
from kronmem.semantic import _Once

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
PATIENCE = 60


def in_child(work: Callable[[], object]) -> int:
    """The exit code of a child that did `work`; one that hangs is ended by a signal."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        signal.alarm(PATIENCE)
        work()
    except BaseException:  # noqa: BLE001 -- the child has nobody else to tell
        os._exit(1)
    os._exit(0)


@contextmanager
def held(lock: Any) -> Iterator[None]:
    """The lock, held by another thread."""
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            done.wait(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(PATIENCE)
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with Client(tmp_path / "memory.db") as client:
        client.remember("ada", "The violin stands in the hall")
        yield client


def test_while_another_thread_stems_a_word(client: Client) -> None:
    with held(terms._stemming.lock):
        assert in_child(lambda: client.remember("ada", "Unprecedented words of a child's own")) == 0


def test_while_another_thread_scans(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    caches: list[CodeCache] = []
    found = CodeCache.of

    def noting(self: CodeCache, *args: Any) -> Any:
        caches.append(self)
        return found(self, *args)

    monkeypatch.setattr(CodeCache, "of", noting)
    assert client.recall("ada", "Which instrument is there?")
    (kept,) = caches[0]._kept.values()
    with held(caches[0]._lock), held(kept._lock):

        def work() -> None:
            client.remember("ada", "The cello is at the repair shop")
            assert len(client.recall("ada", "Which instrument is there?", threshold=0.0)) == 2

        assert in_child(work) == 0


def test_while_a_model_is_busy(tmp_path: Path) -> None:
    class Model:
        def encode(self, texts: list[str]) -> list[list[float]]:
            return [[1.0, 0.0] for _ in texts]

    model = _Once("model", Model)
    model(["load it"])
    with Client(tmp_path / "memory.db", embed=model) as client:
        client.remember("ada", "The violin stands in the hall")
        with held(model._lock):

            def work() -> None:
                assert model(["a question"]) == [[1.0, 0.0]]
                assert client.recall("ada", "Where is the violin?")
                os._exit(0)  # before its threads

            assert in_child(work) == 0
