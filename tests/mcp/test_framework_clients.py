"""`kronmem mcp` with the MCP clients that agent frameworks bring along; each needs a major of its own."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,  # two processes, each imports mcp
    # The sockets and settings of the frameworks are not ours.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Field 'lifespan' has an incomplete definition"),
]

ROOT = Path(__file__).parent.parent.parent
FRENCH = "The report is published in French."
ARGUMENTS = ["-m", "kronmem", "mcp", "--agent", "team-7"]
STEPS: list[Any] = [("remember", {"content": FRENCH}), ("recall", {"query": "language of the report"}), "French."]
MAJOR = version("mcp").partition(".")[0]


def needs(major: str, *modules: str) -> None:
    if major != MAJOR:
        pytest.skip(f"this client needs mcp {major}.x")
    for module in modules:
        pytest.importorskip(module)


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "KRONMEM_HOME": str(home)}


def check(results: list[str]) -> None:
    stored, recalled = results
    assert stored.startswith("Stored (id ")
    assert FRENCH in recalled


async def test_the_client_of_ag2(tmp_path: Path) -> None:
    needs("2", "ag2")
    from ag2 import Agent
    from ag2.tools import MCPStdioServerConfig, MCPToolkit

    from tests.ag2 import scripted

    server = MCPStdioServerConfig(command=sys.executable, args=ARGUMENTS, env=environment(tmp_path))
    model = scripted.Scripted(*STEPS)
    reply = await Agent("helper", config=model, tools=[MCPToolkit(server)]).ask("Which language?")
    assert reply.body == "French."
    check(scripted.results(model.prompts[-1]))


async def test_the_client_of_agent_framework(tmp_path: Path) -> None:
    needs("2", "agent_framework", "tenacity")
    from agent_framework import Agent, MCPStdioTool

    from tests.agent_framework import scripted

    model = scripted.Scripted(*STEPS)
    async with MCPStdioTool(
        name="memory", command=sys.executable, args=ARGUMENTS, env=environment(tmp_path), load_prompts=False
    ) as tool:
        assert (await Agent(client=model, tools=[tool]).run("Which language?")).text == "French."
    check(scripted.results(model.prompts[-1]))


async def test_the_workbench_of_autogen(tmp_path: Path) -> None:
    needs("1", "autogen_core")
    if find_spec("autogen_ext") is None:
        pytest.skip("autogen-ext[mcp] is not installed")
    from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams

    params = StdioServerParams(
        command=sys.executable, args=ARGUMENTS, env=environment(tmp_path), read_timeout_seconds=60
    )
    async with McpWorkbench(params) as workbench:
        calls = [await workbench.call_tool(name, arguments) for name, arguments in STEPS[:2]]
        assert len(await workbench.list_tools()) == 4
    check([call.to_text() for call in calls])
