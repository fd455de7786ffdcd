"""What becomes of one memory when things go wrong: `python -m tests.benchmarks.faults`, kronmem and its peers in one run.

Each library stores one text through the same faulty loopback service, with the same deadline, in a process of its own.
Then the service is well again and a new process of the same library is given its chance. Printed: what the service
holds in the end, and for how long the caller was held, as a share of the deadline it had asked for.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.services.kronmem import free_port
from tests.services.proxies import reached
from tests.services.raw import Action, RawServer, drip, gzip_bomb, hang, head, reset, respond

ROOT = Path(__file__).parent.parent.parent
DEADLINE = 3.0
KILLED = 20

CHILDREN = {
    "kronmem": """
from kronmem import Client
client = Client(url, api_key="kv-key-for-tests", outbox=home + "/outbox.db", timeout=deadline)
def store(text): client.remember("alice", text)
def queue(text): client.remember_later("alice", text)
def ask(question): return client.recall("alice", question)
def mend(): client.outbox.flush(20)
""",
    "kronvex": """
from kronvex import Kronvex
agent = Kronvex("kv-key-for-tests", base_url=url, timeout=deadline).agent("00000000-0000-0000-0000-000000000001")
def store(text): agent.remember(text)
def ask(question): return agent.recall(question)
queue = store
def mend(): pass
""",
    "mem0ai": """
import httpx
from mem0 import MemoryClient
client = MemoryClient("m0-key-for-tests", host=url, client=httpx.Client(timeout=deadline))
def store(text): client.add(text, user_id="alice")
def ask(question): return client.search(question, filters={"user_id": "alice"})
queue = store
def mend(): pass
""",
}
HARNESS = """
import json, os, resource, signal, sys, time
url, home, what, deadline = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
try:
    exec(sys.stdin.read())
except Exception as error:
    print(json.dumps({"said": type(error).__name__, "seconds": 0.0, "megabytes": 0.0})); raise SystemExit
if what == "mend":
    mend(); raise SystemExit
if what == "ask":
    print(json.dumps([str(ask("my first question")), str(ask("my second question"))])); os._exit(0)
if what == "kill":
    for number in range(KILLED):
        try: queue(f"killed {number}")
        except Exception: pass
    os.kill(os.getpid(), signal.SIGKILL)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.monotonic()
try:
    store("the memory"); said = "ok"
except Exception as error:
    said = type(error).__name__
