"""A thousand recalls at once: bound by the service's latency, or by Python?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from kronmem import AsyncClient
from tests.benchmarks import peers
from tests.benchmarks.measure import Times, in_turn
from tests.benchmarks.stub import stub
from tests.benchmarks.wire import AGENT

Fan = Callable[[str, int, int], Awaitable["Cost"]]


@dataclass(frozen=True)
class Cost:
    """Seconds that a fan-out took, and seconds of this process's CPU in them."""

    wall: float
    cpu: float

    @classmethod
    async def of(cls, work: Awaitable[object]) -> Cost:
        """Measure something awaited."""
        began, used = time.perf_counter(), time.process_time()
        await work
        return cls(time.perf_counter() - began, time.process_time() - used)


async def ours(url: str, count: int, concurrency: int) -> Cost:
    """`recall_many` with that concurrency."""
    async with AsyncClient(url, api_key="kv-test", outbox=False, timeout=peers.PATIENT) as client:
        return await Cost.of(client.recall_many(AGENT, ["which database"] * count, concurrency=concurrency))


def with_semaphore(make: peers.Make) -> Fan:
    """What users of the others write: a gather behind a semaphore."""

    async def fan(url: str, count: int, concurrency: int) -> Cost:
        limit = asyncio.Semaphore(concurrency)
        async with AsyncExitStack() as stack:
            ask = make(url, stack)

            async def one() -> None:
                async with limit:
                    await ask()

            return await Cost.of(asyncio.gather(*(one() for _ in range(count))))

    return fan


def gather(make: peers.Make) -> Fan:
    """What users write first: a plain gather of plain calls."""

    async def fan(url: str, count: int, _: int) -> Cost:
        async with AsyncExitStack() as stack:
            ask = make(url, stack)
            return await Cost.of(asyncio.gather(*(ask() for _ in range(count))))

    return fan


def bounded(latency_ms: float, rounds: int, count: int, concurrency: int = 100) -> tuple[Times, Times]:
    """`count` recalls, at most `concurrency` at once: wall time, and CPU of this process."""
    fans = {name: with_semaphore(make) for name, make in peers.present().items()}
    return _measured({**fans, "kronmem": ours}, latency_ms, rounds, count, concurrency)


def gathered(latency_ms: float, rounds: int, count: int) -> Times:
    """`count` plain recalls under one `asyncio.gather`, for those whose users write it against Kronvex."""
    fans = {name: gather(make) for name, make in peers.present().items() if name in ("kronmem", "httpx", "kronvex")}
    return _measured(fans, latency_ms, rounds, count, count)[0]


def _measured(
    fans: dict[str, Fan], latency_ms: float, rounds: int, count: int, concurrency: int
) -> tuple[Times, Times]:
    cpu = Times()
    with stub(latency_ms) as url:

        def runner(name: str, fan: Fan) -> Callable[[], float]:
            def run() -> float:
                cost = asyncio.run(_await(fan(url, count, concurrency)))
                cpu.add(name, cost.cpu)
                return cost.wall

            return run

        return in_turn({name: runner(name, fan) for name, fan in fans.items()}, rounds), cpu


async def _await(work: Awaitable[Cost]) -> Cost:
    return await work


def ideal(latency_ms: float, count: int, concurrency: int = 100) -> float:
    """Seconds that the service's latency alone would take."""
    return latency_ms / 1000 * -(-count // concurrency)
