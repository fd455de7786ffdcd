"""Processes that write one key at once: one current memory and a history without gaps, also when they are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kronmem import Client, Memory

ROOT = Path(__file__).parent.parent.parent
PROCESSES, SECONDS = 8, 10.0
WRITE = """
import sys, time
from kronmem import Client
url, writer, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
ends, n = time.monotonic() + seconds, 0
with Client(url, timeout=60.0) as client:
    while time.monotonic() < ends:
        client.remember("ada", f"writer {writer} says {n}", key="mood")
        n += 1
        print(n, flush=True)
"""


def writers(url: str) -> list[subprocess.Popen[str]]:
    command = [sys.executable, "-c", WRITE, url]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = [
        subprocess.Popen([*command, str(number), str(SECONDS)], stdout=subprocess.PIPE, text=True, env=env)
        for number in range(PROCESSES)
    ]
    for process in started:  # each has written once: all of them write at the same time from here on
        assert process.stdout
        assert process.stdout.readline() == "1\n"
    return started


def confirmed(process: subprocess.Popen[str]) -> int:
    """How many further writes it printed before its end."""
    assert process.stdout
    with process.stdout as output:  # not communicate: a part is already in the buffer of `readline`
        lines = len(output.read().splitlines())
    process.wait()
    return lines


def chain(client: Client) -> list[Memory]:
    """The history, after a look at its links: each former text was superseded by one that was said later."""
    (current,) = client.memories("ada")
    told = client.history("ada", current.id)
    everything = list(client.memories("ada", history=True))
    assert {one.id for one in told} == {one.id for one in everything}
    assert len(told) == len(everything)
    at = {one.id: place for place, one in enumerate(told)}
    for place, one in enumerate(told):
        assert (one.superseded_by is None) == (place == 0)
        assert one.superseded_by is None or at[one.superseded_by] < place
    return told


def said(told: list[Memory], writer: int) -> list[int]:
    """The numbers of one writer in the order of the history, newest first."""
    words = [one.content.split() for one in told]
    return [int(one[3]) for one in words if one[1] == str(writer)]


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_eight_processes_that_write_one_key_leave_one_current_memory_and_no_gap(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db" if store == "sqlite" else str(request.getfixturevalue("postgres"))
    running = writers(url)
    written = []
    for process in running:
        written.append(1 + confirmed(process))
        assert process.returncode == 0
    with Client(url, timeout=60.0) as client:
        told = chain(client)
        assert len(told) == sum(written)
        for writer, count in enumerate(written):
            assert said(told, writer) == list(range(count))[::-1]


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_writers_that_are_killed_leave_every_confirmed_text_and_one_current_memory(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db" if store == "sqlite" else str(request.getfixturevalue("postgres"))
    running = writers(url)
    written = []
    for number, process in enumerate(running):
        time.sleep(0.1 * (number % 3))  # at different moments of a write
        process.send_signal(signal.SIGKILL)
        written.append(1 + confirmed(process))
    with Client(url, timeout=60.0) as client:
        client.remember("ada", "the last word", key="mood")
        told = chain(client)
        assert told[0].content == "the last word"
        for writer, count in enumerate(written):
            numbers = said(told, writer)
            # One more may be stored than was confirmed: the kill came between the commit and the print.
            assert numbers == list(range(len(numbers)))[::-1]
            assert len(numbers) in (count, count + 1)
