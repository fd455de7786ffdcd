"""How good recall is: `python -m tests.benchmarks.recall_quality PATH [--db postgresql]`.

PATH holds conversations as {view, conversation, memories, questions: [{q, category, relevant}]}. Printed are Recall@10
and nDCG@10 for the engine and for FTS5 (porter, stopwords, OR), and how many questions about another conversation are
answered with silence. With `--db postgresql`, the engine on PostgreSQL stands beside them.
"""

from __future__ import annotations

import argparse
import json
import math
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TypedDict

from kronmem.engine import ranking
from kronmem.engine.engine import Engine
from kronmem.engine.recall import Search
from kronmem.engine.remembering import Place
from kronmem.engine.sqlite.store import SqliteStore
from kronmem.engine.store import Draft, Store
from kronmem.engine.terms import STOPWORDS, tokens

DEPTH = 10


class Asked(TypedDict):
    """A question and the indexes of the memories that hold its evidence."""

    q: str
    category: str
    relevant: list[int]


class Conversation(TypedDict):
    """One conversation in one view."""

    view: str
    conversation: str
    memories: list[str]
    questions: list[Asked]


Answer = tuple[list[int], float]
"""The memories found, best first, and the similarity of the best."""
Answerer = Callable[[str], Answer]


@contextmanager
def engine_of(memories: list[str], store: Store | None = None) -> Iterator[Answerer]:
    """The engine over one conversation, asked without its gate."""
    engine = Engine(store or SqliteStore(":memory:"))
    place = Place("", "conversation")
    kept, _ = engine.remember(place, [Draft(text) for text in memories])
    # A text said twice is one memory: the index of its first time stands for it.
    index = {k.row.id: i for i, k in reversed(list(enumerate(kept)))}

    def answer(question: str) -> Answer:
        hits = engine.recall(place, Search(question, limit=DEPTH, threshold=0.0))
        return [index[hit.row.id] for hit in hits], hits[0].similarity if hits else 0.0

    yield answer
    engine.close()


def postgres_at(url: str) -> Callable[[list[str]], object]:
    """The engine over one conversation in an emptied PostgreSQL database."""
    from kronmem.engine.postgres.store import PostgresStore
    from tests.services.postgres import emptied

    return lambda memories: engine_of(memories, PostgresStore(emptied(url)))


@contextmanager
def fts5_of(memories: list[str]) -> Iterator[Answerer]:
    """SQLite's own full-text search over one conversation."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE memory USING fts5(content, tokenize='porter unicode61')")
    db.executemany("INSERT INTO memory(rowid, content) VALUES (?, ?)", enumerate(memories))

    def answer(question: str) -> Answer:
        words = dict.fromkeys(word for word in tokens(question) if word not in STOPWORDS)
        match = " OR ".join(f'"{word}"' for word in words)
        sql = "SELECT rowid FROM memory WHERE memory MATCH ? ORDER BY bm25(memory) LIMIT ?"
        return [row[0] for row in db.execute(sql, (match, DEPTH))] if match else [], 1.0

    yield answer
    db.close()


def recall_at_depth(found: list[int], relevant: set[int]) -> float:
    """The share of the evidence that was found."""
    return len(relevant & set(found)) / len(relevant)


def ndcg_at_depth(found: list[int], relevant: set[int]) -> float:
    """The same, with more for what stands higher."""
    gained = sum(1 / math.log2(rank + 2) for rank, index in enumerate(found) if index in relevant)
    return gained / sum(1 / math.log2(rank + 2) for rank in range(min(len(relevant), DEPTH)))


def fair(questions: Iterable[Asked]) -> list[Asked]:
    """The questions that have an answer."""
    return [asked for asked in questions if asked["category"] != "adversarial" and asked["relevant"]]


Scores = dict[str, list[tuple[float, float, float]]]
"""By category: recall, nDCG and the best similarity of each question."""


def measure(open_answerer: Callable[[list[str]], object], conversations: list[Conversation]) -> Scores:
    """Ask every conversation its own questions."""
    scores: Scores = defaultdict(list)
    for one in conversations:
        with open_answerer(one["memories"]) as answer:  # type: ignore[attr-defined]  # a context manager of Answerer
            for asked in fair(one["questions"]):
                found, best = answer(asked["q"])
                relevant = _first_times(one["memories"], asked["relevant"])
                row = recall_at_depth(found, relevant), ndcg_at_depth(found, relevant), best
                scores[asked["category"]].append(row)
    return scores


def _first_times(memories: list[str], indexes: list[int]) -> set[int]:
    return {memories.index(memories[i]) for i in indexes}


def strangers(conversations: list[Conversation]) -> list[tuple[float, int]]:
    """Ask every conversation the next one's questions: the best similarities, and among how many memories."""
    best: list[tuple[float, int]] = []
    for one, other in zip(conversations, conversations[1:] + conversations[:1], strict=True):
        with engine_of(one["memories"]) as answer:
            asked = [a["q"] for a in other["questions"] if a["category"] != "adversarial"]
            best += [(answer(question)[1], len(one["memories"])) for question in asked]
    return best


