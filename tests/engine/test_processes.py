"""Several processes on one file, and processes that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.engine.calling import calling
from tests.engine.test_sqlite import assert_sound

WORKER = """
import sys, time
from tests.engine.calling import calling
path, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
with calling(path) as call:
    ends, n = time.monotonic() + seconds, 0
    while n == 0 or time.monotonic() < ends:
        call.remember(f"tea {n} of {name}", session_id=name)
        assert call.recall(f"tea {n} of {name}", session_id=name, threshold=0)[0] == f"tea {n} of {name}"
        n += 1
        if n % 5 == 0:
            assert call.recall("tea", threshold=0)
print(n)
"""

WRITER = """
import sys
from tests.engine.calling import calling
with calling(sys.argv[1]) as call:
    for n in range(1_000_000):
        call.remember(f"memory {sys.argv[2]} {n}")
        sys.stdout.write(f"{n}\\n")
        sys.stdout.flush()
"""


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def work_together(path: str, count: int, seconds: float) -> None:
    # No name may be a number of a memory: a text with it twice would rank above the text that was asked for.
    workers = [start(WORKER, path, f"w{n}", str(seconds)) for n in range(count)]
    counts: dict[str, int] = {}
    for n, worker in enumerate(workers):
        out, err = worker.communicate(timeout=seconds + 90)
        assert worker.returncode == 0, err
        counts[f"w{n}"] = int(out)
    with calling(path) as call:
        sessions = call("GET", "sessions")[1]["sessions"]
        assert {s["session_id"]: s["count"] for s in sessions} == counts
    assert_sound(path)


@pytest.mark.slow
def test_processes_share_one_new_file(tmp_path: Path) -> None:
    work_together(str(tmp_path / "home" / "memory.db"), 2, 0.2)


@pytest.mark.slow
def test_eight_processes_share_one_file_for_ten_seconds(tmp_path: Path) -> None:
    work_together(str(tmp_path / "memory.db"), 8, 10.0)


def kill_a_writer(path: str, times: int) -> None:
    acknowledged: set[str] = set()
    for turn in range(times):
        with start(WRITER, path, str(turn)) as writer:
            assert writer.stdout is not None
            first = writer.stdout.readline()
            time.sleep(0.003 * turn)  # not to wait for anything: to be killed at different moments
            writer.send_signal(signal.SIGKILL)
            said = first + writer.stdout.read()  # not communicate(): it would not see what readline read ahead
        acknowledged |= {f"memory {turn} {line}" for line in said.split("\n")[:-1]}
    with calling(path) as call:
        stored = {memory["content"] for memory in call("GET", "memories/export")[1]["memories"]}
        assert acknowledged <= stored
        assert len(stored) <= len(acknowledged) + times
        sample = max(acknowledged)
        assert call.recall(sample)[0] == sample
    assert_sound(path)


def test_what_a_killed_writer_acknowledged_is_there(tmp_path: Path) -> None:
    kill_a_writer(str(tmp_path / "memory.db"), 1)


@pytest.mark.slow
def test_twenty_killed_writers_lose_nothing_they_acknowledged(tmp_path: Path) -> None:
    kill_a_writer(str(tmp_path / "memory.db"), 20)
