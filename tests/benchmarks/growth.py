"""Does a client that runs for days grow? Megabytes of this process before and after many calls of every kind."""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
from pathlib import Path

from kronmem import AsyncClient, Client
from tests.benchmarks.stub import stub


def resident() -> float:
    """Megabytes this process holds now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def over(calls: int) -> float:
    """Megabytes grown over that many calls, after a warm-up."""
    with stub() as url, tempfile.TemporaryDirectory() as home:
        with Client(url, api_key="kv-x", outbox=False) as blocking, Client(f"sqlite:///{home}/m.db") as local:
            local.remember_many("a", [f"note {n} about topic {n % 50}" for n in range(500)])
            _some(blocking, local, calls // 10)
            asyncio.run(_awaited(url, calls // 10))
            before = resident()
            _some(blocking, local, calls // 2)
            asyncio.run(_awaited(url, calls // 2))
            return resident() - before


def _some(blocking: Client, local: Client, calls: int) -> None:
    for number in range(calls // 2):
        blocking.recall("a", f"question {number}")
        local.recall("a", f"topic {number % 50}")


async def _awaited(url: str, calls: int) -> None:
    async with AsyncClient(url, api_key="kv-x", outbox=False) as client:
        for _ in range(calls // 100):
            await client.recall_many("a", ["question"] * 50)
            for _ in range(50):
                await client.remember("a", "some text")
