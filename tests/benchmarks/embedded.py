"""The embedded engine beside vector databases that also run in-process: adds and recalls in one agent's partition.

`python -m tests.benchmarks.embedded [--sizes 10000] [--agents 1]` measures this alone.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kronmem import Client
from kronmem.engine import scan
from tests.benchmarks.engine_scale import Language
from tests.benchmarks.measure import Row, Times, in_turn, installed, repeated

DIMENSIONS = 384
ASKED = "agent-0"
"""The agent whose memories are asked for."""
_language = Language(1)


@cache
def text(number: int) -> str:
    """A short text, the same for everybody; its words are as unevenly common as real ones."""
    return f"{_language.memory()} {number}"


@cache
def question(number: int) -> str:
    """A few words to look for."""
    return f"{_language.question()}"


def vector(words: str) -> list[float]:
    """A made-up embedding: the databases are measured, not a model."""
    seed = random.Random(hashlib.sha256(words.encode()).digest())
    return [seed.uniform(-1, 1) for _ in range(DIMENSIONS)]


def measured(count: int, agents: int, rounds: int) -> tuple[Times, Times]:
    """Seconds per recall and per single durable add, with `count` memories in `agents` partitions."""
    with tempfile.TemporaryDirectory() as home:
        ours = _kronmem(home, count, agents)
        contestants = [ours, (f"{ours[0]} without numpy", _without_numpy(ours[1]), ours[2])]
        contestants += [_chroma(home, count, agents)] if installed("chromadb") else []
        contestants += [_lancedb(home, count, agents)] if installed("lancedb") else []
        recalls: dict[str, Callable[[], float]] = {}
        adds: dict[str, Callable[[], float]] = {}
        for name, recall, add in contestants:
            recalls[name] = lambda recall=recall: repeated(recall, 50)  # type: ignore[misc] # a default binds the loop's value
            if name != "kronmem without numpy":  # an add does not use it
                adds[name] = lambda add=add: repeated(add, 20)  # type: ignore[misc] # as above
        return in_turn(recalls, rounds), in_turn(adds, rounds)


Contestant = tuple[str, Callable[[], object], Callable[[], object]]


class _Numbers:
    """Numbers for new memories."""

    def __init__(self, first: int) -> None:
        self.next = first

    def __call__(self) -> int:
        self.next += 1
        return self.next


def _batches(count: int, agents: int) -> Sequence[tuple[str, list[int]]]:
    return [(f"agent-{agent}", list(range(agent, count, agents))) for agent in range(agents)]


def _kronmem(home: str, count: int, agents: int) -> Contestant:
    client = Client(f"sqlite:///{Path(home) / 'kronmem.db'}")
    for agent, numbers in _batches(count, agents):
        client.remember_many(agent, [text(number) for number in numbers])
    fresh = _Numbers(10_000_000)
    return (
        "kronmem",
        lambda: client.recall(ASKED, question(fresh() % 64), 5, threshold=0.0),
        lambda: client.remember(ASKED, text(fresh())),
    )


def _without_numpy(recall: Callable[[], object]) -> Callable[[], object]:
    """The same recall as if numpy were not installed."""

    def run() -> object:
        kept, scan.numpy_for = scan.numpy_for, lambda passages: None
        try:
            return recall()
        finally:
            scan.numpy_for = kept

    return run


def _chroma(home: str, count: int, agents: int) -> Contestant:
    import chromadb
    from chromadb.config import Settings

    database = chromadb.PersistentClient(str(Path(home) / "chroma"), Settings(anonymized_telemetry=False))
    table: Any = database.create_collection("memories", embedding_function=None)
    for agent, numbers in _batches(count, agents):
        for start in range(0, len(numbers), 1000):
            part = numbers[start : start + 1000]
            texts = [text(number) for number in part]
            owners = [{"agent": agent}] * len(part)
            table.add([str(n) for n in part], [vector(t) for t in texts], metadatas=owners, documents=texts)
    fresh = _Numbers(10_000_000)

    made = [(10_000_000 + n, vector(text(10_000_000 + n))) for n in range(400)]

    def add() -> None:
        number, embedding = made.pop()
        table.add([str(number)], [embedding], metadatas=[{"agent": ASKED}], documents=[text(number)])

    questions = [vector(question(number)) for number in range(64)]
    return (
        "Chroma",
        lambda: table.query([questions[fresh() % 64]], n_results=5, where={"agent": ASKED}),
        add,
    )


def _lancedb(home: str, count: int, agents: int) -> Contestant:
    import lancedb

    rows = [
        {"vector": vector(text(n)), "text": text(n), "agent": agent}
        for agent, ns in _batches(count, agents)
        for n in ns
    ]
    table: Any = lancedb.connect(str(Path(home) / "lance")).create_table("memories", rows)
    fresh = _Numbers(10_000_000)
    questions = [vector(question(number)) for number in range(64)]

    made = [(10_000_000 + n, vector(text(10_000_000 + n))) for n in range(400)]

    def add() -> None:
        number, embedding = made.pop()
        table.add([{"vector": embedding, "text": text(number), "agent": ASKED}])

    return (
        "LanceDB",
        lambda: table.search(questions[fresh() % 64]).where(f"agent = '{ASKED}'", prefilter=True).limit(5).to_list(),
        add,
    )


def main() -> None:
    """Print recalls and adds at each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000", help="how many memories, comma-separated")
    parser.add_argument("--agents", type=int, default=1, help="in how many agents")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for size in map(int, options.sizes.split(",")):
        recalls, adds = measured(size, options.agents, options.rounds)
        base = "Chroma" if "Chroma" in recalls.rounds else "kronmem"
        where = f"{size:,} memories in {options.agents} agents"
        print(Row(f"recall among {where}", f"{base} = 1", recalls.against(base)))
        print(Row(f"single durable add to {where}", f"{base} = 1", adds.against(base)))


if __name__ == "__main__":
    main()
