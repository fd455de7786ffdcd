"""How long `remember_later` holds its caller, beside `remember` over HTTP: `python -m tests.benchmarks.remember_later`."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from kronmem import Client
from tests.services.raw import RawServer, respond

LATENCY = 0.02


def answer(server: RawServer, connection: Any, request: Any) -> None:
    """Store a memory as slowly as a real service."""
    threading.Event().wait(LATENCY)
    respond(201, body={"id": request.headers["idempotency-key"], "content": "x"})(server, connection, request)


def serve() -> None:
    """The service, in a process of its own, until its standard input ends."""
    with RawServer([answer]) as server:
        print(server.url, flush=True)
        sys.stdin.read()


def main(rounds: int = 200) -> None:
    """Print the ratio of the medians, both measured in turn in one run."""
    command = [sys.executable, "-m", "tests.benchmarks.remember_later", "--serve"]
    now, later = [], []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as home, Client(url, outbox=Path(home) / "outbox.db") as client:
            for number in range(rounds):
                began = time.perf_counter()
                client.remember("direct", f"direct {number}")
                now.append(time.perf_counter() - began)
                began = time.perf_counter()
                client.remember_later("queued", f"queued {number}")
                later.append(time.perf_counter() - began)
            client.outbox.flush(60.0)
        process.stdin.close()
    ratio = statistics.median(later) / statistics.median(now)
    print(f"service latency {LATENCY * 1000:.0f} ms, {rounds} rounds: p50 remember_later ÷ p50 remember = {ratio:.3f}")
    print(f"(p50 {statistics.median(later) * 1000:.2f} ms on disk, {statistics.median(now) * 1000:.2f} ms over HTTP)")


if __name__ == "__main__":
    serve() if "--serve" in sys.argv else main()
