"""Four servers and eight clients on one database; then the same while PostgreSQL is killed in the middle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client
from tests.postgres.test_together import assert_sound
from tests.services.kronmem import ROOT, free_port
from tests.services.postgres import Postgres, new_server

pytestmark = pytest.mark.slow

CLIENT = """
import json, sys, time
from kronmem import Client, KronmemError
url, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
kept, gone, errors, queued, step = {}, [], {}, 0, 0
ends = time.monotonic() + seconds
with Client(url, timeout=5.0, outbox=name + ".db") as client:
    memory = client.agent(f"agent-{int(name) % 3}")
    while time.monotonic() < ends or step < 60:  # more than it takes to be told of, however slow the machine
        step += 1
        text = f"client {name} noted number {step} about topic {step % 17}"
        try:
            if step % 3:
                stored = memory.remember(text, session_id=f"s{name}", tags=["load"])
                kept[stored.id] = text
                if stored.queued:  # an agent does not spin: what it queues must leave again on a slow machine too
                    queued += 1
                    time.sleep(0.05)
            elif step % 4 == 0 and kept:
                one = next(iter(kept))
                memory.forget(one)
                del kept[one]
                gone.append(one)
            else:
                memory.recall(f"what about topic {step % 17}?")
        except KronmemError as error:
            errors[type(error).__name__] = errors.get(type(error).__name__, 0) + 1
        if step % 20 == 0:
            print("step", step, flush=True)
    left = client.outbox.flush(300.0)
print(json.dumps({"kept": kept, "gone": gone, "errors": errors, "queued": queued, "left": left, "steps": step}))
"""


@contextmanager
def running(command: list[str], folder: Path, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process of ours, ended at the end."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, *command], cwd=folder, env=environment, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def serving(stack: ExitStack, url: str, folder: Path) -> str:
    """`kronmem serve` on that database; where it answers."""
    port = free_port()
    command = ["-m", "kronmem", "serve", "--db", url, "--port", str(port), "--quiet", "--json"]
    process = stack.enter_context(running(command, folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["url"] == f"http://127.0.0.1:{port}"
    return f"http://127.0.0.1:{port}"


def load(server: Postgres, folder: Path, seconds: float, *, kill: bool) -> list[dict[str, Any]]:
    with ExitStack() as stack:
        urls = [serving(stack, server.url(), folder) for _ in range(4)]
        commands = [["-c", CLIENT, urls[n % 4], str(n), str(seconds)] for n in range(8)]
        clients = [stack.enter_context(running(one, folder, stdout=subprocess.PIPE)) for one in commands]
        if kill:
            for client in clients:  # once everybody has stored some and forgotten some
                assert client.stdout is not None
                for _ in range(2):
                    client.stdout.readline()
            server.kill()
            server.start()
        said = [client.communicate(timeout=seconds + 400)[0].splitlines()[-1] for client in clients]
        return [json.loads(line) for line in said]


def check(url: str, results: list[dict[str, Any]]) -> None:
    kept = {key: text for result in results for key, text in result["kept"].items()}
    gone = {key for result in results for key in result["gone"]}
    with Client(url) as client:
        stored = [memory for n in range(3) for memory in client.memories(f"agent-{n}")]
    found = {memory.id: memory.content for memory in stored}
    assert len(found) == len(stored)
    assert len({memory.content for memory in stored}) == len(stored)
    assert {key: found.get(key) for key in kept} == kept
    assert not gone & set(found)
    assert_sound(url)


@pytest.mark.timeout(600)
def test_four_servers_and_eight_clients_for_thirty_seconds(tmp_path: Path) -> None:
    server = new_server(("max_connections=100",))
    try:
        results = load(server, tmp_path, 30.0, kill=False)
        assert [result["errors"] for result in results] == [{}] * 8
        assert [result["queued"] for result in results] == [0] * 8
        check(server.url(), results)
        print(sum(result["steps"] for result in results), "calls")
    finally:
        server.remove()


@pytest.mark.timeout(600)
def test_nothing_acknowledged_is_lost_when_postgresql_is_killed(tmp_path: Path) -> None:
    server = new_server(("max_connections=100",))
    try:
        results = load(server, tmp_path, 30.0, kill=True)
        assert [result["left"] for result in results] == [0] * 8
        assert {name for result in results for name in result["errors"]} <= TYPED
        check(server.url(), results)
        print([(result["steps"], result["queued"], result["errors"]) for result in results])
    finally:
        server.remove()


TYPED = {"ServerError", "TransportError", "DeadlineError", "UnavailableError", "NotFoundError"}
