"""Two drivers of a flow, one blocking and one awaiting, that differ by an `await`; and the same for many at once.

Beside them the worker threads of awaiting callers, and the warning that a blocking call blocks an event loop.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from typing import Protocol, TypeVar, runtime_checkable

import anyio
from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from kronmem import tracing
from kronmem.core.exchange import Flow, Local, Pause, Step
from kronmem.core.wire import Reply, Request
from kronmem.errors import KronmemError

T = TypeVar("T")
K = TypeVar("K")

log = logging.getLogger("kronmem")

CLOSED = "this client is closed: make a new one, or make its calls before close() and inside its `with` block"


@runtime_checkable
class Transport(Protocol):
    """The only I/O, blocking."""

    def send(self, request: Request) -> Reply:
        """Send once, within `request.timeout`; raise `TransportError` when nothing usable came back."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


@runtime_checkable
class AsyncTransport(Protocol):
    """The only I/O, awaiting."""

    async def asend(self, request: Request) -> Reply:
        """Send once, within `request.timeout`; raise `TransportError` when nothing usable came back."""
        ...

    async def aclose(self) -> None:
        """Release files and connections."""
        ...


def drive(flow: Flow[T], transport: Transport) -> T:
    """Carry a flow to its end, blocking."""
    try:
        step = next(flow)
        while True:
            try:
                step = tracing.observed(step)
                reply = transport.send(step) if isinstance(step, Request) else _rest(step)
            except BaseException as error:  # noqa: BLE001 -- the flow decides what to do, cancellation included
                step = flow.throw(error)
            else:
                _note(step, reply)
                step = flow.send(reply)
    except StopIteration as stop:
        answer: T = stop.value
        return answer


async def adrive(flow: Flow[T], transport: AsyncTransport) -> T:
    """Carry a flow to its end, awaiting."""
    try:
        step = next(flow)
        while True:
            try:
                step = tracing.observed(step)
                reply = await transport.asend(step) if isinstance(step, Request) else await _arest(step)
            except BaseException as error:  # noqa: BLE001 -- the flow decides what to do, cancellation included
                step = flow.throw(error)
            else:
                _note(step, reply)
                step = flow.send(reply)
    except StopIteration as stop:
        answer: T = stop.value
        return answer


def fan_out(
    flows: Mapping[K, Flow[T]], transport: Transport, concurrency: int
) -> tuple[dict[K, T], dict[K, KronmemError]]:
    """Carry many flows, at most `concurrency` at a time: results and failures, in the order asked."""
    done: dict[K, T] = {}
    failed: dict[K, KronmemError] = {}
    with ThreadPoolExecutor(min(concurrency, len(flows)) or 1, "kronmem-fan-out") as pool:
        futures = {key: pool.submit(drive, flow, transport) for key, flow in flows.items()}
        try:
            for key, future in futures.items():
                try:
                    done[key] = future.result()
                except KronmemError as error:
                    failed[key] = error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return done, failed


async def afan_out(
    flows: Mapping[K, Flow[T]], transport: AsyncTransport, concurrency: int
) -> tuple[dict[K, T], dict[K, KronmemError]]:
    """Carry many flows, at most `concurrency` at a time: results and failures, in the order asked."""
    done: dict[K, T] = {}
    failed: dict[K, KronmemError] = {}
    waiting = iter(flows.items())

    async def work() -> None:
        for key, flow in waiting:
            try:
                done[key] = await adrive(flow, transport)
            except KronmemError as error:
                failed[key] = error

    async with anyio.create_task_group() as group:
        for _ in range(min(concurrency, len(flows))):
            group.start_soon(work)
    return _ordered(flows, done), _ordered(flows, failed)


def close_all(*transports: Transport) -> None:
    """Close each of them, also when another one fails."""
    with ExitStack() as stack:
        for transport in transports:
            stack.callback(transport.close)


async def aclose_all(timeout: float, *transports: AsyncTransport) -> None:
    """Close each of them, also when another one fails; in a cancelled scope too, for at most `timeout` seconds."""
    with anyio.move_on_after(timeout, shield=True):
        async with AsyncExitStack() as stack:
            for transport in transports:
                stack.push_async_callback(transport.aclose)


def _ordered(asked: Mapping[K, object], results: dict[K, T]) -> dict[K, T]:
    return {key: results[key] for key in asked if key in results}


# What needs no service is answered too, so that a flow is always resumed with a `Reply`.
def _rest(step: Pause | Local) -> Reply:
    time.sleep(step.seconds) if isinstance(step, Pause) else step.work()
    return Reply(0)


async def _arest(step: Pause | Local) -> Reply:
    if isinstance(step, Pause):
        await anyio.sleep(step.seconds)
    else:
        await aside(step.work)  # a locked file holds no cancellation
    return Reply(0)


def _note(step: Step, reply: Reply) -> None:
    if isinstance(step, Request) and log.isEnabledFor(logging.DEBUG):
        log.debug("%s %s: %d", step.method, step.path, reply.status)


# Worker threads for the blocking work of awaiting callers, in places of kronmem's own.
#
# anyio's places are shared by all code of a process: a call would wait there past its deadline for other code's work.

AT_ONCE = 40
"""Pieces of work on files at a time, as many as anyio's default; each of them ends by its call's deadline."""


class Places:
    """At most so many threads at a time for each event loop: a limiter belongs to one loop."""

    def __init__(self, name: str, most: int) -> None:
        self._limiters: RunVar[CapacityLimiter | None] = RunVar(name)
        self._most = most

    @property
    def limiter(self) -> CapacityLimiter:
        """The limiter of the running event loop."""
        if (limiter := self._limiters.get(None)) is None:
            limiter = CapacityLimiter(self._most)
            self._limiters.set(limiter)
        return limiter


_places = Places("kronmem_files", AT_ONCE)


async def aside(work: Callable[[], T]) -> T:
    """Do it in a thread, which a cancelled caller does not wait for."""
    return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=_places.limiter)


async def leave(close: Callable[[float], None], timeout: float) -> None:
    """Close an outbox in a thread: one that has begun goes on by itself; where none may begin, nothing is delivered."""
    begun: list[bool] = []

    def begin() -> None:
        begun.append(True)
        close(timeout)

    try:
        await aside(begin)
    finally:
        if not begun:
            with anyio.move_on_after(timeout, shield=True):
                await aside(lambda: close(0.0))


# The warning that a blocking call blocks an event loop.


class LoopGuard:
    """Logs once in a process that a blocking call blocks the event loop of its thread."""

    def __init__(self) -> None:
        self.warned = False

    def check(self, name: str) -> None:
        """Look whether an event loop runs in this thread; `remember_later` never waits for a service."""
        if self.warned or name == "remember_later":
            return
        # Without the module there is no loop; while another thread imports it, it may lack the function.
        running_loop = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)
        if running_loop is None or running_loop() is None:
            return
        self.warned = True
        log.warning(
            "a call of Client blocks the event loop that runs in this thread: in `async def` use AsyncClient and "
            "await it, or anyio.to_thread.run_sync(…); in a notebook this is harmless"
        )


loop_guard = LoopGuard()
