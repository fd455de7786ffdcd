"""persisted: a team goes on where it stopped, and forgotten memories do not live on in what was saved."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from autogen_core.models import CreateResult, UserMessage
from pydantic_core import to_jsonable_python

from kronmem import AsyncClient, Client, InvalidInputError, KronmemError, State
from kronmem.agentchat import KronMemory, persisted
from kronmem.agentchat.persist import without_memories, without_received
from tests.agentchat.scripted import Scripted, blocks, call
from tests.services import RawServer
from tests.services.raw import respond

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient("sqlite://") as client:
        await client.remember("team", "The user likes green tea")
        yield client


async def stored(state: Any) -> str:
    """Everything that is stored in a state."""
    return json.dumps([await state.get(key) for key in await state.keys()])


def made(model: Scripted, client: AsyncClient) -> RoundRobinGroupChat:
    agent = AssistantAgent("ada", model, memory=[KronMemory("team", client=client)])
    return RoundRobinGroupChat([agent], max_turns=1)


class Watched(Scripted):
    """Keeps the state of its team as it is while the model answers."""

    team: RoundRobinGroupChat
    states: list[Any]

    async def create(self, messages: Any, **options: Any) -> CreateResult:
        self.states.append(to_jsonable_python(await self.team.save_state()))
        return await super().create(messages, **options)


async def test_a_message_saved_in_the_middle_of_its_turn_is_heard_once(client: AsyncClient) -> None:
    watched = Watched("One.", "Two.")
    watched.team, watched.states = made(watched, client), []
    for task in ("Which tea?", "Which tea, once more?"):
        await watched.team.run(task=task)
    model = Scripted("Three.")
    team = made(model, client)
    await team.load_state(without_received(without_memories(watched.states[1])))
    await team.run(task="And which cup?")
    said = [one.content for one in model.prompts[0] if isinstance(one, UserMessage) and one.source == "user"]
    assert said == ["Which tea?", "Which tea, once more?", "And which cup?"]


async def test_a_message_saved_between_a_tool_and_the_answer_is_heard_once() -> None:
    def note(text: str) -> str:
        """Note a text."""
        return "Noted."

    def team_of(model: Scripted) -> RoundRobinGroupChat:
        return RoundRobinGroupChat([AssistantAgent("ada", model, tools=[note], reflect_on_tool_use=True)], max_turns=1)

    watched = Watched(*[call("note", text="tea"), "It is noted."] * 2)  # the same call with the same id in both turns
    watched.team, watched.states = team_of(watched), []
    for _ in range(2):
        await watched.team.run(task="Continue.")
    model = Scripted("Three.")
    team = team_of(model)
    await team.load_state(without_received(watched.states[3]))
    await team.run(task="And now?")
    said = [one.content for one in model.prompts[0] if isinstance(one, UserMessage)]
    assert said == ["Continue.", "Continue.", "And now?"]


@pytest.mark.parametrize("blocking", [False, True], ids=["AsyncState", "State"])
async def test_a_team_goes_on_where_it_stopped(blocking: bool, client: AsyncClient) -> None:
    with Client("sqlite://") as other:
        state: Any = other.state("team") if blocking else client.state("team")
        first, second = Scripted("Green tea."), Scripted("As I said.")
        team = made(first, client)
        async with persisted(state, "chat", team):
            await team.run(task="Which tea?")
        team = made(second, client)
        async with persisted(state, "chat", team):
            await team.run(task="Say it again: which tea?")
        said = [one.content for one in second.prompts[0]]
        assert "Which tea?" in said
        assert "Green tea." in said
        assert len(blocks(second.prompts[0])) == 1


async def test_a_saved_state_holds_no_memory_after_ten_turns(client: AsyncClient) -> None:
    model = Scripted(*["I see."] * 10)
    agent = AssistantAgent("ada", model, memory=[KronMemory("team", client=client)])
    team = RoundRobinGroupChat([agent], max_turns=1)
    async with persisted(client.state("team"), "chat", team):
        for turn in range(10):
            await team.run(task=f"Which tea, in turn {turn}?")
    assert [len(blocks(prompt)) for prompt in model.prompts] == [1] * 10
    saved = await stored(client.state("team"))
    assert "Which tea, in turn 9?" in saved
    assert "green tea" not in saved
    assert "<memory" not in saved


async def test_an_agent_alone_is_persisted_too(client: AsyncClient) -> None:
    agent = AssistantAgent("ada", Scripted("Green tea."))
    async with persisted(client.state("team"), "agent", agent):
        await agent.run(task="Which tea?")
    assert "Which tea?" in await stored(client.state("team"))


async def test_a_message_with_characters_that_no_store_takes_does_not_stop_the_saving(client: AsyncClient) -> None:
    agent = AssistantAgent("ada", Scripted("One.", "Two."))
    async with persisted(client.state("team"), "alone", agent):
        await agent.run(task="the file begins with \x00")
        await agent.run(task="and then?")
    again = AssistantAgent("ada", Scripted())
    async with persisted(client.state("team"), "alone", again):
        told = (await again.save_state())["llm_context"]["messages"]
    assert [one["content"] for one in told] == ["the file begins with \ufffd", "One.", "and then?", "Two."]


async def test_a_team_saved_under_two_keys_is_saved_under_both_all_the_time(client: AsyncClient) -> None:
    state, agent = client.state("team"), AssistantAgent("ada", Scripted("One.", "Two."))
    async with persisted(state, "outer", agent):
        async with persisted(state, "inner", agent):
            await agent.run(task="first")
        await agent.run(task="second")
        assert "second" in await stored(state), "before the end"
    assert "on_messages_stream" not in vars(agent)


async def test_an_exception_does_not_keep_the_state_from_being_saved(client: AsyncClient) -> None:
    team = made(Scripted("Green tea."), client)
    with pytest.raises(ZeroDivisionError):
        async with persisted(client.state("team"), "chat", team):
            await team.run(task="Which tea?")
            raise ZeroDivisionError
    assert "Green tea." in await stored(client.state("team"))


@pytest.mark.parametrize("how", ["task", "scope"])
async def test_a_cancelled_block_is_saved(how: str, client: AsyncClient) -> None:
    team, running = made(Scripted("Green tea."), client), asyncio.Event()

    async def work() -> None:
        async with persisted(client.state("team"), "chat", team):
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
    saved = await stored(client.state("team"))
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
        async with persisted(client.state("team"), "chat", team):
            await team.run(task="Which tea?", cancellation_token=token)

    task = asyncio.ensure_future(work())
    await model.thinking.wait()
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    again = Scripted("Still green.")
    team = RoundRobinGroupChat([AssistantAgent("ada", again)], max_turns=2)
    async with persisted(client.state("team"), "chat", team):
        await team.run(task="And now?")
    said = [one.content for one in again.prompts[0]]
    assert said[-3:] == ["Which tea?", "Green tea.", "And now?"]


async def test_a_state_that_cannot_be_read_is_an_error_and_is_not_overwritten(client: AsyncClient) -> None:
    await client.state("team").set("chat", "not a team")
    team = made(Scripted("Green tea."), client)
    with pytest.raises(InvalidInputError):
        async with persisted(client.state("team"), "chat", team):
            raise AssertionError("not reached")
    assert await client.state("team").get("chat") == "not a team"
    with RawServer([respond(500)]) as server:
        async with AsyncClient(server.url, timeout=0.2) as out:
            with pytest.raises(KronmemError):
                async with persisted(out.state("team"), "chat", team):
                    raise AssertionError("not reached")


async def test_every_message_is_saved_before_the_next_model_is_asked(client: AsyncClient) -> None:
    state = client.state("team")

    class Looking(Scripted):
        async def create(self, *args: Any, **options: Any) -> CreateResult:
            last = f"Answer {len(self.prompts) - 1}" if self.prompts else "Which tea?"
            with anyio.fail_after(60):
                while (await stored(state)).count(last) < 2:  # by the agent that said it, and by the team
                    await asyncio.sleep(0.01)
            return await super().create(*args, **options)

    model = Looking(*(f"Answer {number}" for number in range(4)))
    team = RoundRobinGroupChat([AssistantAgent(name, model) for name in ("ada", "bob")], max_turns=4)
    async with persisted(state, "chat", team):
        result = await team.run(task="Which tea?")
    assert [one.content for one in result.messages][1:] == [f"Answer {number}" for number in range(4)]  # type: ignore[union-attr] # texts


class Late:
    """A team of a busy machine: it tells of a message long before it has it, and then waits for a model."""

    def __init__(self, state: Any) -> None:
        self._state, self._messages = state, list[str]()

    async def save_state(self) -> dict[str, Any]:
        return {"messages": list(self._messages)}

    async def load_state(self, state: Any) -> None:
        raise AssertionError("nothing was saved")

    async def run_stream(self) -> AsyncIterator[str]:
        yield "told"
        await asyncio.sleep(0.3)
        self._messages.append("taken in")
        with anyio.fail_after(60):
            while "taken in" not in await stored(self._state):
                await asyncio.sleep(0.01)


@pytest.mark.slow
async def test_a_message_that_a_team_takes_in_late_is_saved_while_the_model_thinks(client: AsyncClient) -> None:
    team = Late(client.state("team"))
    async with persisted(client.state("team"), "chat", team):
        assert [message async for message in team.run_stream()] == ["told"]


@pytest.mark.slow
async def test_only_the_changed_parts_are_written(client: AsyncClient) -> None:
    sizes = list[int]()
    for turns in (10, 100):
        with Client.local(":memory:") as blocking:
            state = blocking.state("team")
            agent = AssistantAgent("ada", Scripted(*["I see."] * (turns + 1)))
            team = RoundRobinGroupChat([agent], max_turns=1)
            async with persisted(state, "chat", team):
                for _ in range(turns):
                    await team.run(task="Which tea?")
            before = set(state.keys())
            async with persisted(state, "chat", team):
                await team.run(task="Which tea?")
            sizes.append(len(json.dumps([state.get(key) for key in set(state.keys()) - before])))
    assert sizes[0] > 100
    assert sizes[1] < 1.2 * sizes[0]


class Moody(State):
    """A state that cannot be written for a while."""

    def __init__(self, inner: State) -> None:
        self._inner, self.broken = inner, True

    def get(self, key: str, default: Any = None) -> Any:
        return self._inner.get(key, default)

    def set(self, key: str, value: Any) -> None:
        if self.broken:
            raise KronmemError("disk full")
        self._inner.set(key, value)


async def test_a_save_on_the_way_that_fails_is_logged_once_and_made_up_for(caplog: pytest.LogCaptureFixture) -> None:
    with Client.local(":memory:") as client:
        state = Moody(client.state("team"))
        team = RoundRobinGroupChat([AssistantAgent("ada", Scripted(*["I see."] * 3))], max_turns=3)
        async with persisted(state, "chat", team):
            result = await team.run(task="Which tea?")
            state.broken = False
        assert len(result.messages) == 4
        failed = "the saving of the state 'chat' is unavailable, going on without it (KronmemError: disk full)"
        assert caplog.messages.count(failed) == 1
        assert "run_stream" not in vars(team)
        again = RoundRobinGroupChat([AssistantAgent("ada", Scripted("Green."))], max_turns=1)
        async with persisted(state, "chat", again):
            pass
        assert (await again.save_state())["agent_states"] == (await team.save_state())["agent_states"]


async def test_the_saved_state_of_an_agent_holds_no_block(client: AsyncClient) -> None:
    model = Scripted("Green tea.")
    agent = AssistantAgent("ada", model, memory=[KronMemory("team", client=client)])
    await agent.run(task="Which tea?")
    assert len(blocks(model.prompts[0])) == 1
    assert "likes green tea" not in json.dumps(await agent.save_state())


KILLED = """
import asyncio, os, signal
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from kronmem import AsyncClient
from kronmem.agentchat import persisted
from tests.agentchat.scripted import Scripted
from tests.agentchat.test_persist import stored

