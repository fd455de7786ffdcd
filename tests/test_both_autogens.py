"""Classic AutoGen and AutoGen 0.4+ in one process: neither spoils the tools of the other."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

BOTH = """
import warnings
warnings.simplefilter("ignore")
from autogen import ConversableAgent
from autogen_core.tools import FunctionTool
from kronmem import Client, AsyncClient, memory_tools
from kronmem.autogen import register_memory
from tests.services.openai import OpenAIServer

client = Client.local(":memory:")
with OpenAIServer(lambda _: "TERMINATE") as server:
    for number in range(2):
        caller = ConversableAgent(f"caller{number}", llm_config=server.llm_config())
        executor = ConversableAgent(f"executor{number}", llm_config=False)
        register_memory(client.agent("ann"), caller=caller, executor=executor)
        for memory in (client.agent("bob"), AsyncClient("sqlite://").agent("bob")):
            for function in memory_tools(memory).functions():
                schema = FunctionTool(function, description="x").schema["parameters"]
                assert all(one.get("description") for one in schema["properties"].values()), schema
"""


@pytest.mark.slow
@pytest.mark.skipif(not (find_spec("autogen") and find_spec("autogen_core")), reason="needs both")
def test_tools_registered_with_the_classic_one_are_plain_for_the_other() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BOTH], cwd=Path(__file__).parent.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
