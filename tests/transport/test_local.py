"""The embedded engine awaited: its places are bounded, waiting for one counts, and a cancelled close closes."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from kronmem import AsyncClient, Client, DeadlineError, TransportError
from kronmem.core.wire import Reply, Request
from kronmem.transport import local
from kronmem.transport.local import LocalTransport
from tests.outbox.services import NOBODY, until

WAITED = 0.05
linux = pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted in /proc")


class Blocked:
    """A service that holds every request until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.timeouts: list[float] = []

    def handle(self, request: Request) -> Reply:
        self.timeouts.append(request.timeout)
        self.go.wait(60)
        return Reply(200, b"{}")

    def close(self) -> None:
        self.go.set()


@pytest.fixture(params=["asyncio", pytest.param("trio", marks=pytest.mark.slow)])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_waiting_for_a_place_counts_against_the_deadline(backend: str) -> None:
    blocked = Blocked()

    async def main() -> None:
        transport = LocalTransport(lambda: blocked)  # type: ignore[arg-type, return-value] # as much of a Service as is used
        async with anyio.create_task_group() as group:
            for _ in range(local._AT_ONCE):
                group.start_soon(transport.asend, Request("GET", "/", timeout=60.0))
            while len(blocked.timeouts) < local._AT_ONCE:
                await anyio.sleep(0.001)
            try:
                with anyio.fail_after(30), pytest.raises(DeadlineError) as caught:
                    await transport.asend(Request("GET", "/", timeout=WAITED))
                assert not caught.value.sent
                group.start_soon(transport.asend, Request("GET", "/", timeout=60.0))
                began = time.monotonic()
                while time.monotonic() < began + WAITED:
                    await anyio.sleep(WAITED)
            finally:
                blocked.go.set()

    anyio.run(main, backend=backend)
    *_, last = blocked.timeouts
    assert len(blocked.timeouts) == local._AT_ONCE + 1
    assert last <= 60.0 - WAITED


class Promised:
    """A limiter whose free place is already meant for somebody who waits, as anyio's is for a moment."""

    available_tokens = 1

    def __init__(self) -> None:
        self.borrowers: list[object] = []

    def acquire_on_behalf_of_nowait(self, borrower: object) -> None:
        raise anyio.WouldBlock

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        self.borrowers.append(borrower)


def test_a_place_that_is_promised_to_another_call_is_waited_for(backend: str) -> None:
    limiter, borrower = Promised(), object()
    anyio.run(local._take_place, limiter, borrower, 60.0, backend=backend)
    assert limiter.borrowers == [borrower]


def test_threads_of_other_code_hold_up_no_call(backend: str, tmp_path: Path) -> None:
    go = threading.Event()

    async def main() -> None:
        client = AsyncClient(NOBODY, outbox=tmp_path / "o.db")
        taken = to_thread.current_default_thread_limiter()
        async with anyio.create_task_group() as group:
            for _ in range(int(taken.total_tokens)):
                group.start_soon(to_thread.run_sync, go.wait)
            while taken.available_tokens:
                await anyio.sleep(0.001)
            try:
                with anyio.fail_after(30):
                    await client.remember_later("a", "hello there")
                    assert await client.outbox.pending() == 1
                    assert (await client.health()).pending == 1
                    await client.close()
            finally:
                go.set()

    anyio.run(main, backend=backend)


def descriptors(of: Path) -> list[str]:
    """The descriptors of this process under a directory."""
    links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    targets = (os.readlink(link) for link in links if os.path.lexists(link))
    return [target for target in targets if target.startswith(f"{of}/")]


async def cancelled(client: AsyncClient, call: Any) -> None:
    """Use a client in a scope that is cancelled before it is closed."""
    with anyio.CancelScope() as scope:
        async with client:
            await call()
            scope.cancel()
            await anyio.sleep(60)


@linux
def test_a_client_that_is_closed_in_a_cancelled_scope_closes_its_files(backend: str, tmp_path: Path) -> None:
    client = AsyncClient.local(tmp_path / "memory.db")

    async def use() -> None:
        await client.remember("a", "hello there")
        assert descriptors(tmp_path)

    anyio.run(cancelled, client, use, backend=backend)
    until(lambda: not descriptors(tmp_path))
    assert client.closed


class Interrupted:
    """A transport that holds up the outbox's own thread, and in which Control-C is pressed in the main one."""

    def __init__(self) -> None:
        self.main, self.held, self.go = threading.get_ident(), threading.Event(), threading.Event()

    def send(self, request: Request) -> Reply:
        if threading.get_ident() == self.main:
            raise KeyboardInterrupt
        self.held.set()
        self.go.wait(60)
        raise TransportError("cannot connect", sent=False)

    def close(self) -> None:
        pass


@linux
@pytest.mark.slow
def test_a_client_that_is_interrupted_while_it_closes_leaves_its_outbox(tmp_path: Path) -> None:
    transport = Interrupted()
    client = Client(NOBODY, outbox=tmp_path / "o.db", transport=transport, timeout=2.0)
    client.remember_later("one", "hello there")
    assert transport.held.wait(60)
    client.remember_later("two", "hello there")
    with pytest.raises(KeyboardInterrupt):
        client.close()
    transport.go.set()
    until(lambda: not descriptors(tmp_path))


@linux
def test_a_client_that_is_closed_in_a_cancelled_scope_leaves_its_outbox(backend: str, tmp_path: Path) -> None:
    client = AsyncClient(NOBODY, outbox=tmp_path / "o.db")

    async def use() -> None:
        await client.remember_later("a", "hello there")
        assert descriptors(tmp_path)

    anyio.run(cancelled, client, use, backend=backend)
    until(lambda: not descriptors(tmp_path))
