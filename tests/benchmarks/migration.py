"""How long a database of kronmem 0.1 takes to move to schema 2: `python -m tests.benchmarks.migration [--memories N]`.

The file is the sample that 0.1 wrote, multiplied to a million memories. The first open migrates it in one transaction;
a copy of the file, written and synced in the same run, is the unit. A process is killed while it migrates and another
one while it fills; nothing may be missing afterwards. Filling is timed over a part, in memories a second.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kronmem import Client
from tests.engine.old_database import grown

OPEN = (
    "import sys; from kronmem import Client; c = Client(sys.argv[1], timeout=3600.0); "
    "print(len(c.recall('copy-7', 'knots')), flush=True); sys.stdin.read()"
)
FILLED = 2_000
"""Memories over which filling is timed."""


def started(path: Path) -> subprocess.Popen[str]:
    """A process that opens the database and recalls."""
    command = [sys.executable, "-c", OPEN, f"sqlite:///{path}"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def copied(path: Path) -> float:
    """Seconds to write the file once more and see it on disk."""
    began = time.monotonic()
    other = path.with_suffix(".copy")
    shutil.copy(path, other)
    with other.open("rb+") as file:
        os.fsync(file.fileno())
    other.unlink()
    return time.monotonic() - began


def killed(path: Path, moment: float) -> int:
    """Kill a process so many seconds after it began; the schema that the file has then."""
    process = started(path)
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return asked(path, "PRAGMA user_version")


def asked(path: Path, sql: str) -> int:
    """One number out of the file."""
    db = sqlite3.connect(path, timeout=60.0)
    try:
        return int(db.execute(sql).fetchone()[0])
    finally:
        db.close()


def unfilled(path: Path) -> int:
    """Memories that still have the index entries of schema 1."""
    return asked(path, "SELECT count(*) FROM memories WHERE passages = 0 AND successor IS NULL")


def opened(path: Path) -> float:
    """Seconds until a new process has migrated the file and answered a recall; it fills a part and is killed."""
    began = time.monotonic()
    process = started(path)
    assert process.stdout
    assert int(process.stdout.readline()) > 0
    took = time.monotonic() - began
    before, at = unfilled(path), time.monotonic()
    while (left := unfilled(path)) > before - FILLED:
        time.sleep(5.0)  # a count of a million is no small read itself
    rate = (before - left) / (time.monotonic() - at)
    process.send_signal(signal.SIGKILL)
    process.wait()
    print(f"filled at {rate:.0f} memories a second, then killed; {unfilled(path)} left")
    return took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=1_000_000)
    memories = parser.parse_args().memories
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "memory.db"
        agents = grown(path, memories)
        count = asked(path, "SELECT count(*) FROM memory")
        unit = copied(path)
        print(f"{count} memories of 0.1, {path.stat().st_size >> 20} MB; a copy of the file is the unit")
        shutil.copy(path, spare := path.with_suffix(".spare"))
        spare.chmod(0o600)
        took = opened(spare)
        print(f"migrated and recalled: {took / unit:.1f} × the copy ({took:.1f} s here)")
        versions = [killed(path, share * took) for share in (0.3, 0.5, 0.7)]
        print(f"another copy, killed three times while it opened: schema {', '.join(map(str, versions))}")
        opened(path)
        with Client(f"sqlite:///{path}", timeout=3600.0) as client:
            assert sum(one.memory_count for one in client.agents()) == count
            assert len(list(client.memories(f"copy-{agents - 1}"))) == 40
            assert client.recall(f"copy-{agents - 1}", "knots")
        assert asked(path, "SELECT count(*) FROM memories") == count
        print("every memory is there")


if __name__ == "__main__":
    main()
