"""SIGKILL at every named step of the delivery: nothing accepted is lost, nothing is there twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client, Retry, ServerError, UnavailableError
from tests.services import KronvexServer, RawServer
from tests.services.kronmem import ServedKronmem, free_port
from tests.services.raw import respond

ROOT = Path(__file__).parent.parent.parent
STEPS = ["queued", "claimed", "sent", "acknowledged"]
CHILD = """
import os, signal, sys
from kronmem import Client
from kronmem.outbox.queue import OutboxFile
from kronmem.outbox.sender import Sender
url, key, outbox, wanted, at, base = sys.argv[1:]
met = 0
def killed_after(owner, method, step):
    real = getattr(owner, method)
    def passing(*args, **options):
        global met
        answer = real(*args, **options)
        if step == wanted and answer != []:
            met += 1
            if met == int(at):
                os.kill(os.getpid(), signal.SIGKILL)
        return answer
    setattr(owner, method, passing)
killed_after(OutboxFile, "put", "queued")
killed_after(OutboxFile, "_take", "claimed")  # inside the transaction of the claim, before its commit
killed_after(OutboxFile, "claim", "claimed")
killed_after(Sender, "remember", "sent")
killed_after(OutboxFile, "done", "acknowledged")
client = Client(url, api_key=key or None, outbox=outbox)
for number in range(5):
    client.remember_later("alice", f"text w{base}x{number} q{base}y{number}")
    print(f"text w{base}x{number} q{base}y{number}", flush=True)
client.outbox.flush(20)
"""


def killed(url: str, key: str, outbox: Path, step: str, at: int, base: int) -> list[str]:
    """Run a process that is killed at the n-th passing of a step; what it was told is accepted."""
    command = [sys.executable, "-c", CHILD, url, key, str(outbox), step, str(at), str(base)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    return ran.stdout.splitlines()


def survive(service: Any, key: str, contents: Any, tmp_path: Path, step: str, times: int) -> None:
    accepted: list[str] = []
    for number in range(times):
        accepted += killed(service.url, key, tmp_path / "o.db", step, 1 + number % 5, number)
    with Client(service.url, api_key=key or None, outbox=tmp_path / "o.db") as client:
        deadline = time.monotonic() + 150  # leases of the killed run out after a minute
        while client.outbox.flush(5.0) and time.monotonic() < deadline:
            pass
        assert client.outbox.pending() == 0
        assert client.outbox.dead() == []
    found = contents()
    assert set(accepted) <= set(found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("step", "times"), [("sent", 1), *(pytest.param(step, 20, marks=pytest.mark.slow) for step in STEPS)]
)
@pytest.mark.timeout(400)
def test_a_kill_at_any_step_loses_nothing_and_doubles_nothing(tmp_path: Path, step: str, times: int) -> None:
    with ServedKronmem(tmp_path / "service.db", key="kv-1") as service:
        survive(service, "kv-1", lambda: service.contents("alice"), tmp_path, step, times)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.timeout(400)
def test_at_kronvex_its_own_folding_leaves_one(tmp_path: Path, step: str) -> None:
    with KronvexServer() as service:
        survive(service, service.key, lambda: [row.content for row in service.agents[0].rows], tmp_path, step, 5)


def test_two_processes_with_two_keys_share_a_file(tmp_path: Path) -> None:
    child = CHILD.replace('"alice"', '"shared"')
    with RawServer([lambda s, c, r: respond(201, body={"id": "m", "content": r.body["content"]})(s, c, r)]) as server:
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", child, server.url, f"kv-{n}", str(tmp_path / "o.db"), "never", "1", f"key{n}"],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.DEVNULL,
            )
            for n in range(2)
        ]
        assert [process.wait() for process in processes] == [0, 0]
        assert len(server.requests) == 10
        assert all(f"wkey{r.headers['x-api-key'][-1]}x" in r.body["content"] for r in server.requests)


@pytest.mark.slow
def test_a_memory_accepted_just_before_a_kill_is_delivered_by_the_next_process(tmp_path: Path) -> None:
    port = free_port()
    accepted = killed(f"http://127.0.0.1:{port}", "", tmp_path / "o.db", "queued", 5, 0)
    assert len(accepted) == 4
    with ServedKronmem(tmp_path / "service.db", port=port) as service:
        with Client(service.url, outbox=tmp_path / "o.db") as client:
            assert client.outbox.flush(90.0) == 0
        assert service.contents("alice")[:4] == accepted


def test_a_thousand_calls_to_a_broken_service_cost_few_requests_and_little_time(tmp_path: Path) -> None:
    with RawServer([respond(503)]) as server:
        with Client(server.url, outbox=tmp_path / "o.db", retry=Retry(first=0.01)) as client:
            for number in range(1000):
                if number == 100:
                    before = len(server.requests)
                with pytest.raises((ServerError, UnavailableError)):
                    client.recall("alice", "question")
            assert len(server.requests) < 1500
            assert len(server.requests) - before < 100
            assert client.health().breaker in ("open", "half-open")
            client.remember_later("alice", "still accepted")
            assert client.outbox.pending() == 1
