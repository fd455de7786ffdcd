"""How costs grow with the number of memories: `python -m tests.benchmarks.cost_by_size [--sizes 1000,10000,100000]`.

One table for memories in agents of 1000 each and one for a single agent: CPU time of a recall, an add, the first page of
a list, the export of a memory, and a fresh process with its first recall; last the exponent of each, by least squares of
the logarithms (0: costs the same at every size, 1: in proportion to it). CPU time, since other work on the machine does
not count in it; of a recall, an add and a list the median of many, each of another agent.
"""

from __future__ import annotations

import argparse
import math
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from kronmem import Client
from tests.benchmarks.engine_scale import Language

PARTITION = 1000
BATCH = 100
TIMES = 101
FRESH = 5
"""So many processes are started: a start takes as long as a hundred recalls."""
COLUMNS = ("recall", "add", "list", "export", "start")
FIRST_RECALL = """
import sys
from kronmem import Client
with Client(sys.argv[1]) as client:
    client.recall(sys.argv[2], sys.argv[3], threshold=0.0)
"""


class Filled:
    """A database that grows, in agents of `partition` memories or in one."""

    def __init__(self, path: Path, partition: int | None) -> None:
        self.url = f"sqlite:///{path}"
        self.client = Client(self.url)
        self.size = 0
        self._partition = partition
        self._language = Language(1)
        self._chosen = random.Random(2)

    def grow(self, size: int) -> None:
        """Add memories until there are so many."""
        texts = self._language.memories()
        while self.size < size:
            agent = f"agent-{self.size // self._partition}" if self._partition else "agent-0"
            self.client.remember_many(agent, list(islice(texts, BATCH)))
            self.size += BATCH

    def agent(self) -> str:
        """One of the agents."""
        return f"agent-{self._chosen.randrange(self.size // self._partition)}" if self._partition else "agent-0"

    def costs(self) -> dict[str, float]:
        """Milliseconds of CPU by column."""
        questions, texts = Language(self.size + 3), Language(self.size + 4)
        client = self.client
        return {
            "recall": _median(lambda: partial(client.recall, self.agent(), questions.question(), threshold=0.0)),
            "add": _median(lambda: partial(client.remember, self.agent(), texts.memory())),
            "list": _median(lambda: partial(next, client.memories(self.agent()))),
            "export": self._export(),
            "start": statistics.median(self._start(questions.question()) for _ in range(FRESH)),
        }

    def _export(self) -> float:
        agents = {self.agent() for _ in range(5)}
        began = time.process_time()
        walked = sum(1 for agent in sorted(agents) for _ in self.client.memories(agent, history=True))
        return 1000 * (time.process_time() - began) / walked

    def _start(self, question: str) -> float:
        before = _children()
        subprocess.run([sys.executable, "-c", FIRST_RECALL, self.url, self.agent(), question], check=True)
        return 1000 * (_children() - before)


def _median(prepared: Callable[[], Callable[[], object]]) -> float:
    spent: list[float] = []
    for _ in range(TIMES):
        call = prepared()
        began = time.process_time()
        call()
        spent.append(time.process_time() - began)
    return 1000 * statistics.median(spent)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """The slope of log cost over log size, by least squares."""
    return statistics.linear_regression([math.log(size) for size in sizes], [math.log(cost) for cost in costs]).slope


def table(folder: Path, sizes: Sequence[int], partition: int | None) -> Iterator[str]:
    """The costs at each size of one growing database, and their exponents."""
    yield f"| in {f'agents of {partition:,}' if partition else 'one agent'}, ms of CPU | {' | '.join(COLUMNS)} |"
    yield f"| --- |{' --- |' * len(COLUMNS)}"
    filled = Filled(folder / f"{partition}.db", partition)
    measured: list[dict[str, float]] = []
    for size in sizes:
        filled.grow(size)
        measured.append(filled.costs())
        yield f"| {size:,} | {' | '.join(f'{measured[-1][column]:.3f}' for column in COLUMNS)} |"
    filled.client.close()
    slopes = [exponent(sizes, [costs[column] for costs in measured]) for column in COLUMNS]
    yield f"| exponent | {' | '.join(f'{slope:.2f}' for slope in slopes)} |"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000", help="ascending; 1000000 takes some minutes more")
    parser.add_argument("--one", default=None, help="the same for the single agent; 0 leaves it out")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    alone = sizes if options.one is None else [int(size) for size in options.one.split(",") if int(size)]
    with tempfile.TemporaryDirectory() as folder:
        for line in table(Path(folder), sizes, PARTITION):
            print(line, flush=True)
        for line in table(Path(folder), alone, None) if alone else ():
            print(line, flush=True)


if __name__ == "__main__":
    main()
