"""Teams on one agent_id: what one agent stores, every other one recalls."""

from __future__ import annotations

import gc
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import MagenticOneGroupChat, RoundRobinGroupChat, SelectorGroupChat, Swarm

from kronmem import AsyncClient
from kronmem.agentchat import KronMemory
from tests.agentchat.scripted import Scripted, blocks, call

pytestmark = pytest.mark.anyio

TASK = "Remember for the next one: I like green tea. Which tea do I like?"


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient("sqlite://") as client:
        yield client


class Pair:
    """A writer that stores by tool and a reader that answers, on one memory."""

    def __init__(self, memory: KronMemory, *, reader_says: str, handoffs: bool = False) -> None:
        remembering = call("remember", content="The user likes green tea")
        answers: list[Any] = [remembering, call("transfer_to_reader")] if handoffs else [remembering, "Noted."]
        self.reads = Scripted(*[reader_says] * 3)
        self.writer = AssistantAgent(
            "writer",
            Scripted(*answers),
            memory=[memory],
            tools=memory.tools(),
            handoffs=["reader"] if handoffs else None,
            reflect_on_tool_use=not handoffs,
            description="writes",
        )
        self.reader = AssistantAgent("reader", self.reads, memory=[memory], description="reads")

    def check(self, result: TaskResult) -> None:
        assert "reader" in [one.source for one in result.messages]
        (block,) = blocks(self.reads.prompts[0])
        assert "The user likes green tea" in block


async def test_round_robin(client: AsyncClient) -> None:
    pair = Pair(KronMemory("team", client=client), reader_says="Green. DONE")
    ending = TextMentionTermination("DONE")
    pair.check(await RoundRobinGroupChat([pair.writer, pair.reader], termination_condition=ending).run(task=TASK))


async def test_selector(client: AsyncClient) -> None:
    pair = Pair(KronMemory("team", client=client), reader_says="Green. DONE")
    team = SelectorGroupChat(
        [pair.writer, pair.reader],
        model_client=Scripted("writer", "reader"),
        termination_condition=TextMentionTermination("DONE"),
    )
    pair.check(await team.run(task=TASK))


async def test_swarm(client: AsyncClient) -> None:
    pair = Pair(KronMemory("team", client=client), reader_says="Green. DONE", handoffs=True)
    ending = TextMentionTermination("DONE") | MaxMessageTermination(20)
    pair.check(await Swarm([pair.writer, pair.reader], termination_condition=ending).run(task=TASK))


def ledger(speaker: str, done: bool, instruction: str) -> str:
    def entry(answer: Any) -> dict[str, Any]:
        return {"reason": "as scripted", "answer": answer}

    return json.dumps(
        {
            "is_request_satisfied": entry(done),
            "is_in_loop": entry(False),
            "is_progress_being_made": entry(True),
            "next_speaker": entry(speaker),
            "instruction_or_question": entry(instruction),
        }
    )


async def test_magentic_one(client: AsyncClient) -> None:
    pair = Pair(KronMemory("team", client=client), reader_says="Green.")
    orchestrator = Scripted(
        "facts",
        "plan",
        ledger("writer", False, "Store the taste in tea"),
        ledger("reader", False, "Which tea does the user like?"),
        ledger("reader", True, "Done"),
        "Green tea.",
    )
    team = MagenticOneGroupChat([pair.writer, pair.reader], model_client=orchestrator, max_turns=8)
    pair.check(await team.run(task=TASK))


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # nobody can reach the memories of a loaded team to close them
async def test_a_team_and_its_memory_survive_the_dump(tmp_path: Any) -> None:
    from autogen_ext.models.replay import ReplayChatCompletionClient

    memory = KronMemory("team", url=f"sqlite:///{tmp_path}/memory.db")
    await memory.agent_memory.remember("The user likes green tea")
    agents = [AssistantAgent(name, ReplayChatCompletionClient(["ok"]), memory=[memory]) for name in ("a", "b")]
    team = RoundRobinGroupChat(list(agents), max_turns=2)
    loaded = RoundRobinGroupChat.load_component(json.loads(team.dump_component().model_dump_json()))
    result = await loaded.run(task="Which tea?")
    recalled = [one for one in result.messages if type(one).__name__ == "MemoryQueryEvent"]
    assert [one.source for one in recalled] == ["a", "b"]
    await memory.close()
    del loaded, result, recalled
    gc.collect()


async def test_one_users_team_never_recalls_for_another(client: AsyncClient) -> None:
    await client.remember("ada", "The user likes green tea")
    model = Scripted("I do not know.")
    agent = AssistantAgent("reader", model, memory=[KronMemory("bob", client=client)])
    await RoundRobinGroupChat([agent], max_turns=1).run(task="Which tea do I like?")
    assert blocks(model.prompts[0]) == []
