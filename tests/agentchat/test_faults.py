"""A memory that is down, hangs, lies or raises: the agent answers, and the log tells once."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import anyio
import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken

from kronmem import AsyncClient
from kronmem.agentchat import KronMemory
from tests.agentchat.scripted import Scripted, blocks, call, kinds
from tests.services import RawServer
from tests.services.raw import close, hang, respond

pytestmark = pytest.mark.anyio

DOWN = "Memory is unavailable right now; continue without it."
FAULTS: dict[str, Any] = {
    "down": close(),
    "hanging": hang(),
    "failing": respond(500),
    "html": respond(200, body="<html>"),
    "garbage": respond(200, body=[{"memories": None}]),
    "refusing": respond(401),
}


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "memory of 'ada' is" in record.getMessage()]


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_run_finishes_without_its_memory(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    with RawServer([FAULTS[fault]]) as server:
        memory = KronMemory("ada", url=server.url, timeout=0.2)
        model = Scripted("one", "two")
        agent = AssistantAgent("ada", model, memory=[memory])
        with anyio.fail_after(30):
            for task in ("first", "second"):
                result = await agent.run(task=task)
                assert kinds(result.messages) == ["TextMessage", "TextMessage"]
        await memory.close()
    assert [blocks(prompt) for prompt in model.prompts] == [[], []]
    (line,) = told(caplog)
    assert line.startswith("memory of 'ada' is unavailable, going on without it")


async def test_a_team_goes_on_without_memory() -> None:
    with RawServer([close()]) as server:
        memory = KronMemory("ada", url=server.url, timeout=0.2)
        agents = [AssistantAgent(name, Scripted("fine"), memory=[memory]) for name in ("a", "b")]
        result = await RoundRobinGroupChat(list(agents), termination_condition=MaxMessageTermination(3)).run(task="Go")
        assert [one.source for one in result.messages] == ["user", "a", "b"]
        await memory.close()


async def test_a_memory_that_comes_back_is_used_and_told() -> None:
    async with AsyncClient("sqlite://") as inner:
        await inner.remember("ada", "The user likes green tea")

        class Flaky(AsyncClient):
            broken = True

            def with_timeout(self, timeout: float) -> AsyncClient:
                return self

            async def recall(self, *args: Any, **options: Any) -> Any:
                if self.broken:
                    raise RuntimeError("not one of ours")
                return await inner.recall(*args, **options)

        client = Flaky("sqlite://")
        model = Scripted(*["yes"] * 4)
        agent = AssistantAgent("ada", model, memory=[KronMemory("ada", client=client)])
        log = logging.getLogger("kronmem")
        lines: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign] -- a list is enough
        log.addHandler(handler)
        try:
            for broken in (True, True, False, False):
                client.broken = broken
                await agent.run(task="Which tea?")
        finally:
            log.removeHandler(handler)
        assert [len(blocks(prompt)) for prompt in model.prompts] == [0, 0, 1, 1]
        assert [line.partition(" (")[0] for line in lines] == [
            "memory of 'ada' is unavailable, going on without it",
            "memory of 'ada' is available again",
        ]
        await client.close()


async def test_an_answer_of_the_wrong_kind_is_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    class Lying(AsyncClient):
        def with_timeout(self, timeout: float) -> AsyncClient:
            return self

        async def recall(self, *args: Any, **options: Any) -> Any:
            return [object()]

    async with Lying("sqlite://") as client:
        memory = KronMemory("ada", client=client)
        result = await AssistantAgent("ada", Scripted("fine"), memory=[memory]).run(task="Which tea?")
    assert kinds(result.messages) == ["TextMessage", "TextMessage"]
    assert len(told(caplog)) == 1


@pytest.mark.parametrize("fault", ["down", "hanging", "html"])
async def test_a_tool_answers_in_words_when_memory_is_out(fault: str) -> None:
    with RawServer([FAULTS[fault]]) as server:
        memory = KronMemory("ada", url=server.url, timeout=0.2)
        agent = AssistantAgent("ada", Scripted(call("recall", query="tea")), tools=memory.tools())
        assert (await agent.run(task="Which tea?")).messages[-1].content == DOWN  # type: ignore[attr-defined] -- a text message
        await memory.close()


@pytest.mark.parametrize("by", ["token", "task"])
async def test_cancelling_ends_a_hanging_tool(by: str) -> None:
    # The tool is asked directly: AssistantAgent itself never returns when a token cancels any tool (0.7.5, 0.6.4).
    with RawServer([hang()]) as server:
        memory, token = KronMemory("ada", url=server.url, timeout=60), CancellationToken()
        asked = asyncio.ensure_future(memory.tools()[1].run_json({"query": "tea"}, token))
        while not server.requests:
            await asyncio.sleep(0)
        token.cancel() if by == "token" else asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await memory.close()


async def test_cancelling_a_run_ends_it_while_memory_hangs() -> None:
    with RawServer([hang()]) as server:
        memory = KronMemory("ada", url=server.url, timeout=60)
        agent = AssistantAgent("ada", Scripted("fine"), memory=[memory])
        run = asyncio.ensure_future(agent.run(task="Which tea?"))
        while not server.requests:
            await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        await memory.close()
