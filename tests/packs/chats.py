"""Whole chats through the four frameworks: turns of a user and scripted answers in, the texts of every prompt out."""

from __future__ import annotations

from functools import partial
from typing import Any

from anyio import to_thread

from kronmem import Client

Turns = list[tuple[str, str]]


async def classic(url: str, agent_id: str, turns: Turns, **options: Any) -> list[list[str]]:
    return await to_thread.run_sync(partial(_classic, url, agent_id, turns, **options))


def _classic(
    url: str, agent_id: str, turns: Turns, alone: bool = False, system: str = "", **options: Any
) -> list[list[str]]:
    from kronmem.autogen import attach_memory
    from tests.autogen.agents import assistant, contents, user
    from tests.services.openai import OpenAIServer

    answers = iter([answer for _, answer in turns])
    with OpenAIServer(lambda _: next(answers)) as server, Client(url) as client:
        helper, person = assistant(server, system_message=system or "You are assistant."), user()
        with attach_memory(client.agent(agent_id), [helper] if alone else [helper, person], timeout=60, **options):
            for n, (words, _) in enumerate(turns):
                person.initiate_chat(helper, message=words, max_turns=1, silent=True, clear_history=n == 0)
        return [contents(prompt) for prompt in server.prompts]


async def agentchat(url: str, agent_id: str, turns: Turns, system: str = "", **options: Any) -> list[list[str]]:
    from autogen_agentchat.agents import AssistantAgent

    from kronmem.agentchat import KronMemory
    from tests.agentchat.scripted import Scripted

    memory, model = (
        KronMemory(agent_id, url=url, timeout=60, **{"capture": "auto", **options}),
        Scripted(*(answer for _, answer in turns)),
    )
    agent = AssistantAgent("helper", model, memory=[memory], system_message=system or None)
    for words, _ in turns:
        await agent.run(task=words)
    await memory.close()
    return [[str(one.content) for one in prompt] for prompt in model.prompts]


async def agent_framework(url: str, agent_id: str, turns: Turns, system: str = "", **options: Any) -> list[list[str]]:
    from agent_framework import Agent, InMemoryHistoryProvider

    from kronmem.agent_framework import KronmemContextProvider
    from tests.agent_framework.scripted import Scripted

    model = Scripted(*(answer for _, answer in turns))
    provider = KronmemContextProvider(agent_id, url=url, timeout=60, **options)
    agent = Agent(
        client=model,
        name="helper",
        instructions=system or None,
        context_providers=[InMemoryHistoryProvider(), provider],
    )
    session = agent.create_session()
    for words, _ in turns:
        await agent.run(words, session=session)
    await provider.close()
    return [
        [*systems, *(one.text for one in prompt)] for systems, prompt in zip(model.systems, model.prompts, strict=True)
    ]


async def ag2(url: str, agent_id: str, turns: Turns, system: str = "", **options: Any) -> list[list[str]]:
    from ag2 import Agent

    from kronmem.ag2 import KronmemPlugin
    from tests.ag2.scripted import Scripted, text

    model = Scripted(*(answer for _, answer in turns))
    plugin = KronmemPlugin(agent_id, url=url, timeout=60, **options)
    ask: Any = Agent("helper", system or (), config=model, plugins=[plugin]).ask
    for words, _ in turns:
        ask = (await ask(words)).ask
    await plugin.close()
    return [[*systems, *map(text, prompt)] for systems, prompt in zip(model.systems, model.prompts, strict=True)]


CHATS: dict[str, Any] = {one.__name__: one for one in (classic, agentchat, agent_framework, ag2)}
