"""What one call costs beyond the wire: kronmem, the same call written by hand with httpx, and the vendor's SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
from pydantic import BaseModel

from kronmem import AsyncClient, Client, Hit, Memory
from tests.benchmarks.measure import Times, arepeated, in_turn, installed, repeated, settle
from tests.benchmarks.stub import stub

HEADERS = {"X-API-Key": "kv-test"}
RECALL = {"query": "which database", "top_k": 5, "threshold": 0.5}
REMEMBER = {
    "content": "The database is PostgreSQL 16",
    "memory_type": "fact",
    "session_id": "s",
    "metadata": {"k": "v"},
}
AGENT = "7d3f078b-61fc-4ea9-9806-5ba38fab8e52"
PATH = f"/api/v1/agents/{AGENT}"


class Found(BaseModel):
    """What a careful user would parse a recall into."""

    results: list[Hit]


def blocking(rounds: int, calls: int) -> dict[str, Times]:
    """Sequential remember and recall, blocking."""
    with stub() as url, Client(url, api_key="kv-test", outbox=False) as ours:
        with httpx.Client(base_url=url, headers=HEADERS) as raw:
            recall: dict[str, Callable[[], object]] = {
                "kronmem": lambda: ours.recall(AGENT, "which database"),
                "httpx": lambda: Found.model_validate(
                    raw.post(f"{PATH}/recall", json=RECALL).raise_for_status().json()
                ),
            }
            remember: dict[str, Callable[[], object]] = {
                "kronmem": lambda: ours.remember(AGENT, REMEMBER["content"], session_id="s", metadata={"k": "v"}),
                "httpx": lambda: Memory.model_validate(
                    raw.post(f"{PATH}/remember", json=REMEMBER).raise_for_status().json()
                ),
            }
            if installed("kronvex"):
                _add_kronvex(url, recall, remember)
            return {
                "recall": in_turn({name: _block(work, calls) for name, work in recall.items()}, rounds),
                "remember": in_turn({name: _block(work, calls) for name, work in remember.items()}, rounds),
            }


def _block(work: Callable[[], object], calls: int) -> Callable[[], float]:
    return lambda: repeated(work, calls)


def _add_kronvex(url: str, recall: dict[str, Any], remember: dict[str, Any]) -> None:
    from kronvex import Kronvex

    agent = Kronvex("kv-test", base_url=url).agent(AGENT)
    recall["kronvex SDK"] = lambda: agent.recall("which database")
    remember["kronvex SDK"] = lambda: agent.remember("The database is PostgreSQL 16")


def awaiting(rounds: int, calls: int) -> dict[str, Times]:
    """The same, awaited."""
    return asyncio.run(_awaiting(rounds, calls))


async def _awaiting(rounds: int, calls: int) -> dict[str, Times]:
    with stub() as url:
        async with AsyncClient(url, api_key="kv-test", outbox=False) as ours:
            async with httpx.AsyncClient(base_url=url, headers=HEADERS) as raw:

                async def raw_recall() -> Found:
                    reply = await raw.post(f"{PATH}/recall", json=RECALL)
                    return Found.model_validate(reply.raise_for_status().json())

                async def raw_remember() -> Memory:
                    reply = await raw.post(f"{PATH}/remember", json=REMEMBER)
                    return Memory.model_validate(reply.raise_for_status().json())

                recall = {"kronmem": lambda: ours.recall(AGENT, "which database"), "httpx": raw_recall}
                remember = {
                    "kronmem": lambda: ours.remember(AGENT, REMEMBER["content"], session_id="s", metadata={"k": "v"}),
                    "httpx": raw_remember,
                }
                return {
                    "recall": await _in_turn(recall, rounds, calls),
                    "remember": await _in_turn(remember, rounds, calls),
                }


async def _in_turn(contestants: dict[str, Callable[[], Awaitable[object]]], rounds: int, calls: int) -> Times:
    times = Times()
    names = list(contestants)
    for number in range(rounds):
        for name in names[number % 2 :] + names[: number % 2]:
            settle()
            times.add(name, await arepeated(contestants[name], calls))
    return times
