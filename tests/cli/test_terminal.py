"""The command as a process: at a terminal, in a pipe that ends early, on a full disk, interrupted."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kronmem import Client

COMMAND = [sys.executable, "-m", "kronmem"]


def typed(words: list[str], answer: str) -> tuple[int, str]:
    """Run a command at a terminal of its own, and answer its question."""
    ours, its = pty.openpty()
    with subprocess.Popen([*COMMAND, *words], stdin=its, stdout=subprocess.PIPE, stderr=its, text=True) as process:
        os.close(its)
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(ours, 1000)
        os.write(ours, f"{answer}\n".encode())
        output, _ = process.communicate(timeout=60)
    os.close(ours)
    return process.returncode, shown.decode() + output


@pytest.mark.slow
def test_clear_says_how_many_before_it_asks_and_a_no_deletes_nothing() -> None:
    with Client() as client:
        client.remember_many("team", ["one", "two"])
        code, said = typed(["clear", "-a", "team"], "n")
        assert (code, "Delete 2 memories of team? [y/N]" in said) == (1, True)
        assert len(list(client.memories("team"))) == 2
        code, said = typed(["clear", "-a", "team"], "y")
        assert (code, "Deleted 2." in said) == (0, True)
        assert list(client.memories("team")) == []


@pytest.mark.slow
def test_a_reader_that_has_read_enough_is_no_error_and_a_full_disk_is_one() -> None:
    with Client() as client:
        client.remember_many("team", [f"memory number {n} " + "x" * 500 for n in range(400)])
    command = " ".join([*COMMAND, "list", "-a", "team"])
    script = f"set -o pipefail; {command} | head -n 1"
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    full = subprocess.run(["bash", "-c", f"{command} > /dev/full"], capture_output=True, text=True)
    assert (full.returncode, full.stderr) == (1, "kronmem: cannot write the output: No space left on device\n")


def heeding_interrupts() -> None:
    """A job that a script has put in the background ignores them, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
def test_an_interrupted_import_says_how_far_it_came_and_goes_on(tmp_path: Path) -> None:
    backup, target = tmp_path / "backup.jsonl", tmp_path / "there.db"
    backup.write_text(
        "".join(json.dumps({"agent_id": "team", "content": f"memory {n} of many"}) + "\n" for n in range(10_000))
    )
    words = [*COMMAND, "import", str(backup), "--url", f"sqlite:///{target}"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heeding_interrupts
    ) as process:
        while stored(target) == 0:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "")
    assert "Stopped after " in errors
    assert "of 10000; run the same command again to go on." in errors
    some = stored(target)
    assert 0 < some < 10_000
    again = subprocess.run(words, capture_output=True, text=True)
    assert again.stdout == f"Imported {10_000 - some}, {some} already there.\n"


def stored(path: Path) -> int:
    if not path.exists():
        return 0
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return int(db.execute("SELECT count(*) FROM memories").fetchone()[0])
    except sqlite3.OperationalError:  # its tables are not there yet
        return 0
    finally:
        db.close()


@pytest.mark.parametrize("words", [("import", "{file}"), ("export", "-o", "{file}"), ("clear", "-a", "a", "--yes")])
def test_progress_is_shown_on_a_terminal_only(words: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    file.write_text("".join(f'{{"agent_id": "a", "content": "memory {n}"}}\n' for n in range(300)))
    with Client() as client:
        client.remember("a", "tea at five")
    command = [*COMMAND, *(word.format(file=file) for word in words)]
    ours, its = pty.openpty()
    shown = subprocess.run(command, stdout=subprocess.PIPE, stderr=its, env={**os.environ, "TERM": "xterm"})
    os.close(its)
    assert (shown.returncode, shown.stdout.count(b"\n")) == (0, 0 if words[0] == "export" else 1)
    bar = os.read(ours, 100_000)
    os.close(ours)
    assert re.search(rb"\d/(\d+|\?)|0:00:00", bar)
    piped = subprocess.run(command, capture_output=True, text=True)
    assert "\x1b" not in piped.stderr
    assert piped.stderr.count("\n") <= 1


def test_the_version_needs_no_extra() -> None:
    code = "import sys; sys.modules['typer'] = None; sys.argv[1:] = ['--version']; from kronmem.cli import main; main()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout[0].isdigit()
