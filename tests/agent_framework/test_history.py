"""KronmemHistoryProvider: a session goes on in another process, whole and in order."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from agent_framework import Agent, AgentSession, Content, Message

from kronmem import AsyncClient, AsyncState, ConfigError, InvalidInputError, KronmemError, TransportError
from kronmem.agent_framework import KronmemContextProvider, KronmemHistoryProvider
from kronmem.packs.message_log import values_of
from tests.agent_framework.scripted import Scripted, results, words
from tests.services import RawServer
from tests.services.raw import close, hang, respond

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parent.parent.parent
PATIENT = 60.0


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient("sqlite://") as client:
        yield client


def history(client: AsyncClient, **options: Any) -> KronmemHistoryProvider:
    return KronmemHistoryProvider("ada", client=client, **{"timeout": PATIENT, **options})


def agent(model: Scripted, *providers: Any) -> Agent[Any]:
    return Agent(client=model, name="helper", context_providers=list(providers))


async def run(client: AsyncClient, text: Any, *answers: Any, session: str = "s/1", **options: Any) -> list[str]:
    """One run of a new agent with new objects, as after a restart; the answer is its last prompt."""
    model = Scripted(*answers)
    await agent(model, history(client, **options)).run(text, session=AgentSession(session_id=session))
    return words(model.prompts[-1])


async def test_a_session_goes_on_where_it_ended(client: AsyncClient) -> None:
    await run(client, "I am Ada.", "Hello Ada.")
    assert await run(client, "Who am I?", "Ada.") == ["user: I am Ada.", "assistant: Hello Ada.", "user: Who am I?"]
    assert len(await run(client, "Again?", "Ada.")) == 5
    assert await run(client, "Who am I?", "No idea.", session="s/2") == ["user: Who am I?"]


async def test_a_session_that_0_2_saved_goes_on(client: AsyncClient) -> None:
    sample = ROOT / "tests" / "samples" / "chats-0.2.json"
    for key, value in json.loads(sample.read_text("utf-8")).items():
        await client.state("ada").set(key, value)
    for expected in (3, 5):
        said = await run(client, "Now translate it.", "Draft 5 done.", session="monday")
        assert said[:3] == ["user: Write about whales.", "assistant: Draft 4 done.", "user: Now translate it."]
        assert len(said) == expected


async def test_tool_calls_come_back_with_their_results(client: AsyncClient) -> None:
    memory = KronmemContextProvider("ada", client=client, timeout=PATIENT)
    model = Scripted(("remember", {"content": "Ada likes tea"}), "Noted.")
    await agent(model, history(client), memory).run("I like tea.", session=AgentSession(session_id="s/1"))
    model = Scripted("You like tea.")
    await agent(model, history(client)).run("And now?", session=AgentSession(session_id="s/1"))
    assert words(model.prompts[0]) == [
        "user: I like tea.",
        "assistant: function_call",
        "tool: function_result",
        "assistant: Noted.",
        "user: And now?",
    ]
    assert results(model.prompts[0])[0].startswith("Stored")


async def test_the_block_of_a_context_provider_is_in_no_record(client: AsyncClient) -> None:
    await client.remember("ada", "The favourite tea of Ada is sencha")
    memory, model = KronmemContextProvider("ada", client=client, timeout=PATIENT), Scripted("It is green.")
    session = AgentSession(session_id="s/1")
    await agent(model, history(client), memory).run("Which tea is the favourite of Ada?", session=session)
    assert "BLOCK" in words(model.prompts[0])[0]
    state = client.state("ada")
    records = [await state.get(key) for key in await state.keys()]
    assert len(records) == 3
    assert "sencha" not in str(records)


async def test_a_run_that_fails_keeps_its_input(client: AsyncClient) -> None:
    with pytest.raises(RuntimeError):
        await run(client, "I am Ada.", RuntimeError("out of credits"))
    assert await run(client, "Who am I?", "Ada.") == ["user: I am Ada.", "user: Who am I?"]


async def test_runs_at_once_on_one_session_lose_nothing(client: AsyncClient) -> None:
    # Each with objects of its own, as in processes of their own.
    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(run, client, f"Question {number}?", "Yes.")
    kept = [message.text for message in await history(client).get_messages("s/1")]
    assert sorted(kept) == [*(f"Question {number}?" for number in range(4)), *["Yes."] * 4]


async def test_a_call_without_its_result_is_left_out_unless_the_input_brings_it(client: AsyncClient) -> None:
    call = Message("assistant", [Content.from_function_call(call_id="c1", name="weather", arguments={})])
    await history(client).save_messages("s/1", [Message("user", ["How is the weather?"]), call])
    assert await run(client, "Hello?", "Hello.") == ["user: How is the weather?", "user: Hello?"]
    await history(client).save_messages("s/2", [Message("user", ["How is the weather?"]), call])
    result = Message("tool", [Content.from_function_result(call_id="c1", result="Rain.")])
    assert await run(client, [result], "It rains.", session="s/2") == [
        "user: How is the weather?",
        "assistant: function_call",
        "tool: function_result",
    ]


async def test_characters_that_no_store_takes_cost_no_message(client: AsyncClient) -> None:
    await run(client, "The file begins with \x00.", "Half a face: \ud83d")
    assert await run(client, "And then?", "Nothing.") == [
        "user: The file begins with \ufffd.",
        "assistant: Half a face: \ufffd",
        "user: And then?",
    ]


async def test_a_record_that_cannot_be_read_is_a_failure_of_ours(client: AsyncClient) -> None:
    class Torn(AsyncState):
        def __init__(self) -> None: ...

        async def get(self, key: str, default: Any = None) -> Any:
            if key == "b":
                raise TransportError("the connection broke")
            return key.upper() if key != "hole" else None

    assert await values_of(Torn(), ["c", "hole", "a"]) == ["C", "A"]
    with pytest.raises(TransportError, match="the connection broke"):
        await values_of(Torn(), ["a", "b", "c"] * 20)


async def test_only_the_newest_messages_are_loaded(client: AsyncClient) -> None:
    for number in range(3):
        await run(client, f"Question {number}?", f"Answer {number}.")
    shown = await run(client, "And now?", "Done.", max_messages=2)
    assert shown == ["user: Question 2?", "assistant: Answer 2.", "user: And now?"]
    assert len(await history(client).get_messages("s/1")) == 8


async def test_a_record_of_another_version_is_left_out_and_told_once(
    client: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    await run(client, "I am Ada.", "Hello Ada.")
    state = client.state("ada")
    (first,) = [key for key in await state.keys() if key.endswith(".0")]
    await state.set(first, {"type": "message", "role": "user", "contents": [{"type": "text"}], "not_yet_known": 1})
    for _ in range(2):
        assert (await run(client, "Who am I?", "Ada."))[0] == "assistant: Hello Ada."
    assert len([line for line in caplog.messages if line.startswith("a message of the history")]) == 2  # two providers


@pytest.mark.slow
@pytest.mark.parametrize("fault", [close(), hang(), respond(500), respond(200, body="<html>")])
async def test_a_service_at_fault_costs_the_history_and_never_the_answer(
    fault: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with RawServer([fault]) as server:
        past = KronmemHistoryProvider("ada", url=server.url, timeout=0.3)
        with anyio.fail_after(PATIENT):
            answer = await agent(Scripted("Fine."), past).run("Hello?", session=AgentSession(session_id="s"))
            assert answer.text == "Fine."
            with pytest.raises(KronmemError):
                await past.get_messages("s")
        await past.close()
    assert len([line for line in caplog.messages if line.startswith("history in the memory of 'ada'")]) == 1


async def test_a_wrong_argument_is_refused_at_once(client: AsyncClient) -> None:
    with pytest.raises(InvalidInputError):
        KronmemHistoryProvider("a/b", client=client)
    with pytest.raises(InvalidInputError):
        KronmemHistoryProvider("ada", client=client, max_messages=0)
    with pytest.raises(ConfigError, match="state_url"):
        KronmemHistoryProvider("ada", client=AsyncClient("https://api.kronvex.io", api_key="kv-x"))


KILLED = """
import asyncio, os, signal, sys
from agent_framework import Agent, AgentSession
from kronmem.agent_framework import KronmemHistoryProvider
from tests.agent_framework.scripted import Scripted

def answer(messages):
    if "third" in messages[-1].text:
        os.kill(os.getpid(), signal.SIGKILL)
    return "Fine."

async def main():
    helper = Agent(client=Scripted(script=answer), context_providers=[KronmemHistoryProvider("ada", timeout=60)])
    session = AgentSession(session_id="s")
    for text in ("The first.", "The second.", "The third."):
        await helper.run(text, session=session)

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_killed_run_loses_its_output_and_nothing_else(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KRONMEM_HOME": str(tmp_path)}
    ran = await anyio.run_process([sys.executable, "-c", KILLED], env=environment, check=False)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    async with AsyncClient(f"sqlite:///{tmp_path}/memory.db") as client:
        kept = [message.text for message in await history(client).get_messages("s")]
    assert kept == ["The first.", "Fine.", "The second.", "Fine.", "The third."]
