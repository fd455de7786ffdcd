"""Real AssistantAgents with memory: one block a turn, tool calls that store, models with one system message."""

from __future__ import annotations

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken
from autogen_core.model_context import BufferedChatCompletionContext
from autogen_core.models import SystemMessage

from kronmem import AsyncClient
from kronmem.agentchat import KronMemory
from kronmem.packs.toolset import TYPE
from tests.agentchat.scripted import Scripted, blocks, call, kinds

pytestmark = pytest.mark.anyio


async def test_ten_turns_hold_one_block_each_and_nothing_piles_up() -> None:
    async with AsyncClient("sqlite://") as client:
        await client.remember("ada", "The user likes green tea")
        model = Scripted(*["Green tea."] * 10)
        agent = AssistantAgent("ada", model, memory=[KronMemory("ada", client=client)])
        for turn in range(10):
            result = await agent.run(task=f"Which tea, in turn {turn}?")
            assert kinds(result.messages) == ["TextMessage", "MemoryQueryEvent", "TextMessage"]
        assert [len(blocks(prompt)) for prompt in model.prompts] == [1] * 10
        assert [len(prompt) for prompt in model.prompts] == [1 + 2 * turn + 2 for turn in range(10)]


async def test_a_model_with_one_system_message_gets_no_second_one() -> None:
    async with AsyncClient("sqlite://") as client:
        await client.remember("ada", "The user likes green tea")
        model = Scripted(*["Green tea."] * 3, single_system=True)
        agent = AssistantAgent(
            "ada",
            model,
            memory=[KronMemory("ada", client=client)],
            model_context=BufferedChatCompletionContext(4),
        )
        for _ in range(3):
            await agent.run(task="Which tea?")
        for prompt in model.prompts:
            assert [at for at, one in enumerate(prompt) if isinstance(one, SystemMessage)] == [0]
            assert len(blocks(prompt)) == 1


async def test_what_one_agent_stores_by_tool_another_recalls() -> None:
    async with AsyncClient("sqlite://") as client:
        memory = KronMemory("team", client=client)
        writer = AssistantAgent(
            "writer",
            Scripted(call("remember", content="The user likes green tea", memory_type="preference"), "Noted."),
            tools=memory.tools(),
            reflect_on_tool_use=True,
        )
        result = await writer.run(task="I like green tea")
        assert kinds(result.messages)[-3:] == ["ToolCallRequestEvent", "ToolCallExecutionEvent", "TextMessage"]
        reader = AssistantAgent("reader", Scripted(call("recall", query="which tea?", limit="3")), tools=memory.tools())
        answer = (await reader.run(task="What do I like?")).messages[-1]
        assert "The user likes green tea" in answer.content  # type: ignore[operator, attr-defined] -- a text message
        (stored,) = [one async for one in client.memories("team")]
        forgetting = AssistantAgent("f", Scripted(call("forget", memory_id=stored.id)), tools=memory.tools())
        assert (await forgetting.run(task="Forget it")).messages[-1].content == "Forgotten."  # type: ignore[attr-defined] -- as above
        assert [one async for one in client.memories("team")] == []


async def test_an_agent_holds_shared_and_private_memory_side_by_side() -> None:
    async with AsyncClient("sqlite://") as client:
        shared, private = KronMemory("team", client=client), KronMemory("team.ada", client=client)
        await client.remember("team", "The team meets on Mondays")
        model = Scripted(call("my_remember", content="Ada leaves early on Mondays"), "Noted.", "Monday.")
        agent = AssistantAgent(
            "ada",
            model,
            memory=[shared, private],
            tools=[*shared.tools(), *private.tools(prefix="my_")],
            reflect_on_tool_use=True,
        )
        await agent.run(task="Keep it to yourself that I leave early on Mondays")
        await agent.run(task="When do we meet, and does Ada leave early on Mondays?")
        first, second = blocks(model.prompts[-1])
        assert ("meets on Mondays" in first, "leaves early" in second) == (True, True)
        assert [one.content async for one in client.memories("team")] == ["The team meets on Mondays"]


async def test_tools_speak_in_the_words_of_kronmem_and_take_what_models_send() -> None:
    async with AsyncClient("sqlite://") as client:
        memory = KronMemory("ada", client=client)
        for tool, schema in zip(memory.tools("x_"), memory.functions("x_").schemas(), strict=True):
            described = schema["function"]
            assert isinstance(described, dict)
            assert (tool.name, tool.description) == (described["name"], described["description"])
            ours = tool.schema["parameters"]["properties"]
            theirs = described["parameters"]["properties"]  # type: ignore[index, call-overload] -- JSON
            assert {name: one["description"] for name, one in ours.items()} == {
                name: one.get("description", TYPE)  # type: ignore[union-attr] -- JSON
                for name, one in theirs.items()  # type: ignore[union-attr] -- JSON
            }
        remember, recall, _ = memory.tools()
        answer = await remember.run_json(
            {"content": {"tea": "green"}, "tags": "a, b", "ttl_days": "7"}, CancellationToken()
        )
        assert remember.return_value_as_string(answer).startswith("Stored (id ")
        answer = await recall.run_json({"query": "tea", "limit": "many", "tags": "a"}, CancellationToken())
        assert '{"tea": "green"}' in recall.return_value_as_string(answer)
        answer = await recall.run_json({"query": "tea", "importance": 3}, CancellationToken())
        assert recall.return_value_as_string(answer).endswith("(Ignored, unknown here: importance.)")
        assert "additionalProperties" not in str(recall.schema) or "True" not in str(recall.schema)
        assert [tool.name for tool in memory.tools(only=["recall"])] == ["recall"]


async def test_a_tool_recalls_what_its_memory_reads_and_cannot_delete_it() -> None:
    async with AsyncClient("sqlite://") as client:
        stored = await client.remember("company", "Tea is free on Fridays")
        _, recall, forget = KronMemory("ada", read_from=["company"], client=client).tools()
        answer = await recall.run_json({"query": "tea"}, CancellationToken())
        assert "Tea is free on Fridays" in recall.return_value_as_string(answer)
        answer = await forget.run_json({"memory_id": stored.id}, CancellationToken())
        assert forget.return_value_as_string(answer) == "There is no memory with that id."
        assert len([one async for one in client.memories("company")]) == 1
