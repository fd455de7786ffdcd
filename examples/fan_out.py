"""Twenty agents, ten questions: all two hundred recalls before the team starts, one by one and at once.

The embedded engine stands in for a service: every request travels for five milliseconds, as to a near data centre.
"""

import asyncio
import time

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import UserMessage
from autogen_ext.models.replay import ReplayChatCompletionClient

from kronmem import AsyncClient, Hit
from kronmem.core.wire import Reply, Request
from kronmem.text.fence import render
from kronmem.transport.local import open_sqlite

AGENTS = [f"agent_{number}" for number in range(20)]
TOPICS = ["billing", "login", "refunds", "shipping", "search", "mobile", "export", "pricing", "support", "backups"]
QUESTIONS = [f"What do we know about {topic}?" for topic in TOPICS]


class FiveMillisecondsAway:
    """A transport: what `AsyncClient(transport=…)` sends its requests through."""

    near = open_sqlite(":memory:")

    async def asend(self, request: Request) -> Reply:
        await asyncio.sleep(0.005)
        return await self.near.asend(request)

    async def aclose(self) -> None:
        await self.near.aclose()


async def one_by_one(client: AsyncClient) -> list[dict[str, list[Hit]]]:
    found: list[dict[str, list[Hit]]] = []
    for question in QUESTIONS:
        found.append({agent: await client.recall(agent, question, 1) for agent in AGENTS})
    return found


async def at_once(client: AsyncClient) -> list[dict[str, list[Hit]]]:
    return list(await asyncio.gather(*(client.recall_across(AGENTS, question, 1) for question in QUESTIONS)))


def texts(found: list[dict[str, list[Hit]]]) -> list[str]:
    return [hit.content for answers in found for hits in answers.values() for hit in hits]


async def main() -> None:
    async with AsyncClient("sqlite://", transport=FiveMillisecondsAway()) as client:
        await asyncio.gather(
            *(client.remember_many(agent, [f"{agent} handles {topic}" for topic in TOPICS]) for agent in AGENTS)
        )
        start = time.perf_counter()
        slowly = await one_by_one(client)
        middle = time.perf_counter()
        found = await at_once(client)
        gain = (middle - start) / (time.perf_counter() - middle)
        print(f"{len(QUESTIONS)} questions to {len(AGENTS)} agents: {len(texts(found))} memories")
        print("the same ones both ways:", "yes" if texts(found) == texts(slowly) else "no")
        print(f"asking at once was {gain:.1f} times as fast as one by one")
        (billing, *_) = await client.recall_many(AGENTS[0], QUESTIONS)
        print("first agent, first question:", billing[0].content)

    team = RoundRobinGroupChat([prepared(agent, found) for agent in AGENTS], max_turns=len(AGENTS))
    result = await team.run(task="Is everybody ready?")
    print(f"{len(result.messages) - 1} agents answered, each with {len(QUESTIONS)} memories at hand")


def prepared(agent: str, found: list[dict[str, list[Hit]]]) -> AssistantAgent:
    """An agent that knows before it is asked: its memories are the first message of its context, as data."""
    block = render([hit for answers in found for hit in answers[agent]], source=agent)
    context = UnboundedChatCompletionContext([UserMessage(content=block, source="memory")])
    return AssistantAgent(agent, ReplayChatCompletionClient(["Ready."]), model_context=context)


asyncio.run(main())
