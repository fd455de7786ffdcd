"""CPU of `kronmem serve` for a request, beside a bare Starlette app that hands the same body to the same engine."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kronmem import Client
from tests.benchmarks.measure import Times, turned
from tests.services.kronmem import ServedKronmem, free_port

AGENT = "bench"
KEY = "kv-bench"
MEMORIES = 1_000
PEER = "bare Starlette"
CONNECTIONS = (1, 10, 100)
BARE = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route
from kronmem.core.wire import Request
from kronmem.transport.local import sqlite_service

service = sqlite_service(sys.argv[2])

async def answer(web):
    request = Request("POST", web.url.path, (), await web.body(), (), 10.0)
    reply = await run_in_threadpool(service.handle, request)
    return Response(reply.body, reply.status, media_type="application/json")

app = Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_config=None, access_log=False, http="h11")
"""
BODIES: dict[str, Callable[[int], dict[str, object]]] = {
    "recall": lambda number: {"query": f"which database listens on port {number % 50}", "top_k": 5, "threshold": 0.0},
    "remember": lambda number: {"content": f"Server {number} of {time.monotonic_ns()} answers on port {number}"},
}

WRK = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["X-API-Key"] = "%s"
local number = 0
function request()
  number = number + 1
  return wrk.format(nil, nil, nil, %s)
end
"""
WRK_BODIES = {
    "recall": """string.format('{"query": "which database listens on port %d", "top_k": 5, "threshold": 0}', number % 50)""",
    "remember": """string.format('{"content": "Server %d of NOW answers on port %d"}', number, number)""",
}


@dataclass(frozen=True)
class Server:
    """A server process under load."""

    port: int
    pid: int

    def cpu(self) -> float:
        """Seconds of CPU, user and system, that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(rounds: int, count: int) -> tuple[dict[str, Times], dict[str, Times]]:
    """CPU a request by route and connections, and requests per second of wall time, ours beside the bare app."""
    cpu: dict[str, Times] = {}
    rates: dict[str, Times] = {}
    with ExitStack() as stack:
        servers = {"kronmem": stack.enter_context(_ours()), PEER: stack.enter_context(_bare())}
        for route, connections in [(route, number) for route in BODIES for number in CONNECTIONS]:
            name = f"{route}, {connections} connection{'s' * (connections > 1)}"
            for at in range(rounds):
                for who in turned(list(servers), at):
                    used, rate = _load(servers[who], route, connections, count)
                    cpu.setdefault(name, Times()).add(who, used)
                    rates.setdefault(name, Times()).add(who, rate)
    return cpu, rates


def _load(server: Server, route: str, connections: int, count: int) -> tuple[float, float]:
    """CPU of the server for one request, and requests a second."""
    asyncio.run(_requests(server.port, route, connections, max(connections, count // 10)))  # connections and caches
    used, began = server.cpu(), time.perf_counter()
    if shutil.which("wrk"):
        count = _wrk(server.port, route, connections, max(1, count // 500))
    else:
        asyncio.run(_requests(server.port, route, connections, count))
    took = time.perf_counter() - began
    return (server.cpu() - used) / count, count / took


def _wrk(port: int, route: str, connections: int, seconds: int) -> int:
    """Have wrk ask for so long; the answer is how many requests were answered."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(WRK % (KEY, WRK_BODIES[route].replace("NOW", str(time.monotonic_ns()))))
        script.flush()
        url = f"http://127.0.0.1:{port}/api/v1/agents/{AGENT}/{route}"
        command = ["wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s", "--timeout", "60s"]
        told = subprocess.run([*command, "-s", script.name, url], capture_output=True, text=True, check=True).stdout
    answered = re.search(r"(\d+) requests in", told)
    assert answered, told
    assert "Non-2xx" not in told, told
    assert "Socket errors" not in told, told
    return int(answered[1])


async def _requests(port: int, route: str, connections: int, count: int) -> None:
    numbers = iter(range(count))

    async def one_connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            body = json.dumps(BODIES[route](number)).encode()
            head = f"POST /api/v1/agents/{AGENT}/{route} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {KEY}\r\n"
            writer.write(f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
            reply = await reader.readuntil(b"\r\n\r\n")
            status, _, headers = reply.partition(b"\r\n")
            assert status.split()[1] in (b"200", b"201"), reply
            length = next(line for line in headers.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(one_connection() for _ in range(connections)))


@contextmanager
def _ours() -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as home:
        _fill(Path(home) / "memory.db")
        with ServedKronmem(Path(home) / "memory.db", key=KEY) as served:
            yield Server(served.port, served.pid)


@contextmanager
def _bare() -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as home:
        _fill(path := Path(home) / "memory.db")
        port = free_port()
        with subprocess.Popen([sys.executable, "-c", BARE, str(port), str(path)]) as process:
            try:
                _wait(port)
                yield Server(port, process.pid)
            finally:
                process.kill()


def _fill(path: Path) -> None:
    with Client.local(path) as client:
        texts = [f"The database of service {at} listens on port {at % 50}" for at in range(MEMORIES)]
        client.remember_many(AGENT, texts)


def _wait(port: int) -> None:
    for _ in range(1000):
        try:
            return asyncio.run(_requests(port, "recall", 1, 1))
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("the bare app does not answer")
