"""A thousand recalls at once: bound by the service's latency, or by Python?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from kronmem import AsyncClient
from tests.benchmarks import peers
from tests.benchmarks.measure import Times, in_turn
from tests.benchmarks.stub import stub
from tests.benchmarks.wire import AGENT

Fan = Callable[[str, int, int], Awaitable[float]]


async def ours(url: str, count: int, concurrency: int) -> float:
    """`recall_many` with that concurrency."""
    async with AsyncClient(url, api_key="kv-test", outbox=False, timeout=peers.PATIENT) as client:
        began = time.perf_counter()
        await client.recall_many(AGENT, ["which database"] * count, concurrency=concurrency)
        return time.perf_counter() - began


def with_semaphore(make: peers.Make) -> Fan:
    """What users of the others write: a gather behind a semaphore."""

    async def fan(url: str, count: int, concurrency: int) -> float:
        limit = asyncio.Semaphore(concurrency)
        async with AsyncExitStack() as stack:
            ask = make(url, stack)

            async def one() -> None:
                async with limit:
                    await ask()

            began = time.perf_counter()
            await asyncio.gather(*(one() for _ in range(count)))
            return time.perf_counter() - began

    return fan


def gather(make: peers.Make) -> Fan:
    """What users write first: a plain gather of plain calls."""

    async def fan(url: str, count: int, _: int) -> float:
        async with AsyncExitStack() as stack:
            ask = make(url, stack)
            began = time.perf_counter()
            await asyncio.gather(*(ask() for _ in range(count)))
            return time.perf_counter() - began

    return fan


def bounded(latency_ms: float, rounds: int, count: int, concurrency: int = 100) -> Times:
    """`count` recalls, at most `concurrency` at once."""
    fans = {name: with_semaphore(make) for name, make in peers.present().items()}
    return _measured({**fans, "kronmem": ours}, latency_ms, rounds, count, concurrency)


def gathered(latency_ms: float, rounds: int, count: int) -> Times:
    """`count` plain recalls under one `asyncio.gather`, for those whose users write it against Kronvex."""
    fans = {name: gather(make) for name, make in peers.present().items() if name in ("kronmem", "httpx", "kronvex")}
    return _measured(fans, latency_ms, rounds, count, count)


def _measured(fans: dict[str, Fan], latency_ms: float, rounds: int, count: int, concurrency: int) -> Times:
    with stub(latency_ms) as url:

        def runner(fan: Fan) -> Callable[[], float]:
            return lambda: asyncio.run(_await(fan(url, count, concurrency)))

        return in_turn({name: runner(fan) for name, fan in fans.items()}, rounds)


async def _await(work: Awaitable[float]) -> float:
    return await work


def ideal(latency_ms: float, count: int, concurrency: int = 100) -> float:
    """Seconds that the service's latency alone would take."""
    return latency_ms / 1000 * -(-count // concurrency)
