"""One KronMemory and one set of tools for many users at once: nobody sees, and nobody is given, another's words."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from autogen_core.memory import MemoryContent
from autogen_core.models import CreateResult, FunctionExecutionResultMessage, LLMMessage, RequestUsage

from kronmem import AsyncClient, Client, ConfigError, InvalidInputError, extract_facts
from kronmem.agentchat import KronMemory, remember_run
from tests.agentchat.scripted import Scripted, blocks, call

pytestmark = pytest.mark.anyio

current_user: ContextVar[str] = ContextVar("current_user")
NAME, WORD = re.compile(r"user-\d\d"), re.compile(r"user-\d\d-word-\d+:")


def names(texts: Any) -> set[str]:
    return set(NAME.findall(str(texts)))


class Told(Scripted):
    """Notes every third word of a user by a tool, looks every third up; answers with the user's name."""

    async def create(self, messages: Sequence[LLMMessage], **options: Any) -> CreateResult:
        self.prompts.append(list(messages))
        asked = [one.content for one in messages if WORD.match(str(one.content))]
        name, number = re.findall(r"(user-\d\d)-word-(\d+)", str(asked[-1]))[0]
        if int(number) % 3 < 2 and not isinstance(messages[-1], FunctionExecutionResultMessage):
            if int(number) % 3:
                return call("recall", query="note on the harbour")
            return call("remember", content=f"{name}-note-{number} on the harbour")
        usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
        text = f"I prefer {name}-reply-{number} tea."
        return CreateResult(finish_reason="stop", content=text, usage=usage, cached=False)


async def live(memory: KronMemory, name: str, turns: int) -> list[list[LLMMessage]]:
    """All turns of one user, with two assistants of the user's own on the memory of everybody."""
    current_user.set(name)
    model = Told()
    pair = [
        AssistantAgent(f"assistant_{number}", model, memory=[memory], tools=[*memory.tools()], reflect_on_tool_use=True)
        for number in range(2)
    ]
    for number in range(turns):
        task = f"{name}-word-{number}: is the harbour open?"
        if number % 5:
            result = await pair[number % 2].run(task=task)
        else:
            result = await RoundRobinGroupChat([pair[number % 2]], max_turns=1).run(task=task)
        await remember_run(memory, result, extract=extract_facts)
    return model.prompts


async def in_tasks(memory: KronMemory, people: list[str], turns: int) -> list[Any]:
    return await asyncio.gather(*(asyncio.ensure_future(live(memory, name, turns)) for name in people))


async def in_threads(memory: KronMemory, people: list[str], turns: int) -> list[Any]:
    def thread(name: str) -> Any:
        return copy_context().run(asyncio.run, live(memory, name, turns))

    with ThreadPoolExecutor(len(people)) as pool:
        return await asyncio.get_running_loop().run_in_executor(None, lambda: list(pool.map(thread, people)))


@pytest.mark.timeout(1200)  # two thousand turns: fifty of each user with each assistant
@pytest.mark.parametrize("run", [in_tasks, in_threads])
@pytest.mark.parametrize(("users", "turns"), [(4, 4), pytest.param(20, 100, marks=pytest.mark.slow)])
async def test_nothing_leaks_between_users_of_one_memory(run: Any, users: int, turns: int, tmp_path: Path) -> None:
    people = [f"user-{number:02}" for number in range(users)]
    memory = KronMemory(current_user.get, url=f"sqlite:///{tmp_path}/memory.db", timeout=60)
    found = await run(memory, people, turns)
    await memory.close()
    for name, prompts in zip(people, found, strict=True):
        assert {name} == set.union(*(names(prompt) for prompt in prompts))
        assert sum(bool(blocks(prompt)) for prompt in prompts) > turns / 2, "memories were shown at all"
        assert any("Notes from earlier" in str(prompt) and f"{name}-note-" in str(prompt) for prompt in prompts)
    with Client.local(tmp_path / "memory.db") as client:
        assert {agent.name for agent in client.agents()} == set(people)
        for name in people:
            stored = [one.content for one in client.memories(name)]
            assert names(stored) == {name}
            assert {f"{name}-note-{number} on the harbour" for number in range(0, turns, 3)} <= set(stored)
            assert sum("-reply-" in one for one in stored) == turns


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient("sqlite://") as client:
        yield client


async def test_one_assistant_shows_the_block_of_one_user_to_no_other(client: AsyncClient) -> None:
    for name in ("user-00", "user-01"):
        await client.remember(name, f"{name} keeps a boat in the harbour")
    model = Scripted(*["Yes."] * 3)
    agent = AssistantAgent("ada", model, memory=[KronMemory(current_user.get, client=client)])
    for name in ("user-00", "user-01"):
        token = current_user.set(name)
        await agent.run(task="Who keeps a boat in the harbour?")
        current_user.reset(token)
    await agent.run(task="Who keeps a boat in the harbour?")
    assert [names(prompt) for prompt in model.prompts] == [{"user-00"}, {"user-01"}, set()]


async def test_without_a_user_every_call_fails_and_nothing_is_stored(client: AsyncClient) -> None:
    memory = KronMemory(current_user.get, client=client)
    with pytest.raises(InvalidInputError):
        await memory.query("boat")
    with pytest.raises(InvalidInputError):
        await memory.add(MemoryContent(content="a boat", mime_type="text/plain"))
    with pytest.raises(InvalidInputError):
        await memory.clear()
    remember, *_ = memory.tools()
    assert "could not be resolved" in str(await remember.run_json({"content": "a boat"}, CancellationToken()))
    with pytest.raises(InvalidInputError):
        await remember_run(memory, TaskResult(messages=[TextMessage(content="I prefer boats.", source="user")]))
    assert await client.agents() == []

    return CancellationToken()


def test_a_memory_with_a_callable_id_is_not_dumped() -> None:
    for memory in (KronMemory(current_user.get), KronMemory("ada", session_id=lambda: "monday")):
        assert "<callable>" in repr(memory)
        for component in (memory, *memory.tools()):
            with pytest.raises(ConfigError, match="callable"):
                component.dump_component()