def mean(values: Iterable[float]) -> float:
    """The average; 0 of nothing."""
    known = list(values)
    return sum(known) / len(known) if known else 0.0


def report(view: str, conversations: list[Conversation], url: str | None) -> list[str]:
    """The lines for one view."""
    lines = [f"{view}: {len(conversations)} conversations"]
    ours = measure(engine_of, conversations)
    all_scores = {"kronmem": ours, "FTS5": measure(fts5_of, conversations)}
    if url:
        all_scores["kronmem on PostgreSQL"] = measure(postgres_at(url), conversations)
    for name, scores in all_scores.items():
        rows = [row for category in scores.values() for row in category]
        lines.append(
            f"  {name:8s} Recall@10 {mean(r for r, _, _ in rows):.3f}  nDCG@10 {mean(n for _, n, _ in rows):.3f}"
        )
        each = (f"{c} {mean(r for r, _, _ in s):.3f}/{mean(n for _, n, _ in s):.3f}" for c, s in sorted(scores.items()))
        lines.append(f"           {'  '.join(each)}")
    return lines + silence(ours, conversations)


def silence(ours: Scores, conversations: list[Conversation]) -> list[str]:
    """What silence below a similarity costs and brings; last, the gate that is built in."""
    rows = [row for category in ours.values() for row in category]
    foreign = strangers(conversations)
    lines = []
    for gate in (0.05, 0.10, 0.15, 0.175, 0.20, 0.225, 0.25, 0.30):
        lost = mean(r if best < gate else 0.0 for r, _, best in rows)
        quiet = mean(best < gate for best, _ in foreign)
        lines.append(f"  silent below {gate:.3f}: foreign questions {quiet:.0%}, Recall@10 lost {lost:.3f}")
    return [*lines, built_in(conversations, foreign)]


def built_in(conversations: list[Conversation], foreign: list[tuple[float, int]]) -> str:
    """The same at the defaults."""
    lost = []
    for one in conversations:
        gate = ranking.gate(len(one["memories"]))
        scores = measure(engine_of, [one])
        lost += [r if best < gate else 0.0 for category in scores.values() for r, _, best in category]
    quiet = mean(best < ranking.gate(count) for best, count in foreign)
    return f"  silent by default:   foreign questions {quiet:.0%}, Recall@10 lost {mean(lost):.3f}"


def main() -> int:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="the conversations as JSON")
    parser.add_argument("--db", choices=["sqlite", "postgresql"], default="sqlite", help="which store, or both")
    options = parser.parse_args()
    conversations: list[Conversation] = json.loads(options.path.read_text())
    with ExitStack() as stack:
        url = stack.enter_context(_server()) if options.db == "postgresql" else None
        for view in dict.fromkeys(one["view"] for one in conversations):
            lines = report(view, [one for one in conversations if one["view"] == view], url)
            sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _server() -> AbstractContextManager[str]:
    from tests.services.postgres import some_server

    return some_server()


if __name__ == "__main__":
    sys.exit(main())
