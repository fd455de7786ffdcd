"""What one call costs beyond the wire: kronmem, the same call written by hand with httpx, and the other SDKs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import httpx

from kronmem import AsyncClient, Client, Memory
from tests.benchmarks import peers
from tests.benchmarks.measure import Times, arepeated, in_turn, installed, repeated, settle, turned
from tests.benchmarks.stub import stub
from tests.benchmarks.wire import AGENT, HEADERS, PATH, RECALL, REMEMBER, Found

TEXT = str(REMEMBER["content"])


def blocking(rounds: int, calls: int) -> dict[str, Times]:
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
                "recall": in_turn({name: _block(work, calls) for name, work in recall.items()}, rounds),
                "remember": in_turn({name: _block(work, calls) for name, work in remember.items()}, rounds),
            }


def _block(work: Callable[[], object], calls: int) -> Callable[[], float]:
    return lambda: repeated(work, calls)


def awaiting(rounds: int, calls: int) -> dict[str, Times]:
    """The same, awaited."""
    return asyncio.run(_awaiting(rounds, calls))


async def _awaiting(rounds: int, calls: int) -> dict[str, Times]:
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
            "recall": await _in_turn(recall, rounds, calls),
            "remember": await _in_turn(remember, rounds, calls),
        }


async def _in_turn(contestants: dict[str, Callable[[], Awaitable[object]]], rounds: int, calls: int) -> Times:
    times = Times()
    for number in range(rounds):
        for name in turned(list(contestants), number):
            settle()
            times.add(name, await arepeated(contestants[name], calls))
    return times
