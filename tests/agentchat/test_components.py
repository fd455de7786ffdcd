"""Dump and load: through JSON, into another process, without a key or a password in between."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken, ComponentModel
from autogen_core.memory import Memory, MemoryContent
from autogen_core.tools import BaseTool
from pydantic import ValidationError

from kronmem import AsyncClient, ConfigError
from kronmem.agentchat import ForgetTool, KronMemory, RecallTool, RememberTool
from tests.agentchat.scripted import Scripted, blocks

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parent.parent.parent
SECRET = "kv-secret-0123456789"


def through_json(component: Any) -> ComponentModel:
    return ComponentModel.model_validate_json(component.dump_component().model_dump_json())


async def test_a_memory_keeps_every_setting(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    options: Any = {"limit": 3, "threshold": 0.2, "timeout": 1.5, "capture": "user"}
    memory = KronMemory("ada", url=url, session_id="s", read_from=["company"], **options)
    dumped = through_json(memory)
    assert dumped.provider == "kronmem.agentchat.KronMemory"
    assert dumped.component_type == "memory"
    loaded = Memory.load_component(dumped)
    assert isinstance(loaded, KronMemory)
    assert loaded.config() == memory.config()
    assert loaded.config().capture == "user"
    with pytest.raises(ConfigError, match='use capture="auto"'):
        KronMemory("ada", url=url, capture=str.split).dump_component()


async def test_loaded_memories_of_one_agent_id_share_what_they_know(tmp_path: Path) -> None:
    dumped = through_json(KronMemory("team", url=f"sqlite:///{tmp_path}/memory.db"))
    first, second = Memory.load_component(dumped), Memory.load_component(dumped)
    await first.add(MemoryContent(content="The user likes green tea", mime_type="text/plain"))
    assert [one.content for one in (await second.query("tea")).results] == ["The user likes green tea"]
    for memory in (first, second):
        await memory.close()


@pytest.mark.parametrize("kind", [RememberTool, RecallTool, ForgetTool])
async def test_a_tool_survives_the_dump(kind: Any, tmp_path: Path) -> None:
    tool = kind(KronMemory("ada", url=f"sqlite:///{tmp_path}/memory.db"), prefix="my_")
    loaded = BaseTool.load_component(through_json(tool))
    assert type(loaded) is kind
    assert (loaded.name, loaded.description, loaded.schema) == (tool.name, tool.description, tool.schema)
    assert loaded.memory.config() == tool.memory.config()


LOADING = """
import asyncio, json, sys
from autogen_agentchat.agents import AssistantAgent
from kronmem.agentchat import KronMemory

async def main():
    agent = AssistantAgent.load_component(json.loads(sys.stdin.read()))
    print(json.dumps([one.content for one in (await agent.run(task="Which tea?")).messages if one.source == "ada"], default=str))

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_whole_agent_remembers_in_another_process(tmp_path: Path) -> None:
    memory = KronMemory("team", url=f"sqlite:///{tmp_path}/memory.db")
    remember, *_ = memory.tools()
    await remember.run_json({"content": "The user likes green tea"}, CancellationToken())
    from autogen_ext.models.replay import ReplayChatCompletionClient

    agent = AssistantAgent("ada", ReplayChatCompletionClient(["Green."]), memory=[memory])
    config = agent.dump_component().model_dump_json()
    await memory.close()
    done = subprocess.run(
        [sys.executable, "-c", LOADING], input=config, capture_output=True, text=True, check=True, cwd=ROOT
    )
    recalled, answer = json.loads(done.stdout)
    assert "The user likes green tea" in str(recalled)
    assert answer == "Green."


@pytest.mark.parametrize(
    "environment",
    [
        {"KRONVEX_API_KEY": SECRET},
        {"KRONMEM_URL": "https://memory.example", "KRONMEM_API_KEY": SECRET},
    ],
    ids=["kronvex", "service"],
)
def test_a_dump_names_the_variable_and_never_the_key(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    memory = KronMemory("ada")
    for component in (memory, *memory.tools()):
        dumped = component.dump_component().model_dump_json()
        assert SECRET not in dumped
        assert json.loads(dumped)["config"]["api_key_env"] == list(environment)[-1]
        assert SECRET not in repr(component)
    dumped_memory = through_json(memory)
    KronMemory.load_component(dumped_memory)
    for name in environment:
        monkeypatch.delenv(name)
    with pytest.raises(ConfigError, match=list(environment)[-1]):
        KronMemory.load_component(dumped_memory)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:{SECRET}@db/kronmem",
        f"postgresql://{SECRET}@db/kronmem",
        f"postgresql://db/kronmem?user=u&password={SECRET}",
        f"postgresql://db/kronmem?sslpassword={SECRET}",
    ],
)
def test_a_url_with_a_password_is_not_dumped(url: str) -> None:
    memory = KronMemory("ada", url=url)
    for component in (memory, *memory.tools()):
        with pytest.raises(ConfigError, match="KRONMEM_URL") as caught:
            component.dump_component()
        assert SECRET not in str(caught.value)
        assert SECRET not in repr(component)


def test_what_another_process_could_not_open_is_not_dumped() -> None:
    with pytest.raises(ConfigError, match="in-memory"):
        KronMemory("ada", url="sqlite://").dump_component()
    with pytest.raises(ConfigError, match="client="):
        KronMemory("ada", client=AsyncClient("https://memory.example", api_key=SECRET)).dump_component()


def test_a_key_written_into_a_config_by_hand_is_refused_and_not_shown(tmp_path: Path) -> None:
    dumped = through_json(KronMemory("ada", url=f"sqlite:///{tmp_path}/memory.db"))
    dumped.config["api_key"] = SECRET
    with pytest.raises(ValidationError) as caught:
        KronMemory.load_component(dumped)
    assert SECRET not in str(caught.value)


def test_a_config_cannot_send_any_variable_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRONVEX_API_KEY", SECRET)
    config = {"agent_id": "ada", "url": "https://evil.example", "api_key_env": "KRONVEX_API_KEY"}
    with pytest.raises(ConfigError):
        KronMemory.load_component({"provider": "kronmem.agentchat.KronMemory", "config": config})


@pytest.mark.parametrize("missing", ["autogen_core", "autogen_agentchat"])
def test_without_autogen_the_import_says_what_to_install(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; import kronmem.agentchat"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    assert "ImportError: kronmem.agentchat needs autogen-agentchat" in done.stderr


async def test_a_loaded_agent_with_tools_still_remembers(tmp_path: Path) -> None:
    memory = KronMemory("team", url=f"sqlite:///{tmp_path}/memory.db")
    model = Scripted("Green.")
    dumped = through_json(memory), [through_json(tool) for tool in memory.tools()]
    remember, recall, forget = (BaseTool.load_component(one) for one in dumped[1])
    await remember.run_json({"content": "The user likes green tea"}, CancellationToken())
    loaded = KronMemory.load_component(dumped[0])
    agent = AssistantAgent("ada", model, memory=[loaded], tools=[recall, forget])
    await agent.run(task="Which tea?")
    assert len(blocks(model.prompts[0])) == 1
    for one in (remember, recall, forget):
        await one.memory.close()
    await loaded.close()