state = AsyncClient().state("team")

class Deadly(Scripted):
    async def create(self, *args, **options):
        if len(self.prompts) == 3:
            while (await stored(state)).count("Answer 2") < 2:
                await asyncio.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().create(*args, **options)

async def main():
    model = Deadly(*(f"Answer {number}" for number in range(9)))
    team = RoundRobinGroupChat([AssistantAgent(name, model) for name in ("ada", "bob")], max_turns=9)
    async with persisted(state, "chat", team):
        await team.run(task="Which tea?")

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_killed_team_goes_on_with_all_but_the_message_under_way() -> None:
    root = Path(__file__).parent.parent.parent
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=root, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    model = Scripted(*["Green."] * 9)
    team = RoundRobinGroupChat([AssistantAgent(name, model) for name in ("ada", "bob")], max_turns=9)
    async with AsyncClient() as client, persisted(client.state("team"), "chat", team):
        await team.run(task="And now?")
    said = [str(one.content) for one in model.prompts[0]]
    assert [one for one in said if one.startswith("Answer")] == ["Answer 0", "Answer 1", "Answer 2"]


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
        async with persisted(Failing(), "chat", team):
            pass
    assert caplog.records == []
    with pytest.raises(ZeroDivisionError):
        async with persisted(Failing(), "chat", team):
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


async def test_a_state_that_0_2_saved_is_loaded_by_calls_in_the_order_of_0_2(client: AsyncClient) -> None:
    state, model = client.state("team"), Scripted("As I said.")
    sample = Path(__file__).parent.parent / "samples" / "chats-0.2.json"
    for key, value in json.loads(sample.read_text("utf-8")).items():
        await state.set(key, value)
    clerk, editor = AssistantAgent("clerk", model, system_message=None), AssistantAgent("editor", Scripted("Fine."))
    team = RoundRobinGroupChat([clerk, editor], max_turns=1)
    with pytest.warns(DeprecationWarning, match=r"persisted\(state, key, team\)"):
        old: Any = persisted(team, state, "team")  # type: ignore[arg-type] # not as 0.3 is typed
    async with old:
        await team.run(task="Now translate it.")
    said = [one.content for one in model.prompts[0]]
    assert said == ["Write about whales.", "Draft 4 done.", "Well done.", "Now translate it."]
