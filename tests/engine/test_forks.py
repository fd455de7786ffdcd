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
