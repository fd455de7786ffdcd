"""What one call costs beyond the wire: kronmem, the same call written by hand with httpx, and the other SDKs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import httpx

from kronmem import AsyncClient, Client, Memory
from tests.benchmarks import peers
from tests.benchmarks.measure import Costs, aboth_in_turn, both_in_turn, installed
from tests.benchmarks.stub import stub
from tests.benchmarks.wire import AGENT, HEADERS, PATH, RECALL, REMEMBER, Found

TEXT = str(REMEMBER["content"])


def blocking(rounds: int, calls: int) -> dict[str, Costs]:
    """Sequential recall and remember, blocking."""
    with stub() as url, Client(url, api_key="kv-test", outbox=False) as ours:
        with httpx.Client(base_url=url, headers=HEADERS) as raw:
            recall: dict[str, Callable[[], object]] = {
                "kronmem": lambda: ours.recall(AGENT, "which database"),
                "httpx": lambda: Found.model_validate(
                    raw.post(f"{PATH}/recall", json=RECALL).raise_for_status().json()
                ),
            }
            remember: dict[str, Callable[[], object]] = {
                "kronmem": lambda: ours.remember(AGENT, TEXT, session_id="s", metadata={"k": "v"}),
                "httpx": lambda: Memory.model_validate(
                    raw.post(f"{PATH}/remember", json=REMEMBER).raise_for_status().json()
                ),
            }
            if installed("kronvex"):
                from kronvex import Kronvex

                agent = Kronvex("kv-test", base_url=url).agent(AGENT)
                recall["kronvex"] = lambda: agent.recall("which database")
                remember["kronvex"] = lambda: agent.remember(TEXT)
            return {
                "recall": both_in_turn(recall, rounds, calls),
                "remember": both_in_turn(remember, rounds, calls),
            }


def awaiting(rounds: int, calls: int) -> dict[str, Costs]:
    """The same, awaited."""
    return asyncio.run(_awaiting(rounds, calls))


async def _awaiting(rounds: int, calls: int) -> dict[str, Costs]:
    async with AsyncExitStack() as stack:
        url = stack.enter_context(stub())
        ours = await stack.enter_async_context(AsyncClient(url, api_key="kv-test", outbox=False))
        raw = await stack.enter_async_context(httpx.AsyncClient(base_url=url, headers=HEADERS))

        async def raw_remember() -> Memory:
            reply = await raw.post(f"{PATH}/remember", json=REMEMBER)
            return Memory.model_validate(reply.raise_for_status().json())

        recall = {name: make(url, stack) for name, make in peers.present().items()}
        remember: dict[str, peers.Ask] = {
            "kronmem": lambda: ours.remember(AGENT, TEXT, session_id="s", metadata={"k": "v"}),
            "httpx": raw_remember,
        }
        return {
            "recall": await aboth_in_turn(recall, rounds, calls),
            "remember": await aboth_in_turn(remember, rounds, calls),
        }
