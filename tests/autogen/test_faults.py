"""Memory that raises, hangs or talks nonsense: the chat goes on by its deadline, and the log says it once."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kronmem import AgentMemory, Client, TransportError
from kronmem.autogen import MemoryAgent, attach_memory, register_memory
from kronmem.text.fence import is_fenced
from tests.autogen.agents import assistant, contents, manager, user
from tests.autogen.conftest import Chat
from tests.services import RawServer
from tests.services.openai import Answer, OpenAIServer, call
from tests.services.raw import respond

DEADLINE = 0.05


class Broken:
    """A way to the service that fails in the way it is told: nothing gets through before `release` is set."""

    def __init__(self, hangs: bool) -> None:
        self.hangs = hangs
        self.release = threading.Event()
        self.asked = 0

    def send(self, request: Any) -> Any:
        self.asked += 1
        if self.hangs:
            self.release.wait(60)
        raise TransportError("as told")

    def close(self) -> None:
        self.release.set()


class Nonsense(AgentMemory):
    """A memory whose answers are of no known type."""

    def recall(self, *_: Any, **__: Any) -> Any:
        return [{"content": "loose"}, None, 7]

    def inject_context(self, *_: Any, **__: Any) -> Any:
        return 42

    def remember_later(self, *_: Any, **__: Any) -> Any:
        raise KeyError("what was said")


@pytest.fixture(params=["raises", "hangs", "garbage", "nonsense"])
def broken(request: pytest.FixtureRequest) -> Iterator[AgentMemory]:
    """The memory of an agent that cannot be had."""
    if request.param == "garbage":
        with RawServer([respond(200, {}, b"<html>not json")]) as server, Client(server.url, api_key="kv-x") as client:
            yield client.agent("ann")
        return
    way = Broken(request.param == "hangs")
    with Client("sqlite://", transport=way) as client:
        yield Nonsense(client, "ann") if request.param == "nonsense" else client.agent("ann")
        way.release.set()


def test_an_attached_memory_that_fails_is_done_without(
    broken: AgentMemory, chat: Chat, caplog: pytest.LogCaptureFixture
) -> None:
    with OpenAIServer(lambda _: "A perfectly good answer.") as server, caplog.at_level(logging.WARNING, "kronmem"):
        helper, ann = assistant(server), user(default_auto_reply="And another perfectly good question?")
        attachment = attach_memory(broken, [helper, ann], timeout=DEADLINE)
        chat(ann, helper, "A perfectly good question?", max_turns=3)
        attachment.detach()
        assert len(server.prompts) == 3
        assert not any(is_fenced(text) for prompt in server.prompts for text in contents(prompt))
    said = [record.getMessage() for record in caplog.records if record.name == "kronmem"]
    assert sum("memory of 'ann' is unavailable" in line and "capture" not in line for line in said) == 1
    assert sum("capture into the memory of 'ann' is unavailable" in line for line in said) <= 1
    assert "what was said" not in str(said)


def test_a_group_finishes_without_its_memory(broken: AgentMemory, chat: Chat) -> None:
    with OpenAIServer(lambda _: "We manage without it. TERMINATE") as server:
        one, other, ann = assistant(server, "one"), assistant(server, "other"), user()
        lead = manager(server, [ann, one, other])
        with attach_memory(broken, lead, timeout=DEADLINE):
            chat(ann, lead, "What do we know about the quay?")
        assert contents(lead.groupchat.messages)[-1] == "We manage without it. TERMINATE"


def test_an_agent_with_a_broken_memory_answers(broken: AgentMemory) -> None:
    with OpenAIServer(lambda _: "Still here. TERMINATE") as server:
        options = {"system_message": "You help.", "llm_config": server.llm_config()}
        helper, ann = MemoryAgent("helper", memory=broken, memory_query="x", timeout=DEADLINE, **options), user()
        ann.initiate_chat(helper, message="Are you still there, helper?", silent=True)
        assert contents(server.prompts[0]) == ["You help.", "Are you still there, helper?"]
        assert helper.system_message == "You help."
        helper.close()


def test_hooks_never_raise_whatever_they_are_given(memory: AgentMemory) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        helper = assistant(server)
        attach_memory(memory, helper)
        (recall,) = helper.hook_lists["process_all_messages_before_reply"]
        (sent,) = helper.hook_lists["process_message_before_send"]
        for odd in (None, [None], [7], [{"role": "user"}], [{"role": "user", "content": object()}], {"a": 1}):
            assert recall(odd) is odd
        for odd in (None, 7, {}, {"content": object()}, []):
            assert sent(sender=helper, message=odd, recipient=None, silent=False) is odd


def test_a_turn_with_many_tool_calls_waits_for_a_hanging_memory_once() -> None:
    way = Broken(hangs=True)

    def model(request: dict[str, Any]) -> Answer:
        rounds = sum(message["role"] == "tool" for message in request["messages"])
        return "TERMINATE" if rounds > 4 else call("tick")

    with OpenAIServer(model) as server, Client("sqlite://", transport=way) as client:
        helper, ann = assistant(server), user(function_map={"tick": lambda: "tock"})
        attach_memory(client.agent("ann"), helper, capture=False, timeout=DEADLINE)
        ann.initiate_chat(helper, message="Tick for me, please.", silent=True)
        assert len(server.prompts) == 6
        assert way.asked == 1


@pytest.mark.parametrize("turns", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_no_memory_of_one_user_reaches_the_prompt_of_the_other(client: Client, turns: int) -> None:
    dice = random.Random(7)
    topics = ["green tea", "the harbour", "a train to Utrecht", "the budget"]
    with OpenAIServer(lambda request: f"{whose(request)}-reply about {dice.choice(topics)}") as server:
        people = {name: (assistant(server, name), user(f"user-{name}")) for name in ("ann", "bob")}
        attached = [attach_memory(client.agent(name), list(pair)) for name, pair in people.items()]
        for name, pair in people.items():
            register_memory(client.agent(name), caller=pair[0], executor=pair[1])
        for turn in range(turns):
            name = dice.choice(["ann", "bob"])
            helper, person = people[name]
            text = f"{name}-word-{turn}: tell me about {dice.choice(topics)}"
            person.initiate_chat(helper, message=text, max_turns=1, clear_history=dice.random() < 0.5, silent=True)
        for attachment in attached:
            attachment.detach()
        recalled = 0
        for body in server.bodies:
            name, text = whose(body), " ".join(contents(body["messages"]))
            other = "bob" if name == "ann" else "ann"
            assert f"{other}-" not in text
            assert f'source="{other}"' not in text
            recalled += f'source="{name}"' in text
        assert recalled > turns / 2, "the test sees memories at all"
    for name in people:
        assert all(name in one.content for one in client.memories(name))


def whose(request: dict[str, Any]) -> str:
    return str(request["messages"][0]["content"]).removeprefix("You are ").removesuffix(".")
