"""Moving house with the memory: four frameworks and a protocol, one file of memories.

Classic AutoGen and AutoGen 0.4+ write it, AG2 1.x adds to it, Agent Framework and an MCP client read it. Offline: the
models are scripted; only they change for real use.
"""

import asyncio
import os
import sys
import tempfile

import ag2
from ag2.testing import TestConfig
from agent_framework import Agent
from autogen import ConversableAgent
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.replay import ReplayChatCompletionClient
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from scripted_client import ScriptedClient

from kronmem import AsyncClient, Client
from kronmem.ag2 import KronmemPlugin
from kronmem.agent_framework import KronmemContextProvider
from kronmem.agentchat import KronMemory
from kronmem.autogen import attach_memory

TEAM = "team-7"


def classic_autogen() -> None:
    user, assistant = (ConversableAgent(name, llm_config=False, human_input_mode="NEVER") for name in ("user", "bot"))
    with Client() as client, attach_memory(client.agent(TEAM), [assistant, user]):
        user.send("We decided to publish the report in French.", assistant, request_reply=False, silent=True)


async def others() -> None:
    async with AsyncClient() as client:
        memory = KronMemory(TEAM, client=client, capture="auto")
        await AssistantAgent("clerk", ReplayChatCompletionClient(["Noted."]), memory=[memory]).run(
            task="The launch of the report is on the 12th of May."
        )
        plugin = KronmemPlugin(TEAM, client=client)
        await ag2.Agent("printer", config=TestConfig("Fine."), plugins=[plugin]).ask(
            "We print forty copies of the report."
        )
        provider = KronmemContextProvider(TEAM, client=client)
        reader = Agent(client=ScriptedClient(), context_providers=[provider])
        print("agent framework:", (await reader.run("In which language do we publish the report?")).text)


async def mcp_client(query: str) -> None:
    command = ["-m", "kronmem", "mcp", "--agent", TEAM]
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        answer = await session.call_tool("recall", {"query": query})
        print("mcp client:", *sorted(line.partition("] ")[2] for line in answer.content[0].text.splitlines()[1:]))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["KRONMEM_HOME"] = home
        classic_autogen()
        asyncio.run(others())
        asyncio.run(mcp_client("report: language, launch and copies"))
