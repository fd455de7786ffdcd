"""A swarm: one agent hands the user over to another, and what the first was told the second knows by their memory.

In a `SelectorGroupChat` it is the same. Offline: the models are replayed. With real ones, only `model(…)` changes.
"""

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import SourceMatchTermination
from autogen_agentchat.teams import Swarm
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

from kronmem import AsyncClient
from kronmem.agentchat import KronMemory


def model(*answers: str | CreateResult) -> ReplayChatCompletionClient:
    can = ModelInfo(vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False)
    return ReplayChatCompletionClient(answers, model_info=can)


def hands_over_to(name: str) -> CreateResult:
    wanted = FunctionCall(id="1", name=f"transfer_to_{name}", arguments="{}")
    usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
    return CreateResult(finish_reason="function_calls", content=[wanted], usage=usage, cached=False)


async def chat(client: AsyncClient, task: str, *of_reception: str | CreateResult, cook: str = "") -> None:
    memory = KronMemory("guest-ada", client=client, capture="auto")  # one memory: what is stated to one, all know
    reception = AssistantAgent("reception", model(*of_reception), memory=[memory], handoffs=["cook"])
    kitchen = AssistantAgent("cook", model(cook), memory=[memory])
    team = Swarm([reception, kitchen], termination_condition=SourceMatchTermination(["cook" if cook else "reception"]))
    async for message in team.run_stream(task=task):
        if type(message).__name__ == "MemoryQueryEvent":
            print(f"  ({message.source} is shown: {'; '.join(one.content for one in message.content)})")
        elif type(message).__name__ in ("TextMessage", "HandoffMessage"):
            print(f"{message.source}: {message.content}")


async def main() -> None:
    async with AsyncClient.local(":memory:") as client:
        print("-- monday")
        await chat(client, "Good morning, I am Ada, and I am allergic to peanuts.", "Welcome, Ada!")
        print("-- tuesday, new agents")
        await chat(
            client, "Can I have rice with peanut sauce?", hands_over_to("cook"), cook="Rice and vegetables, no satay."
        )


if __name__ == "__main__":
    asyncio.run(main())
