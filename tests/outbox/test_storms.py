"""Storms of SIGKILL: nothing acknowledged is lost, nothing is stored twice, every agent's texts keep their order.

A few kills each in the suite; `python -m tests.matrix storms` runs them with a hundred.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kronmem import Client
from tests.services.kronmem import ServedKronmem

ROOT = Path(__file__).parent.parent.parent
KILLS = int(os.environ.get("KRONMEM_TEST_KILLS", "12"))
PROCESSES = 4
WRITER = """
import sys
from kronmem import Client
url, writer, turn = sys.argv[1:]
client = Client(url, timeout=60)
for number in range(100_000):
    agent = "everybody" if number % 2 else f"writer-{writer}"
    text = f"{writer} {int(turn):03} {number:05}"
    client.remember(agent, text)
    print(f"{agent}/{text}", flush=True)
"""


def killed_writer(url: str, writer: int, turn: int) -> list[str]:
    """Run a process that stores one text after another, kill it at some point, and say which it was told are stored."""
    command = [sys.executable, "-c", WRITER, url, str(writer), str(turn)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ) as one:
        assert one.stdout is not None
        heard = [one.stdout.readline() for _ in range(random.Random(turn * PROCESSES + writer).randint(1, 12))]
        one.kill()
        heard += one.stdout.readlines()
    return [line.rstrip("\n") for line in heard if line.endswith("\n")]


def in_order(acknowledged: list[list[str]], url: str) -> None:
    """Everything acknowledged is there once, and each writer's texts are in their order in each agent."""
    with Client(url, timeout=60) as client:
        for agent in ["everybody", *(f"writer-{writer}" for writer in range(PROCESSES))]:
            stored = [memory.content for memory in client.memories(agent)][::-1]
            assert len(stored) == len(set(stored))
            for told in acknowledged:
                mine = [text for name, text in (line.split("/") for line in told) if name == agent]
                assert [text for text in stored if text in set(mine)] == mine
        assert sum(map(len, acknowledged)) > KILLS


def storm(url: str) -> None:
    """Four processes at once, each started anew after every kill."""
    turns = -(-KILLS // PROCESSES)

    def work(writer: int) -> list[str]:
        return [line for turn in range(turns) for line in killed_writer(url, writer, turn)]

    with ThreadPoolExecutor(PROCESSES) as pool:
        in_order(list(pool.map(work, range(PROCESSES))), url)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_four_processes_on_one_file(tmp_path: Path) -> None:
    storm(f"sqlite:///{tmp_path}/memory.db")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_four_processes_on_postgresql(postgres: str) -> None:
    storm(postgres)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_served_memory_that_is_killed_under_four_writers(tmp_path: Path) -> None:
    acknowledged: list[list[str]] = [[] for _ in range(PROCESSES)]
    stop, service = threading.Event(), ServedKronmem(tmp_path / "memory.db", key="kv-storm")

    def work(writer: int) -> None:
        with Client(service.url, api_key="kv-storm", outbox=tmp_path / f"outbox-{writer}.db", timeout=20) as client:
            number = 0
            while not stop.wait(0.05):
                number += 1
                client.remember(f"writer-{writer}", text := f"{writer} {number:05}")
                acknowledged[writer].append(f"writer-{writer}/{text}")
            left = client.outbox.pending()
            while left:  # as long as it takes, as long as it goes on
                before, left = left, client.outbox.flush(60)
                assert left < before
            assert client.outbox.dead() == []

    with service, ThreadPoolExecutor(PROCESSES) as pool:
        done = [pool.submit(work, writer) for writer in range(PROCESSES)]
        for kill in range(KILLS):
            before = sum(map(len, acknowledged))
            while sum(map(len, acknowledged)) < before + 1 + kill % 7 and not any(one.done() for one in done):
                stop.wait(0.001)
            service.kill()
            service.start()
        stop.set()
        for one in done:
            one.result()
        service.stop()
        in_order(acknowledged, f"sqlite:///{tmp_path}/memory.db")
