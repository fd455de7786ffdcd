"""Two processes, one memory: an assistant stores what it is told, and a later process is reminded of it.

Offline: the model is replayed. With a real one, only `model(...)` changes.
"""

import asyncio
import os
import subprocess
import sys
import tempfile

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

from kronmem.agentchat import KronMemory


def model(*answers: str | CreateResult) -> ReplayChatCompletionClient:
    can = ModelInfo(vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False)
    return ReplayChatCompletionClient(answers, model_info=can)


async def talk(task: str, *answers: str | CreateResult) -> None:
    memory = KronMemory("user-ada")
    assistant = AssistantAgent(
        "assistant", model(*answers), memory=[memory], tools=memory.tools(), reflect_on_tool_use=True
    )
    for message in (await assistant.run(task=task)).messages:
        kind = type(message).__name__
        if kind == "MemoryQueryEvent":
            print("recalled:", *(one.content for one in message.content))
        elif kind == "TextMessage":
            print(f"{message.source}: {message.content}")
    await memory.close()


def monday() -> None:
    storing = FunctionCall(id="1", name="remember", arguments='{"content": "Ada is allergic to peanuts"}')
    usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
    call = CreateResult(finish_reason="function_calls", content=[storing], usage=usage, cached=False)
    asyncio.run(talk("I am allergic to peanuts.", call, "I will keep that in mind."))


def tuesday() -> None:
    asyncio.run(talk("Is Ada allergic to anything?", "Yes, to peanuts."))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        {"monday": monday, "tuesday": tuesday}[sys.argv[1]]()
    else:
        with tempfile.TemporaryDirectory() as home:  # a home of its own, so that a second run starts afresh
            for day in ("monday", "tuesday"):
                print(f"-- {day}, a process of its own", flush=True)
                subprocess.run([sys.executable, __file__, day], check=True, env={**os.environ, "KRONMEM_HOME": home})
