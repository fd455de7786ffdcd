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


SLOW_MS = 500.0
CHATS = 5


def loop_gap(rounds: int) -> dict[str, list[float]]:
    """The longest stretch in which an event loop ran nothing else, in five async chats with and without memory."""
    if not installed("autogen", "openai"):
        return {}
    with stub(SLOW_MS) as url, OpenAIServer(lambda request: "A plain answer of some length.") as model:
        with tempfile.TemporaryDirectory() as home, Client(url, outbox=Path(home) / "o.db") as client:
            asyncio.run(_gap(model, client))  # everything is imported and connected once
            return {
                "kronmem": [asyncio.run(_gap(model, client)) for _ in range(rounds)],
                "without": [asyncio.run(_gap(model, None)) for _ in range(rounds)],
            }


async def _gap(model: Any, client: Client | None) -> float:
    gaps = [0.0]

    async def watch() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            gaps.append(time.perf_counter() - began)

    pairs = [_async_pair(model, client, number) for number in range(CHATS)]
    watching = asyncio.ensure_future(watch())
    asked = "Which database do we use in this project?"
    with contextlib.redirect_stdout(io.StringIO()):
        await asyncio.gather(*(a.a_initiate_chat(b, message=asked, max_turns=1, silent=True) for a, b, _ in pairs))
    watching.cancel()
    for *_, attached in pairs:
        if attached:
            attached.detach()
    return max(gaps)


def _async_pair(model: Any, client: Client | None, number: int) -> tuple[Any, Any, Any]:
    from autogen import ConversableAgent

    from kronmem.autogen import attach_memory

    agent = ConversableAgent(f"assistant-{number}", llm_config=model.llm_config(), human_input_mode="NEVER")
    user = ConversableAgent(f"user-{number}", llm_config=False, human_input_mode="NEVER")
    return user, agent, attach_memory(client.agent("a"), [agent, user]) if client else None


def capturing(rounds: int, messages: int) -> dict[str, list[float]]:
    """The milliseconds that a sent message waits until it is on disk: in the database, or in the outbox of a service."""
    if not installed("autogen"):
        return {}
    with tempfile.TemporaryDirectory() as home, stub(SLOW_MS) as url:
        with Client.local(Path(home) / "m.db") as embedded, Client(url, outbox=Path(home) / "o.db") as served:
            return {
                name: [_waiting(client, messages) - _waiting(None, messages) for _ in range(rounds)]
                for name, client in (("kronmem", embedded), ("kronmem, outbox", served))
            }


def _waiting(client: Client | None, messages: int) -> float:
    from autogen import ConversableAgent

    from kronmem.autogen import attach_memory

    first, second = (ConversableAgent(name, llm_config=False) for name in ("first", "second"))
    attached = attach_memory(client.agent("a"), first) if client else None
    times = list[float]()
    for number in range(messages):
        began = time.perf_counter()
        first.send(f"Sentence number {number} on the lighthouse.", second, request_reply=False, silent=True)
        times.append(time.perf_counter() - began)
    if attached:
        attached.detach()
    return 1000 * statistics.median(times)


def saving(rounds: int) -> dict[str, dict[str, list[float]]]:
    """The CPU time to save one message of a chat of 1,000 messages, in those of a chat of 10."""
    found: dict[str, dict[str, list[float]]] = {}
    if installed("autogen", "openai"):
        found["classic"] = {"kronmem": [_classic_saving(1000) / _classic_saving(10) for _ in range(rounds)]}
    if installed("autogen_agentchat", "autogen_ext"):
        pairs = [(asyncio.run(_team_saving(10)), asyncio.run(_team_saving(1000))) for _ in range(rounds)]
        found["agentchat"] = {
            "kronmem": [long[0] / short[0] for short, long in pairs],
            "save_state alone": [long[1] / short[1] for short, long in pairs],
        }
    return found


def _classic_saving(length: int) -> float:
    from autogen import ConversableAgent

    from kronmem.autogen.chats import pair_saver

    first, second = (ConversableAgent(name, llm_config=False) for name in ("first", "second"))
    with tempfile.TemporaryDirectory() as home, Client.local(Path(home) / "m.db") as client:
        saver = pair_saver(client.state("a"), "chat", first, second)
        for number in range(length):
            first.send(f"message {number}", second, request_reply=False, silent=True)
        saver.save()
        times = list[float]()
        for number in range(60):
            first.send(f"one more {number}", second, request_reply=False, silent=True)
            began = time.process_time()
            saver.save()
            times.append(time.process_time() - began)
        return statistics.median(times)


async def _team_saving(length: int) -> tuple[float, float]:
    """One save, and AutoGen's own serialising in it."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_core.models import UserMessage
    from autogen_ext.models.replay import ReplayChatCompletionClient

    from kronmem.agentchat.persist import StateSaver, without_memories

    agent = AssistantAgent("assistant", ReplayChatCompletionClient([]))
    with tempfile.TemporaryDirectory() as home:
        async with AsyncClient(f"sqlite:///{home}/m.db") as client:
            saver = StateSaver(agent, client.state("a"), "chat", 60.0, without_memories)
            times, own = list[float](), list[float]()
            for number in range(length + 60):
                await agent.model_context.add_message(UserMessage(content=f"message {number}", source="user"))
                if number < length:
                    continue
                began = time.process_time()
                await agent.save_state()
                own.append(time.process_time() - began)
                await saver.save()
                times.append(time.process_time() - began - own[-1])
            return statistics.median(times[1:]), statistics.median(own[1:])
