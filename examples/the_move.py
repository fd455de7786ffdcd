"""Moving house with the memory: five programs of four frameworks and a protocol, one file of memories.

A team of classic AutoGen remembers, an AutoGen 0.4+ assistant adds to it, an agent of Microsoft Agent Framework and one
of AG2 1.x answer from it, and an MCP client reads it. Offline: the models are scripted; only they change for real use.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Iterable

import ag2
from ag2.events import ModelMessage, ModelRequest, ModelResponse, TextInput
from ag2.testing import TestConfig
from agent_framework import Agent, BaseChatClient, ChatResponse, FunctionInvocationLayer, Message
from autogen import ConversableAgent, GroupChat, GroupChatManager, UserProxyAgent
from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from scripted_model import scripted_model

from kronmem import Client
from kronmem.ag2 import KronmemPlugin
from kronmem.agent_framework import KronmemContextProvider
from kronmem.agentchat import KronMemory
from kronmem.autogen import register_team_memory

TEAM = "team-7"
LANGUAGE = "The team decided to publish the report in French."
LAUNCH = "The launch of the report is on the 12th of May."


def from_notes(texts: Iterable[str]) -> str:
    """A model that repeats the first note in its prompt."""
    notes = [text for text in texts if text.startswith("<memory")]
    return notes[-1].splitlines()[2].partition(") ")[2] if notes else "I have no notes about that."


# ── before the move ──────────────────────────────────────────────────────────────────────────────────────────────


def classic_team() -> str:
    def script(messages: list[dict]) -> str | tuple[str, dict]:
        done = any(one["role"] == "tool" for one in messages)
        return "It is decided. TERMINATE" if done else ("remember", {"content": LANGUAGE, "memory_type": "decision"})

    with Client() as client, scripted_model(script) as llm_config:
        options = {"llm_config": llm_config, "human_input_mode": "NEVER"}
        team = [ConversableAgent(name, **options) for name in ("researcher", "writer")]
        user = UserProxyAgent("user", human_input_mode="NEVER", code_execution_config=False)
        group = GroupChat([user, *team], messages=[], max_round=4, speaker_selection_method="round_robin")
        manager = GroupChatManager(group, llm_config=llm_config)
        register_team_memory(client.agent(TEAM), manager, executor=user)
        user.initiate_chat(manager, message="Decide on the language of the report.")
        return group.messages[-1]["content"].removesuffix(" TERMINATE")


async def agentchat_assistant() -> str:
    call = FunctionCall(id="1", name="remember", arguments=json.dumps({"content": LAUNCH}))
    usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
    remember = CreateResult(finish_reason="function_calls", content=[call], usage=usage, cached=False)
    can = ModelInfo(vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False)
    model = ReplayChatCompletionClient([remember, "Noted."], model_info=can)
    memory = KronMemory(TEAM)
    assistant = AssistantAgent("assistant", model, memory=[memory], tools=memory.tools(), reflect_on_tool_use=True)
    result = await assistant.run(task="We launch on the 12th of May.")
    await memory.close()
    return result.messages[-1].to_text()


# ── after the move ───────────────────────────────────────────────────────────────────────────────────────────────


class AgentFrameworkModel(FunctionInvocationLayer, BaseChatClient):
    def _inner_get_response(self, *, messages: list[Message], **_: object) -> Awaitable[ChatResponse]:
        async def answer() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", [from_notes(message.text for message in messages)])])

        return answer()


async def agent_framework_agent(question: str) -> str:
    memory = KronmemContextProvider(TEAM)
    answer = await Agent(client=AgentFrameworkModel(), context_providers=[memory]).run(question)
    await memory.close()
    return answer.text


class Ag2Model(TestConfig):
    def create(self) -> "Ag2Model":
        return self

    async def __call__(self, messages: list, context: ag2.Context, **_: object) -> ModelResponse:
        parts = [part for event in messages if isinstance(event, ModelRequest) for part in event.parts]
        answer = ModelMessage(from_notes(part.content for part in parts if isinstance(part, TextInput)))
        await context.send(answer)
        return ModelResponse(answer)


async def ag2_agent(question: str) -> str:
    memory = KronmemPlugin(TEAM)
    reply = await ag2.Agent("assistant", config=Ag2Model(), plugins=[memory]).ask(question)
    await memory.close()
    return reply.body


async def mcp_client(query: str) -> list[str]:
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "kronmem", "mcp", "--agent", TEAM], env=dict(os.environ)
    )
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        answer = await session.call_tool("recall", {"query": query})
        return [line.partition("] ")[2] for line in answer.content[0].text.splitlines()[1:]]


async def after() -> None:
    print("agent framework:", await agent_framework_agent("In which language do we publish the report?"))
    print("ag2 1.x:", await ag2_agent("On which day is the launch of the report?"))
    notes = await mcp_client("report: language and launch")
    print("mcp client finds both:", {LANGUAGE, LAUNCH} <= set(notes))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["KRONMEM_HOME"] = home
        print("classic autogen:", classic_team())
        print("autogen 0.4+:", asyncio.run(agentchat_assistant()))
        asyncio.run(after())
