"""Threads on one embedded memory: adds that share a flush to disk, and recalls beside a writer. For `engine_scale`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import quantiles

from kronmem.engine.engine import Engine
from kronmem.engine.recall import Search
from kronmem.engine.remembering import Place
from kronmem.engine.sqlite.store import SqliteStore
from kronmem.engine.sqlite.writing import SqliteWriter
from kronmem.engine.store import NewRow
from tests.benchmarks.engine_scale import Language

TURNS, ASKED = 10, 40


class CountedStore(SqliteStore):
    """A store that counts its durable transactions."""

    writes = 0

    @contextmanager
    def write(self, timeout: float) -> Iterator[SqliteWriter]:
        """The same, counted."""
        self.writes += 1
        with super().write(timeout) as rows:
            yield rows


def in_threads(folder: Path, threads: int = 8, each: int = 40) -> Iterator[str]:
    """Single durable adds of several threads: transactions, each of which is one flush to disk, and adds a second."""
    store = CountedStore(str(folder / "threads.db"))
    engine, language = Engine(store), Language(9)
    texts = [list(islice(language.memories(), each)) for _ in range(threads)]
    engine.remember(Place("", "shared"), [NewRow("first")])
    store.writes, began = 0, time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda mine: [engine.remember(Place("", "shared"), [NewRow(t)]) for t in mine], texts))
    spent, adds = time.perf_counter() - began, threads * each
    yield f"{threads} threads: {adds / spent:,.0f} durable adds/s, {adds / store.writes:.1f} adds a flush to disk"
    engine.close()


def beside_a_writer(engine: Engine, agent: str) -> Iterator[str]:
    """p95 of recalls alone, and while one thread stores one memory after another, in turns; and their own CPU time."""
    alone: list[tuple[float, float]] = []
    beside: list[tuple[float, float]] = []
    for turn in range(TURNS):
        alone += _timed(engine, agent, turn)
        with _writing(engine, agent, turn):
            beside += _timed(engine, agent, turn)
    for name, of in (("", 0), (", its own CPU", 1)):
        before, after = (1000 * _p95([one[of] for one in both]) for both in (alone, beside))
        yield f"  recall p95{name}: alone {before:.2f} ms, beside one writer {after:.2f} ms: {after / before:.2f}x"


def _timed(engine: Engine, agent: str, turn: int) -> list[tuple[float, float]]:
    language = Language(turn)
    ask: Callable[[str], object] = lambda question: engine.recall(Place("", agent), Search(question, limit=10))  # noqa: E731
    return [_spent(ask, language.question()) for _ in range(ASKED)]


def _spent(ask: Callable[[str], object], question: str) -> tuple[float, float]:
    began, cpu = time.perf_counter(), time.thread_time()
    ask(question)
    return time.perf_counter() - began, time.thread_time() - cpu


@contextmanager
def _writing(engine: Engine, agent: str, turn: int) -> Iterator[None]:
    language, stop = Language(5000 + turn), threading.Event()

    def write() -> None:
        while not stop.is_set():
            engine.remember(Place("", agent), [NewRow(language.memory())])

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            yield
        finally:
            stop.set()
        writing.result()


def _p95(spent: Sequence[float]) -> float:
    return quantiles(spent, n=20)[-1]