seconds = time.monotonic() - began
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024
print(json.dumps({"said": said, "seconds": seconds, "megabytes": grown}), flush=True)
os._exit(0)
""".replace("KILLED", str(KILLED))


GREETING = {"status": "ok", "org_id": "o", "project_id": "p", "user_email": "a@b.example"}


class Service(RawServer):
    """Takes memories in any of the contracts; its first answers to writes are the faults."""

    def __init__(self, faults: list[Callable[[Service], Action]]) -> None:
        super().__init__(lambda _connection, _request: self.answer)
        self.faults = list(faults)
        self.rows: dict[str, str] = {}

    def answer(self, server: RawServer, connection: Any, request: Any) -> None:
        if request.method != "POST" or not isinstance(request.body, dict):
            return respond(200, body=GREETING)(server, connection, request)
        action = self.faults.pop(0)(self) if self.faults else self.take
        return action(server, connection, request)

    def take(self, server: RawServer, connection: Any, request: Any) -> None:
        self.commit(request)
        respond(201, body={"id": "m1", "content": "x", "results": []})(server, connection, request)

    def commit(self, request: Any) -> None:
        """One row an id where one is sent, as our service does; else one row a request."""
        body = request.body
        text = body.get("content") or body["messages"][0]["content"]
        self.rows[request.headers.get("idempotency-key") or f"row {len(self.rows)}"] = text


def commit_and_reset(service: Service) -> Action:
    def act(_server: RawServer, connection: Any, request: Any) -> None:
        service.commit(request)
        connection.reset()

    return act


def said(status: int, **headers: str) -> Callable[[Service], Action]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _service: respond(status, named, {"detail": "no"})


SCENARIOS: dict[str, list[Callable[[Service], Action]]] = {
    "503, 503, then 200": [said(503), said(503)],
    "500, then 200": [said(500)],
    "429 for a second": [said(429, retry_after="1")],
    "reset before commit": [lambda _service: reset()],
    "reset after commit": [commit_and_reset],
    "never answers": [lambda _service: hang()],
    "a byte every 0.4 s": [lambda _service: drip(head(200, {"content-length": "20"}) + b" " * 20, interval=0.4)],
    "300 MB in 0.3 MB": [lambda _service: gzip_bomb(300)],
}


STRAY_WAYS = {
    "plain": "",
    "tls": ", through TLS",
    "proxy": ", through a proxy",
    "connect": ", through CONNECT and TLS",
}


def child(library: str, url: str, home: str, what: str) -> Any:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": home, "KRONMEM_HOME": home, "MEM0_TELEMETRY": "False"}
    command = [sys.executable, "-c", HARNESS, url, home, what, str(DEADLINE)]
    ran = subprocess.run(command, input=CHILDREN[library], capture_output=True, text=True, env=environment)
    lines = ran.stdout.strip().splitlines()
    return json.loads(lines[-1]) if lines else {}


def outcome(rows: list[str]) -> str:
    return "lost" if not rows else "stored" if len(rows) == 1 else f"stored {len(rows)} times"


def play(library: str, faults: list[Callable[[Service], Action]]) -> str:
    with tempfile.TemporaryDirectory() as home, Service(faults) as service:
        result = child(library, service.url, home, "store")
        child(library, service.url, home, "mend")
        held = result["seconds"] / DEADLINE
        memory = f", +{result['megabytes']:.0f} MB" if result["megabytes"] > 50 else ""
        return f"{outcome(list(service.rows.values()))}, held {held:.2f}{memory}"


def play_kill(library: str) -> str:
    """Twenty memories while the service is down, then SIGKILL; then the service comes up."""
    port = free_port()
    with tempfile.TemporaryDirectory() as home:
        child(library, f"http://127.0.0.1:{port}", home, "kill")
        with Service([]) as service:
            if library == "kronmem":
                moved(Path(home) / "outbox.db", service.url)
            child(library, service.url, home, "mend")
            arrived = len(set(service.rows.values()))
            return f"{KILLED - arrived} of {KILLED} lost, {len(service.rows) - arrived} twice"


def play_stray(library: str, way: str) -> str:
    """The service sends a second reply after its first one: is it taken for the answer to the next question?"""
    authority = trustme.CA()

    def answer(server: RawServer, connection: Any, request: Any) -> None:
        if request.method != "POST" or "query" not in (request.body or {}):
            respond(200, body=GREETING)(server, connection, request)
        else:
            connection.write(_found("mine") + _found("of somebody else"))

    service = RawServer(lambda _connection, _request: answer)
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as environment:
        authority.cert_pem.write_to_path(f"{home}/authority.pem")
        environment.setenv("SSL_CERT_FILE", f"{home}/authority.pem")
        with reached(way, service, authority, environment) as (url, _):
            answers = child(library, url, home, "ask")
    if not isinstance(answers, list):
        return "no answer"
    return "the next answer is " + ("somebody else's" if "of somebody else" in answers[1] else "its own")


def _found(content: str) -> bytes:
    memory = {"id": "m1", "content": content, "memory_type": "fact", "created_at": "2026-01-01T00:00:00Z"}
    body = json.dumps({"results": [{"memory": memory, "similarity": 0.9}], "total_found": 1}).encode()
    return head(200, {"content-type": "application/json", "content-length": str(len(body))}) + body


def moved(path: Path, url: str) -> None:
    """The stub cannot listen on a port of its choice: let the rows wait for where it is."""
    import sqlite3

    with sqlite3.connect(path) as db:
        db.execute("UPDATE waiting SET service = ?", (url,))
    db.close()


def main() -> None:
    """Print the table."""
    libraries = [name for name in CHILDREN if importlib.util.find_spec({"mem0ai": "mem0"}.get(name, name))]
    print("held: seconds the caller was held ÷ the deadline of", DEADLINE, "s it had asked for\n")
    print("| fault |", " | ".join(f"{name} {importlib.metadata.version(name)}" for name in libraries), "|")
    print("|---" * (len(libraries) + 1) + "|")
    for name, faults in SCENARIOS.items():
        print(f"| {name} |", " | ".join(play(library, faults) for library in libraries), "|", flush=True)
    for way, words in STRAY_WAYS.items():
        played = " | ".join(play_stray(library, way) for library in libraries)
        print(f"| two replies to one question{words} | {played} |", flush=True)
    print("| service down, then kill -9 |", " | ".join(play_kill(library) for library in libraries), "|")


if __name__ == "__main__":
    main()
