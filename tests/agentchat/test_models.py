"""End to end: a real model client over a real socket, with a real tool call in between."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient

from kronmem import AsyncClient
from kronmem.agentchat import KronMemory
from kronmem.text.fence import is_fenced
from tests.agentchat.scripted import info
from tests.services import RawServer
from tests.services.openai import OpenAIServer, call
from tests.services.raw import respond

pytestmark = pytest.mark.anyio


def model(body: dict[str, Any]) -> Any:
    """Stores what it is told, and answers from what it is reminded of."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return "Noted."
    if "remember" in str(last["content"]):
        return call("remember", content="The user likes green tea", tags=["drinks"])
    return "Green tea." if "green tea" in str(body["messages"]) else "I do not know."


async def test_an_openai_model_stores_by_tool_and_is_reminded_in_the_user_role() -> None:
    with OpenAIServer(model) as server:
        async with AsyncClient("sqlite://") as client:
            memory = KronMemory("ada", client=client)
            openai = OpenAIChatCompletionClient(
                model="scripted", api_key="none", base_url=server.base_url, model_info=info()
            )
            first = AssistantAgent("ada", openai, memory=[memory], tools=memory.tools(), reflect_on_tool_use=True)
            await first.run(task="Please remember that I like green tea")
            second = AssistantAgent("ada", openai, memory=[memory], tools=memory.tools())
            answer = (await second.run(task="Which tea do I like?")).messages[-1]
            assert answer.content == "Green tea."  # type: ignore[attr-defined] -- a text message
            await openai.close()
        prompt = server.prompts[-1]
        assert [one["role"] for one in prompt] == ["system", "user", "user"]
        assert is_fenced(prompt[1]["content"])
        assert prompt[2]["content"] == "Which tea do I like?"
        names = [one["function"]["name"] for one in server.bodies[0]["tools"]]
        assert names == ["remember", "recall", "forget"]


ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "scripted",
    "content": [{"type": "text", "text": "Green tea."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


@pytest.mark.skipif(find_spec("anthropic") is None, reason="needs autogen-ext[anthropic] and anthropic<1")
async def test_anthropic_accepts_every_turn() -> None:
    from autogen_ext.models.anthropic import AnthropicChatCompletionClient

    with RawServer([respond(200, body=ANSWER)]) as server:
        async with AsyncClient("sqlite://") as client:
            await client.remember("ada", "The user likes green tea")
            anthropic = AnthropicChatCompletionClient(
                model="scripted", api_key="none", base_url=server.url, model_info=info(single_system=True)
            )
            agent = AssistantAgent("ada", anthropic, memory=[KronMemory("ada", client=client)])
            for _ in range(3):
                result = await agent.run(task="Which tea do I like?")
                assert result.messages[-1].content == "Green tea."  # type: ignore[attr-defined] -- a text message
            await anthropic.close()
        for request in server.requests:
            assert "memory source" not in str(request.body["system"])
            assert str(request.body["messages"]).count("<memory source=") == 1
