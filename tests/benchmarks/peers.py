"""The other ways to ask a memory service a question, each as one call to await, against the stub."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

import httpx

from kronmem import AsyncClient
from tests.benchmarks.measure import installed
from tests.benchmarks.wire import AGENT, HEADERS, PATH, RECALL, Found

Ask = Callable[[], Awaitable[object]]
PATIENT = 300.0
"""Seconds: nobody may give up while a thousand calls wait for each other."""


def kronmem(url: str) -> Ask:
    """Ours."""
    client = AsyncClient(url, api_key="kv-test", outbox=False, timeout=PATIENT)
    return lambda: client.recall(AGENT, "which database")


def by_hand(url: str) -> Ask:
    """What a careful user would write with httpx."""
    client = httpx.AsyncClient(base_url=url, headers=HEADERS, timeout=PATIENT)

    async def ask() -> Found:
        reply = await client.post(f"{PATH}/recall", json=RECALL)
        return Found.model_validate(reply.raise_for_status().json())

    return ask


def aiohttp(url: str) -> Ask:
    """The fastest of the usual clients."""
    from aiohttp import ClientSession

    session = ClientSession(headers=HEADERS)

    async def ask() -> Found:
        async with session.post(f"{url}{PATH}/recall", json=RECALL) as reply:
            return Found.model_validate(await reply.json())

    return ask


def kronvex(url: str) -> Ask:
    """The vendor's SDK."""
    from kronvex.async_client import AsyncKronvex

    agent = AsyncKronvex("kv-test", base_url=url, timeout=PATIENT).agent(AGENT)
    return lambda: agent.recall("which database")


def mem0(url: str) -> Ask:
    """mem0's client for its service."""
    os.environ["MEM0_TELEMETRY"] = "False"
    from mem0 import AsyncMemoryClient

    client = AsyncMemoryClient(api_key="m0-test", host=url)
    return lambda: client.search("which database", filters={"user_id": AGENT})


def zep(url: str) -> Ask:
    """Zep's."""
    from zep_cloud.client import AsyncZep

    client = AsyncZep(api_key="z_test", base_url=url)
    return lambda: client.graph.search_edges(AGENT, query="which database")


def letta(url: str) -> Ask:
    """Letta's."""
    from letta_client import AsyncLetta

    client = AsyncLetta(api_key="test", base_url=url)
    return lambda: client.agents.passages.search(f"agent-{AGENT}", query="which database")


def supermemory(url: str) -> Ask:
    """Supermemory's."""
    from supermemory import AsyncSupermemory

    client = AsyncSupermemory(api_key="test", base_url=url)
    return lambda: client.search("agent", query="which database")


_SDKS = {
    "aiohttp": ("aiohttp", aiohttp),
    "kronvex": ("kronvex", kronvex),
    "mem0ai": ("mem0", mem0),
    "zep-cloud": ("zep_cloud", zep),
    "letta-client": ("letta_client", letta),
    "supermemory": ("supermemory", supermemory),
}
MODULES = {name: module for name, (module, _) in _SDKS.items()}


def present() -> dict[str, Callable[[str], Ask]]:
    """Ours, httpx by hand, and whoever is installed."""
    others = {name: make for name, (module, make) in _SDKS.items() if installed(module)}
    return {"kronmem": kronmem, "httpx": by_hand, **others}
