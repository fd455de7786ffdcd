"""Promises to users that no other test holds: a loop that is never blocked, no telemetry, no agent by default."""

from __future__ import annotations

import inspect
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import kronmem
from kronmem import AsyncClient, Client
from tests.outbox.services import keeping
from tests.services import RawServer

TURNS = 100
"""Of another task, while a call waits: a call that blocked the loop would leave none of them."""


async def watched(call: Awaitable[object], release: Callable[[], object]) -> None:
    """Await a call that cannot end before another task had its turns on the same loop."""

    async def watchdog() -> None:
        for _ in range(TURNS):
            await anyio.lowlevel.checkpoint()
        release()

    async with anyio.create_task_group() as group:
        group.start_soon(watchdog)
        await call


CALLS: dict[str, Callable[[AsyncClient, str], Awaitable[object]]] = {
    "remember": lambda c, _: c.remember("ada", "tea"),
    "remember_many": lambda c, _: c.remember_many("ada", ["tea", "milk"]),
    "remember_later": lambda c, _: c.remember_later("ada", "sugar"),
    "update": lambda c, own: c.update("ada", own, pinned=True),
    "forget": lambda c, own: c.forget("ada", own),
    "clear": lambda c, _: c.clear("ada"),
    "state": lambda c, _: c.state("ada").set("k", 1),
}


def held(path: Path) -> sqlite3.Connection:
    """A lock on a database, until it is rolled back."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    return other


@pytest.mark.parametrize("backend", ["asyncio", pytest.param("trio", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CALLS)
def test_an_embedded_call_that_waits_for_a_lock_leaves_the_loop_to_others(
    name: str, backend: str, tmp_path: Path
) -> None:
    async def main() -> None:
        async with AsyncClient(tmp_path / "memory.db", timeout=60) as client:
            own = (await client.remember("ada", "coffee")).id
            other = held(tmp_path / "memory.db")
            await watched(CALLS[name](client, own), other.rollback)
            other.close()

    anyio.run(main, backend=backend)


@pytest.mark.parametrize("backend", ["asyncio", pytest.param("trio", marks=pytest.mark.slow)])
def test_an_outbox_that_waits_for_a_lock_leaves_the_loop_to_others(backend: str, tmp_path: Path) -> None:
    async def main(url: str) -> None:
        async with AsyncClient(url, outbox=tmp_path / "o.db", timeout=60) as client:
            await client.remember_later("ada", "coffee")
            assert await client.outbox.flush(30) == 0
            other = held(tmp_path / "o.db")
            await watched(client.remember_later("ada", "tea"), other.rollback)
            other.close()
            assert await client.outbox.flush(30) == 0

    with RawServer([keeping]) as server:
        anyio.run(main, server.url, backend=backend)


@pytest.mark.parametrize("backend", ["asyncio", pytest.param("trio", marks=pytest.mark.slow)])
def test_a_call_that_waits_for_its_service_leaves_the_loop_to_others(backend: str) -> None:
    released = threading.Event()

    def answer(server: RawServer, connection: Any, request: Any) -> None:
        assert released.wait(60)
        keeping(server, connection, request)

    async def main(url: str) -> None:
        async with AsyncClient(url, outbox=False, timeout=60) as client:
            await watched(client.recall("ada", "tea"), released.set)

    with RawServer([answer]) as server:
        anyio.run(main, server.url, backend=backend)


TOUCHED = """
import sys, threading
touched = []
watched = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "subprocess.Popen")
sys.addaudithook(lambda event, args: touched.append((event, args[-1])) if event in watched else None)
from kronmem import Client, memory_tools
def used(client):
    with client:
        client.remember("ada", "tea at five")
        client.recall("ada", "tea")
        client.inject_context("ada", "tea")
        client.health()
        memory_tools(client.agent("ada")).recall("tea")
used(Client.local("memory.db"))
assert touched == [], touched
used(Client(sys.argv[1]))
port = int(sys.argv[1].rpartition(":")[2])
assert {address[1] for event, address in touched if event == "socket.connect"} == {port}, touched
others = {one.name for one in threading.enumerate() if one is not threading.main_thread()}
assert others <= {"kronmem-worker"}, others  # of the tools: idle, a daemon, gone after half a minute
"""


@pytest.mark.slow
def test_nobody_is_told_anything_but_the_service_that_was_named(tmp_path: Path) -> None:
    with RawServer([keeping]) as server:
        code = [sys.executable, "-c", TOUCHED, server.url]
        environment = {"HOME": str(tmp_path), "PYTHONPATH": str(Path(kronmem.__file__).parent.parent)}
        ran = subprocess.run(code, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("shell", [Client, AsyncClient])
def test_no_method_takes_an_agent_by_default(shell: Any) -> None:
    methods = inspect.getmembers(shell, inspect.isfunction)
    public = [inspect.signature(method) for name, method in methods if not name.startswith("_")]
    agents = [found.parameters["agent_id"] for found in public if "agent_id" in found.parameters]
    assert agents
    assert [one for one in agents if one.default is not inspect.Parameter.empty] == []


HALF_IMPORTED = """
import sys, threading
from kronmem import Client

def hold(frame, event, argument):
    if frame.f_code.co_filename.endswith("base_events.py") and frame.f_code.co_name == "<module>":
        reached.set()
        go_on.wait(60)

assert "asyncio" not in sys.modules
reached, go_on = threading.Event(), threading.Event()
threading.setprofile(hold)
other = threading.Thread(target=__import__, args=("asyncio",), daemon=True)
other.start()
threading.setprofile(None)
assert reached.wait(60)
with Client("sqlite:///" + sys.argv[1]) as client:
    client.remember("ada", "tea")
    print(*[hit.memory.content for hit in client.recall("ada", "tea")])
go_on.set()
other.join()
"""


def test_a_blocking_call_works_while_another_thread_imports_asyncio(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HALF_IMPORTED, str(tmp_path / "memory.db")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (ran.returncode, ran.stdout) == (0, "tea\n"), ran.stderr
