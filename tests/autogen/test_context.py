"""The memories about a `memory_query`: asked until they are known, and anew in every turn where there are many users."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from kronmem import Client, Retry, TransportError
from kronmem.autogen import MemoryAgent
from kronmem.packs.deadlines import MAX_HANGING, bounded_thread
from kronmem.transport.local import open_sqlite
from tests.autogen.agents import contents, user
from tests.autogen.conftest import Chat
from tests.services.openai import Answer, OpenAIServer, call

PATIENT = 60.0
current_user: ContextVar[str] = ContextVar("current_user", default="ann")


class Switched:
    """The way to a store that may be away; it counts the contexts that it is asked for."""

    def __init__(self) -> None:
        self.away, self.contexts, self._store = False, 0, open_sqlite(":memory:")

    def send(self, request: Any) -> Any:
        self.contexts += "inject-context" in request.path
        if self.away:
            raise TransportError("as told")
        return self._store.send(request)

    def close(self) -> None:
        self._store.close()


@pytest.fixture
def way() -> Switched:
    return Switched()


@pytest.fixture
def client(way: Switched) -> Iterator[Client]:
    with Client("sqlite://", transport=way, retry=Retry(attempts=1)) as client:
        yield client


def helper(client: Client, server: OpenAIServer, agent_id: Any = "ann", **options: Any) -> MemoryAgent:
    options = {"recall": False, "capture": False, "timeout": PATIENT, **options}
    return MemoryAgent(
        "helper",
        "You help.",
        memory=client.agent(agent_id),
        memory_query="task context",
        llm_config=server.llm_config(),
        human_input_mode="NEVER",
        **options,
    )


def test_the_context_of_a_user_is_asked_anew_in_each_turn(client: Client, way: Switched, chat: Chat) -> None:
    client.remember("ann", "Ann prefers concise answers.", "preference")

    def model(request: dict[str, Any]) -> Answer:
        return "Fine." if request["messages"][-1]["role"] == "tool" else call("tick")

    with OpenAIServer(model) as server:
        agent, ann = helper(client, server, current_user.get), user(function_map={"tick": lambda: "tock"})
        chat(ann, agent, "Go on, please.", max_turns=2)
        assert way.contexts == 1
        client.clear("ann")
        client.remember("ann", "Ann prefers long answers.", "preference")
        chat(ann, agent, "Go on, please.", max_turns=2, clear_history=False)
        assert way.contexts == 2
        first, second, third, fourth = map(str, map(contents, server.prompts))
    assert "concise" in first
    assert "concise" in second
    for prompt in (third, fourth):
        assert "long answers" in prompt
        assert "concise" not in prompt


@pytest.mark.parametrize("agent_id", ["ann", current_user.get], ids=["fixed", "callable"])
def test_an_outage_costs_the_context_of_its_turn_and_no_other(
    client: Client, way: Switched, chat: Chat, agent_id: Any, caplog: pytest.LogCaptureFixture
) -> None:
    client.remember("ann", "Ann prefers concise answers.", "preference")

    def model(request: dict[str, Any]) -> Answer:
        return "Fine." if request["messages"][-1]["role"] == "tool" else call("tick")

    with OpenAIServer(model) as server, caplog.at_level(logging.WARNING, "kronmem"):
        agent, ann = helper(client, server, agent_id), user(function_map={"tick": lambda: "tock"})
        way.away = True
        chat(ann, agent, "Go on, please.", max_turns=2)
        assert way.contexts == 1
        way.away = False
        for _ in range(2):
            chat(ann, agent, "Go on, please.", max_turns=1, clear_history=False)
        shown = ["concise" in str(contents(prompt)) for prompt in server.prompts]
    assert shown == [False, False, True, True]
    assert way.contexts == (2 if agent_id == "ann" else 3)
    told = [line for line in caplog.messages if "available" in line]
    assert [line.rsplit(" (")[0].split(" is ")[1] for line in told] == [
        "unavailable, going on without it",
        "available again",
    ]


def test_learning_the_context_takes_one_place_among_the_calls_that_may_hang(client: Client) -> None:
    """Of many agents at once, each would hold its first place and wait for a second one."""
    client.remember("ann", "Ann prefers concise answers.", "preference")
    begun, free = threading.Barrier(MAX_HANGING), threading.Event()

    def hold() -> None:
        begun.wait(PATIENT)
        free.wait(PATIENT)

    async def main(agent: MemoryAgent) -> None:
        held = asyncio.gather(*(bounded_thread(hold, PATIENT) for _ in range(MAX_HANGING - 1)))
        await asyncio.to_thread(begun.wait, PATIENT)
        await agent.a_receive("Go on, please.", user(), request_reply=False)
        free.set()
        await held

    with OpenAIServer(lambda _: "Fine.") as server:
        agent = helper(client, server, timeout=30)
        asyncio.run(main(agent))
        assert "concise" in agent.system_message
