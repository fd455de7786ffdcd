"""persisted: a conversation of AG2 goes on in another process, also when the first was killed in the middle of a turn."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from kronmem import AsyncClient, Client, ConfigError
from tests.extras import Lazy

ag2, pack, scripted = Lazy("ag2"), Lazy("kronmem.ag2"), Lazy("tests.ag2.scripted")

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient("sqlite://") as client:
        yield client


def tide() -> str:
    """Look up the tide."""
    return "high at noon"


def agent(model: Any, state: Any, *plugins: Any, tool: Any = tide) -> Any:
    return ag2.Agent(
        "helper", "Be brief.", config=model, tools=[tool], plugins=[pack.persisted(state, "chat"), *plugins]
    )


async def test_a_conversation_goes_on_in_new_agents_with_everything_once(client: AsyncClient) -> None:
    state, expected = client.state("ada"), list[str]()
    for day in range(3):
        model = scripted.Scripted(("tide", {}), f"Draft {day} done.", f"Polished {day}.")
        reply = await agent(model, state).ask(f"Write draft {day}.")
        await reply.ask("Polish it.")
        turn = [f"Write draft {day}.", "ModelResponse", "ToolResultsEvent", f"Draft {day} done.", "Polish it."]
        expected += turn
        assert scripted.words(model.prompts[-1]) == expected
        assert scripted.results(model.prompts[-1]) == ["high at noon"] * (day + 1)
        expected.append(f"Polished {day}.")


async def test_two_conversations_of_one_agent_follow_each_other(client: AsyncClient) -> None:
    model = scripted.Scripted("One.", "Two.", "Three.")
    helper = agent(model, client.state("ada"))
    first = await helper.ask("First?")
    await helper.ask("Second?")
    assert scripted.words(model.prompts[-1]) == ["First?", "One.", "Second?"]
    with pytest.raises(ConfigError, match="another conversation"):
        await first.ask("And the first again?")


async def test_a_blocking_state_and_blocks_of_memory_that_are_not_saved(client: AsyncClient) -> None:
    with Client.local(":memory:") as blocking:
        await client.remember("ada", "The tide is high at noon on Monday.")
        for _ in range(2):
            memory = pack.KronmemPlugin("ada", client=client, capture=False, tools=False, timeout=60.0)
            model = scripted.Scripted("At noon.")
            await agent(model, blocking.state("ada"), memory).ask("When is the tide high?")
        asked = ["When is the tide high?", "At noon."]
        assert scripted.words(model.prompts[-1]) == [*asked, "BLOCK", asked[0]]


async def test_a_second_turn_at_the_same_time_is_refused(client: AsyncClient) -> None:
    async def nested() -> str:
        """Ask again."""
        with pytest.raises(ConfigError, match="under way"):
            await helper.ask("Again?")
        return "refused"

    helper = agent(scripted.Scripted(("nested", {}), "Fine."), client.state("ada"), tool=nested)
    assert (await helper.ask("Once?")).body == "Fine."


async def test_a_store_out_of_reach_neither_stops_a_turn_nor_is_written_over(caplog: pytest.LogCaptureFixture) -> None:
    async with AsyncClient("http://127.0.0.1:9", timeout=0.2) as down:
        model = scripted.Scripted("Fine.", "Still.")
        reply = await agent(model, down.state("ada")).ask("How are you?")
        await reply.ask("And now?")
    assert scripted.words(model.prompts[-1]) == ["How are you?", "Fine.", "And now?"]
    assert len([record for record in caplog.records if record.name == "kronmem"]) == 1


async def test_what_is_no_conversation_is_refused_and_left_alone(client: AsyncClient) -> None:
    state = client.state("ada")
    for value in ([1, 2], {"kind": "chat"}):
        await state.set("chat", value)
        with pytest.raises(ConfigError, match="not a conversation"):
            await agent(scripted.Scripted("Fine."), state).ask("How are you?")
        assert await state.get("chat") == value


KILLED = """
import asyncio, os, signal, sys
from ag2 import Agent
from kronmem import AsyncClient
from kronmem.ag2 import persisted
from tests.ag2.scripted import Scripted, words
last, steps = int(sys.argv[1]), 0

def step():
    global steps
    steps += 1
    if steps == last:
        os.kill(os.getpid(), signal.SIGKILL)

def tide() -> str:
    step()
    return "high at noon"

def model(messages):
    step()
    return ("tide", {}) if words(messages)[-1] != "ToolResultsEvent" else "At noon."

async def main():
    async with AsyncClient() as client:
        scripted = Scripted(script=model)
        helper = Agent("helper", config=scripted, tools=[tide], plugins=[persisted(client.state("ada"), "chat")])
        reply = await helper.ask(sys.argv[2])
        print(words([event for event in await reply.history.get_events()]))
        step()

asyncio.run(main())
"""


@pytest.mark.parametrize("step", [1, 2, 3, 4])
async def test_a_killed_turn_is_asked_again_and_not_doubled(step: int) -> None:
    """Killed while the model thinks, in the tool, while the model reads its result, and after the answer."""
    first, second = "When is the tide high?", "And on Tuesday?"

    async def run(last: int, question: str) -> subprocess.CompletedProcess[bytes]:
        return await anyio.run_process([sys.executable, "-c", KILLED, str(last), question], cwd=ROOT, check=False)

    assert (await run(step, first)).returncode == -signal.SIGKILL
    turn = ["ModelResponse", "ToolResultsEvent", "At noon."]
    if step < 4:
        done = await run(0, first)
        assert done.stdout.decode().strip().splitlines()[-1] == str([first, *turn]), done.stderr
    done = await run(0, second)
    assert done.stdout.decode().strip().splitlines()[-1] == str([first, *turn, second, *turn]), done.stderr
    assert "KRONMEM_HOME" in os.environ
