"""How long a database of kronmem 0.1 takes to move to schema 2: `python -m tests.benchmarks.migration [--memories N]`.

The file is the sample that 0.1 wrote, multiplied to a million memories. The first open migrates it in one transaction;
a copy of the file, written and synced in the same run, is the unit. Three processes are killed while they migrate, and
three while they fill the new index in the background, at a quarter, a half and three quarters of the memories; the
next one goes on to the end. Then every index entry is compared with the one that its memory must have.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kronmem import Client
from tests.benchmarks.migration_check import check_index
from tests.engine.old_database import EACH, grown

OTHER_WORDS = "nautical speed"
"""Finds the memories of the sample by their meaning: they have no term of it."""
CALLS = 40


def worker(address: str) -> None:
    """Open the database and recall; then answer each line with medians, in seconds, of a recall and a remember."""
    client = Client(address, timeout=3600.0)
    print(len(client.recall("copy-7", "knots")), flush=True)
    for line in sys.stdin:
        recalls = [_timed(partial(client.recall, "copy-7", "knots at buoy 77")) for _ in range(CALLS)]
        remembers = [_timed(partial(client.remember, "caller", f"{line.strip()} {n}")) for n in range(CALLS)]
        print(statistics.median(recalls), statistics.median(remembers), flush=True)


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


class Process:
    """A process that has the database open, and so migrates and fills it."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-m", "tests.benchmarks.migration", "--open", f"sqlite:///{path}"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self) -> list[float]:
        """The numbers of the next line that it prints."""
        assert self._process.stdout
        return [float(part) for part in self._process.stdout.readline().split()]

    def call(self, name: str) -> list[float]:
        """Seconds that a recall and a remember take in it now."""
        assert self._process.stdin
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        return self.read()

    def kill(self) -> None:
        """Leave it no time for anything."""
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()

    def end(self) -> None:
        """Let it close the database."""
        self._process.communicate()


def copied(path: Path) -> float:
    """Seconds to write the file once more and see it on disk."""
    began = time.monotonic()
    other = path.with_suffix(".copy")
    shutil.copy(path, other)
    with other.open("rb+") as file:
        os.fsync(file.fileno())
    other.unlink()
    return time.monotonic() - began


def asked(path: Path, sql: str) -> int:
    """One number out of the file."""
    db = sqlite3.connect(path, timeout=60.0)
    try:
        return int(db.execute(sql).fetchone()[0])
    finally:
        db.close()


def unfilled(path: Path) -> int:
    """Memories that still have the index entries of schema 1: the entries of a partial index."""
    return asked(path, "SELECT count(*) FROM memories WHERE passages = 0 AND successor IS NULL")


def killed_while_opening(path: Path, moment: float) -> int:
    """Kill a process so many seconds after it began; the schema that the file has then."""
    process = Process(path)
    time.sleep(moment)
    process.kill()
    return asked(path, "PRAGMA user_version")


def opened(path: Path) -> float:
    """Seconds until a new process has migrated the file and answered a recall; then it is killed."""
    began = time.monotonic()
    process = Process(path)
    assert process.read()[0] > 0
    took = time.monotonic() - began
    process.kill()
    return took


def filled(path: Path, count: int) -> float:
    """Fill to the end over three kills; the seconds that filling took, without the waits for a killed one's lease."""
    took = 0.0
    for left in (count * 3 // 4, count // 2, count // 4, 0):
        process = Process(path)
        assert process.read()[0] > 0
        before = unfilled(path)
        while (now := unfilled(path)) == before > left:  # the lease of the one that was killed
            time.sleep(0.2)
        began, begun_with = time.monotonic(), now
        if left == count // 2:
            busy = process.call("while it is filled")
        while (now := unfilled(path)) > left:
            time.sleep(2.0)
        seconds = time.monotonic() - began
        took += seconds
        print(f"filled at {(begun_with - now) / seconds:.0f} memories a second; {now} left", flush=True)
        if left:
            process.kill()
    idle = process.call("once it is filled")
    recall, remember = (one / other for one, other in zip(busy, idle, strict=True))
    print(f"while it is filled a recall takes {recall:.1f} and a remember {remember:.1f} times as long as afterwards")
    process.end()
    return took


def check(path: Path, count: int, agents: int) -> None:
    """See that nothing is missing, doubled or not to be found."""
    last = f"copy-{agents - 1}"
    with Client(f"sqlite:///{path}", timeout=3600.0) as client:
        counts = {one.name: one.memory_count for one in client.agents()}
        assert counts.pop("caller") == 2 * CALLS
        assert sum(counts.values()) == count
        assert len(list(client.memories(last))) == EACH
        assert client.recall(last, "knots")
        assert any("knots" in hit.content for hit in client.recall(last, OTHER_WORDS)), "not found by other words"
    assert asked(path, "SELECT count(*) FROM memories") == count + 2 * CALLS
    assert unfilled(path) == 0
    check_index(path, agents)
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=1_000_000)
    parser.add_argument("--open", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.open:
        worker(options.open)
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "memory.db"
        agents = grown(path, options.memories)
        count = asked(path, "SELECT count(*) FROM memory")
        unit = copied(path)
        print(f"{count} memories of 0.1, {path.stat().st_size >> 20} MB; a copy of the file is the unit", flush=True)
        shutil.copy(path, spare := path.with_suffix(".spare"))
        spare.chmod(0o600)
        took = opened(spare)
        spare.unlink()
        print(f"migrated and recalled: {took / unit:.1f} × the copy ({took:.1f} s here)", flush=True)
        versions = [killed_while_opening(path, share * took) for share in (0.3, 0.5, 0.7)]
        print(f"another copy, killed three times while it opened: schema {', '.join(map(str, versions))}", flush=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = filled(path, count)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"filled: {took / unit:.1f} × the copy ({took:.0f} s here), {count / took:.0f} memories a second")
        print(f"of CPU time, starting four processes included: {count / cpu:.0f} memories a second")
        print(f"the file grew to {path.stat().st_size >> 20} MB", flush=True)
        check(path, count, agents)
        print("every memory is there and filled once, every index entry is the one that it must be, integrity ok")


if __name__ == "__main__":
    main()
