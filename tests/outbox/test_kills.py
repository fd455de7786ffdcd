"""SIGKILL at every named step of the delivery: nothing accepted is lost, nothing is there twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client, Retry, ServerError, UnavailableError
from tests.services import KronvexServer, RawServer
from tests.services.kronmem import ServedKronmem, free_port
from tests.services.raw import respond

KILLS = int(os.environ.get("KRONMEM_TEST_KILLS", "30"))
"""`python -m tests.matrix storms` makes a hundred."""
ROOT = Path(__file__).parent.parent.parent
STEPS = ["queued", "claimed", "sent", "acknowledged"]
CHILD = """
import os, signal, sys
from kronmem import Client
from kronmem.outbox.queue import OutboxFile
from kronmem.outbox.deliver import Sender
url, key, outbox, wanted, at, base = sys.argv[1:]
met = 0
def killed_after(owner, method, step):
    real = getattr(owner, method)
    def passing(*args, **options):
        global met
        answer = real(*args, **options)
        if step == wanted and (answer or step != "claimed"):  # a claim of nothing is none
            met += 1
            if met == int(at):
                os.kill(os.getpid(), signal.SIGKILL)
        return answer
    setattr(owner, method, passing)
killed_after(OutboxFile, "put", "queued")
killed_after(OutboxFile, "_take", "claimed")  # inside the transaction of the claim, before its commit
killed_after(OutboxFile, "claim", "claimed")
killed_after(OutboxFile, "claim_agent", "claimed")
killed_after(Sender, "remember", "sent")
killed_after(OutboxFile, "done", "acknowledged")
client = Client(url, api_key=key or None, outbox=outbox)
for number in range(5):
    client.remember_later("alice", f"text w{base}x{number} q{base}y{number}")
    print(f"text w{base}x{number} q{base}y{number}", flush=True)
    if wanted == "claimed":  # one claim takes many rows
        client.outbox.flush(20)
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
@pytest.mark.timeout(1200)  # many processes start: half a minute alone, many times that on a busy machine
def test_a_kill_at_any_step_loses_nothing_and_doubles_nothing(tmp_path: Path, step: str, times: int) -> None:
    with ServedKronmem(tmp_path / "service.db", key="kv-1") as service:
        survive(service, "kv-1", lambda: service.contents("alice"), tmp_path, step, times)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.timeout(1200)  # many processes start: half a minute alone, many times that on a busy machine
def test_at_kronvex_its_own_folding_leaves_one(tmp_path: Path, step: str) -> None:
    with KronvexServer() as service:
        survive(service, service.key, lambda: [row.content for row in service.agents[0].rows], tmp_path, step, 5)


@pytest.mark.slow
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


STORM = """
import os, random, signal, sys, threading, time
from kronmem import Client
url, outbox, base, seed = sys.argv[1:]
chance = random.Random(int(seed))
client = Client(url, outbox=outbox, timeout=2.0)
threading.Timer(chance.uniform(0.05, 0.4), lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
for number in range(100_000):
    text = f"{base} {number}"
    if chance.random() < 0.3:
        client.remember(f"agent-{number % 3}", text)
    else:
        client.remember_later(f"agent-{number % 3}", text)
    print(number % 3, text, flush=True)
    if chance.random() < 0.1:
        client.outbox.flush(0.05)
    time.sleep(0.002)
"""


@pytest.mark.slow
@pytest.mark.timeout(1200)  # many processes start: half a minute alone, many times that on a busy machine
def test_a_storm_of_kills_before_a_service_that_fails_at_random(tmp_path: Path) -> None:
    """Nothing that was accepted is lost, nothing is stored twice, and every agent's texts are in their order."""
    chance, lock = random.Random(11), threading.Lock()
    kept: dict[str, tuple[str, str]] = {}
    well = threading.Event()

    def answer(server: RawServer, connection: Any, request: Any) -> None:
        if not request.path.endswith("/remember"):
            return respond(200, body={"status": "ok", "service": "kronmem"})(server, connection, request)
        with lock:
            fault = "" if well.is_set() else chance.choice(["", "", "", "503", "429", "reset", "lost"])
            if fault in ("", "lost"):
                agent = request.path.split("/")[4]
                kept.setdefault(request.headers["idempotency-key"], (agent, request.body["content"]))
        if fault in ("reset", "lost"):
            return connection.reset()
        stored = {"id": request.headers["idempotency-key"], "content": request.body["content"]}
        return respond(int(fault or 201), body={} if fault else stored)(server, connection, request)

    accepted: list[tuple[str, str]] = []
    with RawServer([answer]) as server:
        for number in range(KILLS):
            command = [sys.executable, "-c", STORM, server.url, str(tmp_path / "o.db"), f"{number:03}", str(number)]
            ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
            assert ran.returncode == -signal.SIGKILL, ran.stderr
            accepted += [(line[0], line[2:]) for line in ran.stdout.splitlines() if line.count(" ") == 2]
        well.set()
        with Client(server.url, outbox=tmp_path / "o.db") as client:
            set_aside = {letter.content for letter in client.outbox.dead()}
            client.outbox.retry_dead()
            assert client.outbox.flush(120.0) == 0
            assert client.outbox.dead() == []
    texts = [content for _, content in kept.values()]
    assert len(accepted) > KILLS
    assert {content for _, content in accepted} <= set(texts)
    assert len(texts) == len(set(texts))
    for agent in "012":
        arrived = [text for name, text in kept.values() if name == f"agent-{agent}" and text not in set_aside]
        told = [text for name, text in accepted if name == agent and text not in set_aside]
        assert [text for text in arrived if text in set(told)] == told
