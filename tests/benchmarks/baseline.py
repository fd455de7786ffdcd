"""Today's kronmem beside that of an earlier commit, each in an environment of its own, measured in turns.

`python -m tests.benchmarks.engine_scale --against COMMIT` calls this: the commit's work tree and its environment are made
in a temporary folder, from the package index that pip is set up for.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from statistics import median, quantiles

from tests.benchmarks.engine_scale import Language
from tests.services.postgres import new_database

ROOT = Path(__file__).parent.parent.parent
BATCH, ROUNDS, SINGLE, ASKED = 100, 5, 40, 40


class Worker:
    """A process that has one kronmem and one database."""

    def __init__(self, python: str, source: Path, database: Path | str) -> None:
        command = [python, str(Path(__file__).with_name("scale_worker.py")), str(database)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(source)}
        )

    def do(self, command: str, texts: Sequence[object] = ()) -> list[float]:
        """The seconds of each call."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([command, texts]) + "\n")
        self._process.stdin.flush()
        answer: list[float] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


@contextmanager
def environment(commit: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """A Python with what the commit needs, and the commit's work tree."""
    tree, venv = folder / "tree", folder / "venv"
    subprocess.run(["git", "-C", str(ROOT), "worktree", "add", "--detach", "-f", str(tree), commit], check=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        python = str(venv / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "-q", f"{tree}[postgres]"], check=True)
        subprocess.run([python, "-m", "pip", "uninstall", "-q", "-y", "kronmem"], check=True)  # the tree's own is used
        yield python, tree
    finally:
        subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(tree)], check=True)


def against(commit: str, sizes: Sequence[int], server: str | None = None) -> Iterator[str]:
    """Adds, recalls and room of both in one agent, today's as a multiple of the commit's; on that PostgreSQL or a file."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        python, tree = stack.enter_context(environment(commit, folder))
        databases: dict[str, Path | str] = {name: folder / f"{name}.db" for name in ("now", "then")}
        if server:
            databases = {name: stack.enter_context(new_database(server, f"kronmem_{name}")) for name in databases}
        both = {"now": Worker(python, ROOT, databases["now"]), commit: Worker(python, tree, databases["then"])}
        for worker in both.values():
            stack.callback(worker.close)
        texts, reached = Language(1).memories(), 0
        for size in sizes:
            yield f"{size:,} memories in one agent, today's / {commit}'s (without numpy)"
            yield from _compared(both, _fill(both, texts, size - reached), size, commit)
            reached = size


def _fill(both: dict[str, Worker], texts: Iterator[str], count: int) -> dict[str, list[float]]:
    spent: dict[str, list[float]] = {name: [] for name in both}
    for _ in range(0, count, 10 * BATCH):
        batches = [list(islice(texts, BATCH)) for _ in range(10)]
        for name, worker in both.items():
            spent[name] += worker.do("batch", batches)
    return spent


def _compared(both: dict[str, Worker], filled: dict[str, list[float]], size: int, commit: str) -> Iterator[str]:
    single: dict[str, list[float]] = {name: [] for name in both}
    recall: dict[str, list[float]] = {name: [] for name in both}
    for turn in range(ROUNDS):
        added = list(islice(Language(1000 * size + turn).memories(), SINGLE))
        asked = list(islice(_questions(turn), ASKED))
        for name, worker in both.items():
            single[name] += worker.do("single", added)
            recall[name] += worker.do("recall", asked)
    rooms = {name: worker.do("room")[0] for name, worker in both.items()}
    yield _line("adds in batches, ms a memory", {n: 1000 * median(of) / BATCH for n, of in filled.items()}, commit)
    yield _line("single durable add, ms p50", {n: 1000 * median(of) for n, of in single.items()}, commit)
    yield _line("recall, ms p50", {n: 1000 * median(of) for n, of in recall.items()}, commit)
    yield _line("recall, ms p95", {n: 1000 * quantiles(of, n=20)[-1] for n, of in recall.items()}, commit)
    yield _line("bytes a memory", {n: of / size for n, of in rooms.items()}, commit)


def _questions(seed: int) -> Iterator[str]:
    language = Language(seed + 77)
    while True:
        yield language.question()


def _line(what: str, figures: dict[str, float], commit: str) -> str:
    now, then = figures["now"], figures[commit]
    return f"  {what:30s} {now:9.3f} / {then:9.3f} = {now / then:5.2f}x"
