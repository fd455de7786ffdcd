"""A thousand recalls at once: bound by the service's latency, or by Python? As multiples of the ideal time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from kronmem import AsyncClient
from tests.benchmarks.calls import AGENT, HEADERS, PATH, RECALL, Found
from tests.benchmarks.measure import Times, installed, settle
from tests.benchmarks.stub import stub

Fan = Callable[[str, int, int], Awaitable[float]]


async def ours(url: str, count: int, concurrency: int) -> float:
    """`recall_many` with that concurrency."""
    async with AsyncClient(url, api_key="kv-test", outbox=False, timeout=120) as client:
        began = time.perf_counter()
        await client.recall_many(AGENT, ["which database"] * count, concurrency=concurrency)
        return time.perf_counter() - began


async def ours_gathered(url: str, count: int, _: int) -> float:
    """What users write: a plain gather of plain recalls."""
    async with AsyncClient(url, api_key="kv-test", outbox=False, timeout=120) as client:
        began = time.perf_counter()
        await asyncio.gather(*(client.recall(AGENT, "which database") for _ in range(count)))
        return time.perf_counter() - began


async def raw(url: str, count: int, concurrency: int) -> float:
    """httpx as it comes, with a semaphore."""
    limit = asyncio.Semaphore(concurrency)
    async with httpx.AsyncClient(base_url=url, headers=HEADERS, timeout=300) as client:

        async def one() -> None:
            async with limit:
                Found.model_validate((await client.post(f"{PATH}/recall", json=RECALL)).json())

        began = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(count)))
        return time.perf_counter() - began


async def raw_gathered(url: str, count: int, _: int) -> float:
    """httpx as it comes, without one."""
    return await raw(url, count, count)


async def with_aiohttp(url: str, count: int, concurrency: int) -> float:
    """aiohttp, the fastest of the usual clients."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(headers=HEADERS, connector=connector) as session:

        async def one() -> None:
            async with session.post(f"{url}{PATH}/recall", json=RECALL) as reply:
                Found.model_validate(await reply.json())

        began = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(count)))
        return time.perf_counter() - began


async def kronvex_gathered(url: str, count: int, _: int) -> float:
    """The vendor's SDK has no async client: what its users write is a gather of threads."""
    from kronvex import Kronvex

    agent = Kronvex("kv-test", base_url=url, timeout=300).agent(AGENT)
    began = time.perf_counter()
    await asyncio.gather(*(asyncio.to_thread(agent.recall, "which database") for _ in range(count)))
    return time.perf_counter() - began


def bounded(latency_ms: float, rounds: int, count: int = 1000, concurrency: int = 100) -> Times:
    """`count` recalls, at most `concurrency` at once."""
    fans: dict[str, Fan] = {"kronmem": ours, "httpx": raw}
    if installed("aiohttp"):
        fans["aiohttp"] = with_aiohttp
    return _in_turn(fans, latency_ms, rounds, count, concurrency)


def gathered(latency_ms: float, rounds: int, count: int = 1000) -> Times:
    """`count` plain recalls under one `asyncio.gather`."""
    fans: dict[str, Fan] = {"kronmem": ours_gathered, "httpx": raw_gathered}
    if installed("kronvex"):
        fans["kronvex SDK"] = kronvex_gathered
    return _in_turn(fans, latency_ms, rounds, count, count)


def _in_turn(fans: dict[str, Any], latency_ms: float, rounds: int, count: int, concurrency: int) -> Times:
    times = Times()
    names = list(fans)
    with stub(latency_ms) as url:
        for number in range(rounds):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                settle()
                times.add(name, asyncio.run(fans[name](url, count, concurrency)))
    return times


def ideal(latency_ms: float, count: int = 1000, concurrency: int = 100) -> float:
    """Seconds that the service's latency alone would take."""
    return latency_ms / 1000 * -(-count // concurrency)
