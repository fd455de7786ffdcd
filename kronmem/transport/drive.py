"""Two drivers of a flow, one blocking and one awaiting, that differ by an `await`; and the same for many at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from typing import Protocol, TypeVar, runtime_checkable

import anyio

from kronmem import tracing
from kronmem.core.exchange import Flow, Local, Pause, Step
from kronmem.core.wire import Reply, Request
from kronmem.errors import KronmemError
from kronmem.transport.worker_threads import aside

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


def _ordered(asked: Mapping[K, object], found: dict[K, T]) -> dict[K, T]:
    return {key: found[key] for key in asked if key in found}


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
