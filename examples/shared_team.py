"""A team on one memory, and a private one beside it: the agent_id decides who knows what."""

import asyncio
import json

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

from kronmem import AsyncClient
from kronmem.agentchat import KronMemory, remember_run


def model(*answers: str | CreateResult) -> ReplayChatCompletionClient:
    can = ModelInfo(vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False)
    return ReplayChatCompletionClient(answers, model_info=can)


def call(tool: str, **arguments: str) -> CreateResult:
    wanted = FunctionCall(id="1", name=tool, arguments=json.dumps(arguments))
    usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
    return CreateResult(finish_reason="function_calls", content=[wanted], usage=usage, cached=False)


async def main() -> None:
    async with AsyncClient.local(":memory:") as client:
        team_memory = KronMemory("team-7", client=client)
        private = KronMemory("team-7.planner", client=client)
        planner = AssistantAgent(
            "planner",
            model(
                call("remember", content="The launch is on the 12th of May"),
                "The date is in our memory now.",
                call("my_remember", content="I doubt the launch date in May"),
                "Noted for myself.",
            ),
            memory=[team_memory, private],
            tools=[*team_memory.tools(), *private.tools(prefix="my_")],
            reflect_on_tool_use=True,
        )
        writer = AssistantAgent("writer", model("Save the date!", "12th of May it is."), memory=[team_memory])
        team = RoundRobinGroupChat([planner, writer], max_turns=4)
        result = await team.run(task="When is the launch? We decided to send invitations by post.")
        for message in result.messages:
            if type(message).__name__ in ("TextMessage", "MemoryQueryEvent"):
                text = message.content if isinstance(message.content, str) else [one.content for one in message.content]
                print(f"{message.source}: {text}")
        print("facts kept of the run:", await remember_run(team_memory, result, sources={"user"}))
        for memory in (team_memory, private):
            print(f"{memory.agent_id}:", sorted([one.content async for one in client.memories(memory.agent_id)]))


asyncio.run(main())
