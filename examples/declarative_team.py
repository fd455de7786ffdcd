"""A team written to JSON, loaded in a new process, and its memory is still there. No key is in the file.

AutoGen versions that check providers need AUTOGEN_ALLOWED_PROVIDER_NAMESPACES=kronmem to load such a file.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import ComponentModel
from autogen_core.models import ModelInfo
from autogen_ext.models.replay import ReplayChatCompletionClient

from kronmem.agentchat import KronMemory

CAN = ModelInfo(vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False)


async def write(file: Path) -> None:
    memory = KronMemory("team-7", url=f"sqlite:///{file.parent}/memory.db")
    await memory.agent_memory.remember("The customer wants invoices as PDF", "preference")
    clerk = AssistantAgent(
        "clerk",
        ReplayChatCompletionClient(["I will send a PDF."], model_info=CAN),
        memory=[memory],
        tools=memory.tools(),
    )
    team = RoundRobinGroupChat([clerk], max_turns=1)
    file.write_text(team.dump_component().model_dump_json(indent=2))
    await memory.close()
    print("components of kronmem in the file:", file.read_text().count('"provider": "kronmem.agentchat.'))


async def load(file: Path) -> None:
    team = RoundRobinGroupChat.load_component(ComponentModel.model_validate_json(file.read_text()))
    for message in (await team.run(task="How shall I send the invoices?")).messages:
        text = message.content if isinstance(message.content, str) else [one.content for one in message.content]
        print(f"{message.source}: {text}")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        asyncio.run({"write": write, "load": load}[sys.argv[1]](Path(sys.argv[2])))
    else:
        allowed = {**os.environ, "AUTOGEN_ALLOWED_PROVIDER_NAMESPACES": "kronmem"}
        with tempfile.TemporaryDirectory() as place:
            for step in ("write", "load"):
                print(f"-- {step}, a process of its own", flush=True)
                subprocess.run([sys.executable, __file__, step, f"{place}/team.json"], check=True, env=allowed)
