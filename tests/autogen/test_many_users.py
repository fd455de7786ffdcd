"""One pair of assistants and one memory for many users at once: nobody sees, and nobody is given, another's words."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client
from kronmem.autogen import MemoryAgent, attach_memory, register_memory
from kronmem.text.fence import is_fenced
from tests.autogen.agents import assistant, contents, tool_results, user
from tests.services.openai import Answer, OpenAIServer, call

current_user: ContextVar[str] = ContextVar("current_user")
NAME, WORD = re.compile(r"user-\d\d"), re.compile(r"user-\d\d-word-\d+:")


def names(texts: Any) -> set[str]:
    return set(NAME.findall(str(texts)))


def model(request: dict[str, Any]) -> Answer:
    """Notes every third word of a user by a tool, and looks it up; answers with the user's name."""
    texts = contents(request["messages"])
    asked = max(at for at, text in enumerate(texts) if WORD.match(text))
    name, number = re.findall(r"(user-\d\d)-word-(\d+)", texts[asked])[0]
    done = tool_results({"messages": request["messages"][asked:]})
    if int(number) % 3 == 0 and len(done) < 2:
        if not done:
            return call("remember", content=f"{name}-note-{number} on the harbour")
        return call("recall", query="note on the harbour")
    return f"{name}-reply-{number}: the harbour is open. TERMINATE"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with Client.local(tmp_path / "memory.db") as client:
        yield client


class House:
    """Two assistants with one memory, and an agent for each user."""

    def __init__(self, server: OpenAIServer, client: Client, users: int) -> None:
        memory = client.agent(current_user.get)
        self.assistants = [assistant(server, f"assistant-{number}") for number in range(2)]
        self.people = {f"user-{number:02}": user(f"user-{number:02}") for number in range(users)}
        self.attachment = attach_memory(memory, [*self.assistants, *self.people.values()], timeout=60, capture="all")
        for helper in self.assistants:
            for person in self.people.values():
                register_memory(memory, caller=helper, executor=person)

    def turn(self, name: str, number: int) -> tuple[Any, Any, dict[str, Any]]:
        message = f"{name}-word-{number}: is the harbour open?"
        options = {"message": message, "silent": True, "clear_history": number % 4 == 0}
        return self.people[name], self.assistants[number % 2], options


def in_threads(house: House, turns: int) -> None:
    def live(name: str) -> None:
        current_user.set(name)
        for number in range(turns):
            person, helper, options = house.turn(name, number)
            person.initiate_chat(helper, **options)

    with ThreadPoolExecutor(len(house.people)) as pool:
        list(pool.map(live, house.people))


def in_tasks(house: House, turns: int) -> None:
    async def live(name: str) -> None:
        current_user.set(name)
        for number in range(turns):
            person, helper, options = house.turn(name, number)
            await person.a_initiate_chat(helper, **options)

    async def main() -> None:
        await asyncio.gather(*(asyncio.ensure_future(live(name)) for name in house.people))

    asyncio.run(main())


@pytest.mark.timeout(1200)  # two thousand turns, each with a model asked over HTTP
@pytest.mark.parametrize("run", [in_threads, in_tasks])
@pytest.mark.parametrize(("users", "turns"), [(4, 4), pytest.param(20, 100, marks=pytest.mark.slow)])
def test_nothing_leaks_between_users_of_the_same_assistants(client: Client, run: Any, users: int, turns: int) -> None:
    with OpenAIServer(model) as server:
        house = House(server, client, users)
        run(house, turns)
        house.attachment.detach()
        shown = 0
        for body in server.bodies:
            assert len(names(body["messages"])) == 1, "a prompt knows one user"
            shown += any(is_fenced(text) for text in contents(body["messages"]))
        assert shown > users, "memories were shown at all"
    agents = {agent.name for agent in client.agents()}
    assert agents == set(house.people)
    for name in house.people:
        stored = [one.content for one in client.memories(name)]
        assert names(stored) == {name}
        # A tool gives up after two seconds, which a busy machine may need.
        assert any(f"{name}-note-{number} on the harbour" in stored for number in range(0, turns, 3))
        assert sum("-word-" in one for one in stored) == turns
        assert sum("-reply-" in one for one in stored) == turns


def test_without_a_user_nothing_is_shown_kept_or_found(client: Client) -> None:
    client.remember("user-00", "user-00-note on the harbour")
    with OpenAIServer(lambda _: "The harbour is open, as far as I know.") as server:
        house = House(server, client, 1)
        (person,), helper = house.people.values(), house.assistants[0]
        person.initiate_chat(helper, message="Is the harbour open, please?", silent=True, max_turns=1)
        assert "user-00-note" not in str(server.prompts)
    assert len(list(client.memories("user-00"))) == 1
    assert [agent.name for agent in client.agents()] == ["user-00"]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_context_of_one_user_is_in_no_system_message_of_another(client: Client, asynchronous: bool) -> None:
    people = ["user-00", "user-01"]
    for name in people:
        client.remember(name, f"{name} prefers concise answers.", "preference")
    with OpenAIServer(lambda _: "Fine.") as server:
        memory, options = (
            client.agent(current_user.get),
            {"llm_config": server.llm_config(), "human_input_mode": "NEVER"},
        )
        helper = MemoryAgent("helper", "You help.", memory=memory, memory_query="task context", timeout=60, **options)
        for name in [*people, *people]:
            token, person = current_user.set(name), user(name)
            if asynchronous:
                asyncio.run(person.a_initiate_chat(helper, message="Go on, please.", silent=True, max_turns=1))
            else:
                person.initiate_chat(helper, message="Go on, please.", silent=True, max_turns=1)
            current_user.reset(token)
        assert [names(prompt) for prompt in server.prompts] == [{name} for name in [*people, *people]]
        assert helper.system_message == "You help."
        for system, context, asked in map(contents, server.prompts):
            assert (system, asked) == ("You help.", "Go on, please.")
            assert is_fenced(context)
        helper.close()


def test_a_memory_agent_serves_many_users_too(client: Client) -> None:
    with OpenAIServer(lambda request: f"{sorted(names(request['messages']))[0]}, the harbour is open.") as server:
        helper = MemoryAgent(
            "helper",
            "You help.",
            memory=client.agent(current_user.get),
            llm_config=server.llm_config(),
            timeout=60,
            capture="all",
        )
        for name in ("user-00", "user-01", "user-00"):
            token = current_user.set(name)
            user(name).initiate_chat(helper, message=f"{name} asks for the harbour.", silent=True, max_turns=1)
            current_user.reset(token)
        helper.close()
        assert [names(prompt) for prompt in server.prompts] == [{"user-00"}, {"user-01"}, {"user-00"}]
        assert any(is_fenced(text) for text in contents(server.prompts[2]))
    for name in ("user-00", "user-01"):
        assert names([one.content for one in client.memories(name)]) == {name}
