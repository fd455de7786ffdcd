"""persisted: a team goes on where it stopped, and forgotten memories do not live on in what was saved."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from autogen_core.models import CreateResult

from kronmem import AsyncClient, Client, InvalidInputError, KronmemError, State
from kronmem.agentchat import KronMemory, persisted
from kronmem.agentchat.persist import without_memories
from tests.agentchat.scripted import Scripted, blocks
from tests.services import RawServer
from tests.services.raw import respond

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient("sqlite://") as client:
        await client.remember("team", "The user likes green tea")
        yield client


def made(model: Scripted, client: AsyncClient) -> RoundRobinGroupChat:
    agent = AssistantAgent("ada", model, memory=[KronMemory("team", client=client)])
    return RoundRobinGroupChat([agent], max_turns=1)


@pytest.mark.parametrize("blocking", [False, True], ids=["AsyncState", "State"])
async def test_a_team_goes_on_where_it_stopped(blocking: bool, client: AsyncClient) -> None:
    with Client("sqlite://") as other:
        state: Any = other.state("team") if blocking else client.state("team")
        first, second = Scripted("Green tea."), Scripted("As I said.")
        team = made(first, client)
        async with persisted(team, state, "chat"):
            await team.run(task="Which tea?")
        team = made(second, client)
        async with persisted(team, state, "chat"):
            await team.run(task="Say it again: which tea?")
        said = [one.content for one in second.prompts[0]]
        assert "Which tea?" in said
        assert "Green tea." in said
        assert len(blocks(second.prompts[0])) == 1


async def test_a_saved_state_holds_no_memory_after_ten_turns(client: AsyncClient) -> None:
    model = Scripted(*["I see."] * 10)
    agent = AssistantAgent("ada", model, memory=[KronMemory("team", client=client)])
    team = RoundRobinGroupChat([agent], max_turns=1)
    async with persisted(team, client.state("team"), "chat"):
        for turn in range(10):
            await team.run(task=f"Which tea, in turn {turn}?")
    assert [len(blocks(prompt)) for prompt in model.prompts] == [1] * 10
    saved = json.dumps(await client.state("team").get("chat"))
    assert "Which tea, in turn 9?" in saved
    assert "green tea" not in saved
    assert "<memory" not in saved


async def test_an_agent_alone_is_persisted_too(client: AsyncClient) -> None:
    agent = AssistantAgent("ada", Scripted("Green tea."))
    async with persisted(agent, client.state("team"), "agent"):
        await agent.run(task="Which tea?")
    assert "Which tea?" in str(await client.state("team").get("agent"))


async def test_an_exception_does_not_keep_the_state_from_being_saved(client: AsyncClient) -> None:
    team = made(Scripted("Green tea."), client)
    with pytest.raises(ZeroDivisionError):
        async with persisted(team, client.state("team"), "chat"):
            await team.run(task="Which tea?")
            raise ZeroDivisionError
    assert "Green tea." in str(await client.state("team").get("chat"))


@pytest.mark.parametrize("how", ["task", "scope"])
async def test_a_cancelled_block_is_saved(how: str, client: AsyncClient) -> None:
    team, running = made(Scripted("Green tea."), client), asyncio.Event()

    async def work() -> None:
        async with persisted(team, client.state("team"), "chat"):
            await team.run(task="Which tea?")
            running.set()
            await asyncio.Event().wait()

    if how == "task":
        task = asyncio.ensure_future(work())
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            await running.wait()
            group.cancel_scope.cancel()
    saved = json.dumps(await client.state("team").get("chat"))
    assert "Green tea." in saved
    assert "<memory" not in saved


class Thinking(Scripted):
    """Answers once, then thinks until the run is cancelled."""

    def __init__(self) -> None:
        super().__init__("Green tea.")
        self.thinking = asyncio.Event()

    async def create(self, *args: Any, cancellation_token: Any = None, **options: Any) -> CreateResult:
        if self.prompts:
            self.thinking.set()
            thought = asyncio.ensure_future(asyncio.Event().wait())
            await cancellation_token.link_future(thought)
        return await super().create(*args, **options)


async def test_a_run_cancelled_half_way_goes_on_from_there(client: AsyncClient) -> None:
    model, token = Thinking(), CancellationToken()
    team = RoundRobinGroupChat([AssistantAgent("ada", model, memory=[KronMemory("team", client=client)])], max_turns=2)

    async def work() -> None:
        async with persisted(team, client.state("team"), "chat"):
            await team.run(task="Which tea?", cancellation_token=token)

    task = asyncio.ensure_future(work())
    await model.thinking.wait()
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    again = Scripted("Still green.")
    team = RoundRobinGroupChat([AssistantAgent("ada", again)], max_turns=2)
    async with persisted(team, client.state("team"), "chat"):
        await team.run(task="And now?")
    said = [one.content for one in again.prompts[0]]
    assert said[-3:] == ["Which tea?", "Green tea.", "And now?"]


async def test_a_state_that_cannot_be_read_is_an_error_and_is_not_overwritten(client: AsyncClient) -> None:
    await client.state("team").set("chat", "not a team")
    team = made(Scripted("Green tea."), client)
    with pytest.raises(InvalidInputError):
        async with persisted(team, client.state("team"), "chat"):
            raise AssertionError("not reached")
    assert await client.state("team").get("chat") == "not a team"
    with RawServer([respond(500)]) as server:
        async with AsyncClient(server.url, timeout=0.2) as out:
            with pytest.raises(KronmemError):
                async with persisted(team, out.state("team"), "chat"):
                    raise AssertionError("not reached")


class Failing(State):
    """Nothing to load, and no way to save."""

    def __init__(self) -> None: ...

    def get(self, key: str, default: Any = None) -> Any:
        return default

    def set(self, key: str, value: Any) -> None:
        raise KronmemError("disk full")


async def test_a_failed_save_is_told_and_never_hides_the_first_error(
    client: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    team = made(Scripted(), client)
    with pytest.raises(KronmemError, match="disk full"):
        async with persisted(team, Failing(), "chat"):
            pass
    assert caplog.records == []
    with pytest.raises(ZeroDivisionError):
        async with persisted(team, Failing(), "chat"):
            raise ZeroDivisionError
    assert [record.getMessage() for record in caplog.records] == [
        "the state 'chat' could not be saved (KronmemError: disk full)"
    ]


def test_only_what_kronmem_put_there_is_taken_out() -> None:
    block = {"source": "memory", "content": '<memory source="a">\nx\n</memory>', "type": "UserMessage"}
    event = {"type": "MemoryQueryEvent", "content": [{"content": "x", "metadata": {"kronmem": {"id": "1"}}}]}
    others = [
        {"source": "memory", "content": "my own words", "type": "UserMessage"},
        {"source": "user", "content": '<memory source="a">\nquoted\n</memory>', "type": "UserMessage"},
        {"type": "MemoryQueryEvent", "content": [{"content": "x", "metadata": None}]},
        {"type": "MemoryQueryEvent", "content": [{"content": "x", "metadata": "odd"}]},
        "text",
        None,
    ]
    assert without_memories({"a": {"messages": [block, *others, event]}}) == {"a": {"messages": others}}  # type: ignore[dict-item, list-item] -- JSON
