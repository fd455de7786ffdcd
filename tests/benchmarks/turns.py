"""What memory adds to an agent's turn, with a service of 20 ms latency: in round trips of that service."""

from __future__ import annotations

import asyncio
import contextlib
import io
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from kronmem import AsyncClient, Client
from tests.benchmarks.measure import installed
from tests.benchmarks.stub import stub
from tests.services.openai import OpenAIServer

LATENCY_MS = 20.0


def classic(rounds: int, turns: int) -> list[float]:
    """Added round trips a turn for a ConversableAgent with attached memory, recall and capture on."""
    if not installed("autogen", "openai"):
        return []
    with stub(LATENCY_MS) as url, OpenAIServer(lambda request: "A plain answer of some length.") as model:
        with tempfile.TemporaryDirectory() as home, Client(url, outbox=Path(home) / "o.db") as client:
            return [
                _added([(_classic_turn(model, None), _classic_turn(model, client)) for _ in range(turns)])
                for _ in range(rounds)
            ]


def _added(turns: list[tuple[float, float]]) -> float:
    """What a turn with memory took more than one without, in round trips."""
    plain, remembering = zip(*turns, strict=True)
    return (statistics.median(remembering) - statistics.median(plain)) / (LATENCY_MS / 1000)


def _classic_turn(model: Any, client: Client | None) -> float:
    from autogen import ConversableAgent

    from kronmem.autogen import attach_memory

    agent = ConversableAgent("assistant", llm_config=model.llm_config(), human_input_mode="NEVER")
    user = ConversableAgent("user", llm_config=False, human_input_mode="NEVER")
    attached = attach_memory(client.agent("a"), [agent]) if client else None
    began = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        user.initiate_chat(agent, message="Which database do we use in this project?", max_turns=1, silent=True)
    taken = time.perf_counter() - began
    if attached:
        attached.detach()
    return taken


def agentchat(rounds: int, turns: int) -> list[float]:
    """Added round trips a turn for an AssistantAgent with a KronMemory."""
    if not installed("autogen_agentchat", "autogen_ext"):
        return []
    return asyncio.run(_agentchat(rounds, turns))


async def _agentchat(rounds: int, turns: int) -> list[float]:
    with stub(LATENCY_MS) as url:
        async with AsyncClient(url, outbox=False) as client:
            return [
                _added([(await _agentchat_turn(None), await _agentchat_turn(client)) for _ in range(turns)])
                for _ in range(rounds)
            ]


async def _agentchat_turn(client: AsyncClient | None) -> float:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_ext.models.replay import ReplayChatCompletionClient

    from kronmem.agentchat import KronMemory

    memory = [KronMemory("a", client=client)] if client else None
    agent = AssistantAgent("assistant", ReplayChatCompletionClient(["A plain answer."]), memory=memory)  # type: ignore[arg-type] # lists are invariant
    began = time.perf_counter()
    await agent.run(task="Which database do we use in this project?")
    return time.perf_counter() - began
