"""The other ways to ask a memory service a question, each as one call to await, against the stub."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import httpx

from kronmem import AsyncClient
from tests.benchmarks.measure import installed
from tests.benchmarks.wire import AGENT, HEADERS, PATH, RECALL, Found

Ask = Callable[[], Awaitable[object]]
Make = Callable[[str, AsyncExitStack], Ask]
"""From the stub's url; what has to be closed is put on the stack."""
PATIENT = 300.0
"""Seconds: nobody may give up while a thousand calls wait for each other."""


def kronmem(url: str, stack: AsyncExitStack) -> Ask:
    """Ours."""
    client = AsyncClient(url, api_key="kv-test", outbox=False, timeout=PATIENT)
    stack.push_async_callback(client.close)
    return lambda: client.recall(AGENT, "which database")


def by_hand(url: str, stack: AsyncExitStack) -> Ask:
    """What a careful user would write with httpx."""
    client = httpx.AsyncClient(base_url=url, headers=HEADERS, timeout=PATIENT)
    stack.push_async_callback(client.aclose)

    async def ask() -> Found:
        reply = await client.post(f"{PATH}/recall", json=RECALL)
        return Found.model_validate(reply.raise_for_status().json())

    return ask


def aiohttp(url: str, stack: AsyncExitStack) -> Ask:
    """The fastest of the usual clients."""
    from aiohttp import ClientSession

    session = ClientSession(headers=HEADERS)
    stack.push_async_callback(session.close)

    async def ask() -> Found:
        async with session.post(f"{url}{PATH}/recall", json=RECALL) as reply:
            return Found.model_validate(await reply.json())

    return ask


def kronvex(url: str, stack: AsyncExitStack) -> Ask:
    """The vendor's SDK."""
    from kronvex.async_client import AsyncKronvex

    client = AsyncKronvex("kv-test", base_url=url, timeout=PATIENT)
    stack.push_async_callback(client.close)
    agent = client.agent(AGENT)
    return lambda: agent.recall("which database")


def mem0(url: str, stack: AsyncExitStack) -> Ask:
    """mem0's client for its service."""
    os.environ["MEM0_TELEMETRY"] = "False"
    from mem0 import AsyncMemoryClient

    client = AsyncMemoryClient(api_key="m0-test", host=url)
    stack.push_async_callback(client.async_client.aclose)
    return lambda: client.search("which database", filters={"user_id": AGENT})


def zep(url: str, stack: AsyncExitStack) -> Ask:
    """Zep's."""
    from zep_cloud.client import AsyncZep

    client = AsyncZep(api_key="z_test", base_url=url)
    return lambda: client.graph.search_edges(AGENT, query="which database")


def letta(url: str, stack: AsyncExitStack) -> Ask:
    """Letta's."""
    from letta_client import AsyncLetta

    client = AsyncLetta(api_key="test", base_url=url)
    stack.push_async_callback(client.close)
    return lambda: client.agents.passages.search(f"agent-{AGENT}", query="which database")


def supermemory(url: str, stack: AsyncExitStack) -> Ask:
    """Supermemory's."""
    from supermemory import AsyncSupermemory

    client = AsyncSupermemory(api_key="test", base_url=url)
    stack.push_async_callback(client.close)
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


def present() -> dict[str, Make]:
    """Ours, httpx by hand, and whoever is installed."""
    others = {name: make for name, (module, make) in _SDKS.items() if installed(module)}
    return {"kronmem": kronmem, "httpx": by_hand, **others}
