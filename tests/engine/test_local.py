from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from kronmem.core.wire import Reply, Request
from kronmem.engine.service import Service
from kronmem.errors import StoreError
from kronmem.transport.local import _AT_ONCE, LocalTransport, open_sqlite

REMEMBER = Request("POST", "/api/v1/agents/bot/remember", body=b'{"content": "tea at five"}')
RECALL = Request("POST", "/api/v1/agents/bot/recall", body=b'{"query": "tea"}')


def contents(reply: Reply) -> list[str]:
    return [result["memory"]["content"] for result in json.loads(reply.body)["results"]]


@contextmanager
def transport(path: str = ":memory:") -> Iterator[LocalTransport]:
    local = open_sqlite(path)
    yield local
    local.close()


def test_a_request_is_answered_in_process() -> None:
    with transport() as local:
        assert local.send(REMEMBER).status == 201
        assert contents(local.send(RECALL)) == ["tea at five"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_request_is_answered_from_one_loop_after_another(backend: str) -> None:
    async def ask() -> list[str]:
        await local.asend(REMEMBER)
        return contents(await local.asend(RECALL))

    with transport() as local:
        assert [anyio.run(ask, backend=backend) for _ in range(2)] == [["tea at five"]] * 2


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_many_requests_at_once_are_all_answered(backend: str, tmp_path: Path) -> None:
    async def ask_often() -> int:
        async with anyio.create_task_group() as group:
            for n in range(40):
                body = json.dumps({"content": f"tea {n}"}).encode()
                group.start_soon(local.asend, Request("POST", "/api/v1/agents/bot/remember", body=body))
        reply = await local.asend(Request("GET", "/api/v1/agents/bot/memories"))
        await local.aclose()
        return int(json.loads(reply.body)["total"])

    local = open_sqlite(str(tmp_path / "memory.db"))
    assert anyio.run(ask_often, backend=backend) == 40


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_only_so_many_requests_run_at_once(backend: str) -> None:
    running, most, lock = 0, 0, threading.Lock()
    full = threading.Barrier(_AT_ONCE)

    class Counting(Service):
        def handle(self, request: Request, owner: str = "") -> Reply:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            full.wait(30)  # as many as may run are running now
            with lock:
                running -= 1
            return Reply(200)

    async def ask_often() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(3 * _AT_ONCE):
                group.start_soon(local.asend, RECALL)

    local = LocalTransport(lambda: Counting(None))  # type: ignore[arg-type]  # it never asks its engine
    anyio.run(ask_often, backend=backend)
    assert most == _AT_ONCE


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_cancelled_request_does_not_hold_the_caller(backend: str) -> None:
    started, let_go = threading.Event(), threading.Event()

    class Stuck(Service):
        def handle(self, request: Request, owner: str = "") -> Reply:
            started.set()
            let_go.wait(30)
            return Reply(200)

    async def give_up() -> bool:
        with anyio.move_on_after(10) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(local.asend, RECALL)
                while not started.is_set():
                    await anyio.sleep(0)
                group.cancel_scope.cancel()
        return scope.cancelled_caught

    local = LocalTransport(lambda: Stuck(None))  # type: ignore[arg-type]  # it never asks its engine
    assert anyio.run(give_up, backend=backend) is False
    let_go.set()


def test_nothing_is_opened_before_the_first_request(tmp_path: Path) -> None:
    with transport(str(tmp_path / "home" / "memory.db")):
        assert not (tmp_path / "home").exists()


def test_an_unusable_database_is_raised_not_answered(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_text("not a database" * 100)
    with transport(str(tmp_path / "memory.db")) as local:
        with pytest.raises(StoreError, match=r"memory\.db"):
            local.send(RECALL)
        with pytest.raises(StoreError, match=r"memory\.db"):
            anyio.run(local.asend, RECALL)


def test_closing_twice_or_unopened_is_fine() -> None:
    open_sqlite(":memory:").close()
    local = open_sqlite(":memory:")
    local.send(RECALL)
    local.close()
    local.close()


def test_importing_the_transport_loads_no_engine() -> None:
    code = "import sys, kronmem.transport.local; print([m for m in sys.modules if m in ('sqlite3', 'kronmem.engine.engine')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
