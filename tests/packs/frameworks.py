"""One face for four frameworks: a turn of a user with an agent that has this memory, and everything its model saw.

Each imports its framework when it is made. The agents are new in every turn; the memory object stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, Protocol

from anyio import to_thread

from kronmem import Client

Answer = str | tuple[str, dict[str, Any]]


@dataclass
class Seen:
    """The answer of a turn, the texts of each prompt, the answers of tools, and the texts that the history keeps."""

    answer: str
    prompts: list[list[str]]
    results: list[str] = field(default_factory=list)
    history: list[str] = field(default_factory=list)


class Framework(Protocol):
    """A memory in the shape of one framework, made with `(agent_id, url, timeout)`."""

    async def turn(self, words: str, *answers: Answer) -> Seen: ...
    async def close(self) -> None: ...


class AgentFramework:
    def __init__(self, agent_id: str | Callable[[], str], url: str, timeout: float) -> None:
        from kronmem.agent_framework import KronmemContextProvider

        self.provider = KronmemContextProvider(agent_id, url=url, timeout=timeout, capture="all")

    async def turn(self, words: str, *answers: Answer) -> Seen:
        from agent_framework import Agent, InMemoryHistoryProvider

        from tests.agent_framework import scripted

        model, history = scripted.Scripted(*answers), InMemoryHistoryProvider()
        agent = Agent(client=model, name="helper", context_providers=[history, self.provider])
        session = agent.create_session()
        answer = await agent.run(words, session=session)
        kept = await history.get_messages(session.session_id, state=session.state[history.source_id])
        texts = [[message.text for message in prompt] for prompt in model.prompts]
        return Seen(answer.text, texts, scripted.results(model.prompts[-1]), [one.text for one in kept])

    async def close(self) -> None:
        await self.provider.close()


class Ag2:
    middleware: Sequence[Any] = ()

    def __init__(self, agent_id: str | Callable[[], str], url: str, timeout: float) -> None:
        from kronmem.ag2 import KronmemPlugin

        self.plugin = KronmemPlugin(agent_id, url=url, timeout=timeout, capture="all")

    async def turn(self, words: str, *answers: Answer) -> Seen:
        from ag2 import Agent

        from tests.ag2 import scripted

        model = scripted.Scripted(*answers)
        reply = await Agent("helper", config=model, plugins=[self.plugin], middleware=self.middleware).ask(words)
        texts = [[scripted.text(event) for event in prompt] for prompt in model.prompts]
        kept = [scripted.text(event) for event in await reply.history.get_events()]
        return Seen(reply.body, texts, scripted.results(model.prompts[-1]), kept)

    async def close(self) -> None:
        await self.plugin.close()


class AgentChat:
    def __init__(self, agent_id: str | Callable[[], str], url: str, timeout: float) -> None:
        from kronmem.agentchat import KronMemory

        self.memory = KronMemory(agent_id, url=url, timeout=timeout)  # type: ignore[arg-type] # a callable works

    async def turn(self, words: str, *answers: Answer) -> Seen:
        from autogen_agentchat.agents import AssistantAgent
        from autogen_agentchat.messages import BaseChatMessage
        from autogen_core.models import FunctionExecutionResult

        from kronmem import KronmemError
        from kronmem.agentchat import remember_run
        from tests.agentchat.scripted import Scripted, call

        model = Scripted(*(one if isinstance(one, str) else call(one[0], **one[1]) for one in answers))
        agent = AssistantAgent(
            "helper", model, memory=[self.memory], tools=[*self.memory.tools()], reflect_on_tool_use=True
        )
        result = await agent.run(task=words)
        with suppress(KronmemError):  # there is no hook around a run: users capture a finished one, and see the error
            await remember_run(self.memory, result, extract=lambda text: [text])
        texts = [[_text(one.content) for one in prompt] for prompt in model.prompts]
        parts = [part for one in model.prompts[-1] if isinstance(one.content, list) for part in one.content]
        outputs = [part.content for part in parts if isinstance(part, FunctionExecutionResult)]
        history = [one.to_text() for one in result.messages if isinstance(one, BaseChatMessage)]
        return Seen(result.messages[-1].to_text(), texts, outputs, history)

    async def close(self) -> None:
        await self.memory.close()


class Classic:
    def __init__(self, agent_id: str | Callable[[], str], url: str, timeout: float) -> None:
        self.client, self.timeout = Client(url), timeout
        self.memory = self.client.agent(agent_id)

    async def turn(self, words: str, *answers: Answer) -> Seen:
        return await to_thread.run_sync(partial(self._turn, words, answers))

    def _turn(self, words: str, answers: Sequence[Answer]) -> Seen:
        from kronmem import memory_tools
        from kronmem.autogen import attach_memory
        from tests.autogen.agents import assistant, contents, user
        from tests.services.openai import OpenAIServer, ToolCall

        script = iter([f"{one} TERMINATE" if isinstance(one, str) else ToolCall(*one) for one in answers])
        with OpenAIServer(lambda _: next(script)) as server:
            helper, person = assistant(server), user()
            for function in memory_tools(self.memory, timeout=self.timeout).functions():
                helper.register_for_llm()(function)
                person.register_for_execution()(function)
            with attach_memory(self.memory, [helper, person], timeout=self.timeout, capture="all"):
                person.initiate_chat(helper, message=words, silent=True)
            results = contents([one for one in server.prompts[-1] if one["role"] == "tool"])
            answer = str(helper.last_message(person)["content"]).removesuffix(" TERMINATE")
            history = [*contents(helper.chat_messages[person]), *contents(person.chat_messages[helper])]
            return Seen(answer, [contents(prompt) for prompt in server.prompts], results, history)

    async def close(self) -> None:
        await to_thread.run_sync(self.client.close)


FRAMEWORKS: dict[str, tuple[type[Any], tuple[str, ...]]] = {
    "classic": (Classic, ("autogen",)),
    "agentchat": (AgentChat, ("autogen_agentchat", "autogen_ext")),
    "agent_framework": (AgentFramework, ("agent_framework",)),
    "ag2": (Ag2, ("ag2",)),
}


def missing(name: str) -> Iterable[str]:
    """The modules of a framework that are not installed."""
    return [module for module in FRAMEWORKS[name][1] if find_spec(module) is None]


def _text(content: object) -> str:
    return content if isinstance(content, str) else ""
