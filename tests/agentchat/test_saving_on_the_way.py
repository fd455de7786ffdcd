"""persisted while a team runs: slow, abandoned and interrupted saves leave nothing behind and nothing wrong."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from autogen_core.models import UserMessage

from kronmem import AsyncClient, AsyncState, Client, State
from kronmem.agentchat import persisted
from tests.agentchat.scripted import Scripted, call

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parent.parent.parent


class Gate:
    """Holds one write whose value contains a text, until it is opened."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.entered, self.opened = threading.Event(), threading.Event()

    def hold(self, text: str) -> None:
        self.text = text
        self.entered.clear()
        self.opened.clear()

    def stops(self, value: Any) -> bool:
        if self.text is None or self.text not in json.dumps(value):
            return False
        self.text = None
        self.entered.set()
        return True

    async def reached(self) -> None:
        assert await to_thread.run_sync(self.entered.wait, 60)


class Held(State):
    """A real state behind a gate."""

    def __init__(self, inner: State, gate: Gate) -> None:
        self._inner, self._gate = inner, gate

    def get(self, key: str, default: Any = None) -> Any:
        return self._inner.get(key, default)

    def set(self, key: str, value: Any) -> None:
        if self._gate.stops(value):
            self._gate.opened.wait(60)
        self._inner.set(key, value)


class AsyncHeld(AsyncState):
    """The same for async programs."""

    def __init__(self, inner: AsyncState, gate: Gate) -> None:
        self._inner, self._gate = inner, gate

    async def get(self, key: str, default: Any = None) -> Any:
        return await self._inner.get(key, default)

    async def set(self, key: str, value: Any) -> None:
        if self._gate.stops(value):
            while not self._gate.opened.is_set():
                await asyncio.sleep(0.01)
        await self._inner.set(key, value)


class Store:
    """A state, with the gate before it and the texts in it."""

    def __init__(self, state: Any, held: Any, gate: Gate) -> None:
        self._state, self.held, self.gate = state, held, gate

    async def texts(self) -> str:
        if isinstance(self._state, State):
            return json.dumps([self._state.get(key) for key in sorted(self._state.keys())])
        return json.dumps([await self._state.get(key) for key in await self._state.keys()])

    async def holds(self, text: str) -> None:
        """Wait until it is stored."""
        with anyio.fail_after(60):
            while text not in await self.texts():
                await asyncio.sleep(0.01)


@pytest.fixture(params=["State", "AsyncState"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    gate = Gate()
    with Client.local(":memory:") as blocking:
        async with AsyncClient("sqlite://") as client:
            if request.param == "State":
                yield Store(blocking.state("team"), Held(blocking.state("team"), gate), gate)
            else:
                yield Store(client.state("team"), AsyncHeld(client.state("team"), gate), gate)


class Worker(BaseChatAgent):
    """An agent of one's own: `doing` is its state, and each turn is a piece of work that ends with an answer."""

    def __init__(self, work: Callable[[Worker], Awaitable[str]]) -> None:
        super().__init__("worker", "works")
        self._work, self.turn, self.doing = work, 0, "nothing yet"

    @property
    def produced_message_types(self) -> Sequence[type[Any]]:
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[Any], cancellation_token: CancellationToken) -> Response:
        self.turn += 1
        return Response(chat_message=TextMessage(content=await self._work(self), source=self.name))

    async def on_reset(self, cancellation_token: CancellationToken) -> None: ...

    async def save_state(self) -> Mapping[str, Any]:
        return {"doing": self.doing}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        self.doing = state["doing"]


@pytest.mark.slow
async def test_a_message_that_comes_during_a_later_save_does_not_end_the_saving(store: Store) -> None:
    async def work(worker: Worker) -> str:
        await store.holds(f"Answer {worker.turn - 1}" if worker.turn > 1 else "Begin.")
        worker.doing = f"step {worker.turn}"
        store.gate.hold(worker.doing)
        await store.gate.reached()
        asyncio.get_running_loop().call_later(0.1, store.gate.opened.set)
        return f"Answer {worker.turn}"

    team = RoundRobinGroupChat([Worker(work)], max_turns=4)
    async with persisted(store.held, "chat", team):
        result = await team.run(task="Begin.")
        await store.holds("Answer 4")
    assert len(result.messages) == 5


@pytest.mark.slow
async def test_a_hang_that_ends_is_made_up_for_while_a_model_thinks(store: Store) -> None:
    async def work(worker: Worker) -> str:
        if worker.turn == 1:
            worker.doing = "step 1"
            store.gate.hold("Answer 1")
            return "Answer 1"
        await store.gate.reached()
        asyncio.get_running_loop().call_later(6, store.gate.opened.set)  # no save on the way waits that long
        worker.doing = "step 2"
        await store.holds("step 2")  # although nothing new is told
        return "Answer 2"

    team = RoundRobinGroupChat([Worker(work)], max_turns=2)
    async with persisted(store.held, "chat", team):
        await team.run(task="Begin.")


async def nothing(worker: Worker) -> str:
    return f"Done with {worker.doing}."


async def interrupted(store: Store, worker: Worker, team: RoundRobinGroupChat) -> None:
    """A run that is cancelled while its state is written: "busy"."""
    worker.doing = "busy"
    store.gate.hold("busy")
    running = asyncio.ensure_future(team.run(task="Once more."))
    await store.gate.reached()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_an_abandoned_write_that_arrives_does_not_outlive_a_later_value(store: Store) -> None:
    worker, again = Worker(nothing), Worker(nothing)
    team = RoundRobinGroupChat([worker], max_turns=1)
    async with persisted(store.held, "chat", team):
        await team.run(task="Begin.")
        await interrupted(store, worker, team)
        store.gate.opened.set()
        await store.holds("busy")
        worker.doing = "nothing yet"  # as it was saved before
    async with persisted(store.held, "chat", RoundRobinGroupChat([again], max_turns=1)):
        assert again.doing == "nothing yet"


async def test_the_end_waits_for_a_write_under_way(store: Store) -> None:
    worker, again = Worker(nothing), Worker(nothing)
    team = RoundRobinGroupChat([worker], max_turns=1)
    async with persisted(store.held, "chat", team, timeout=60):
        await team.run(task="Begin.")
        await interrupted(store, worker, team)
        worker.doing = "resting"
        asyncio.get_running_loop().call_later(0.1, store.gate.opened.set)
    async with persisted(store.held, "chat", RoundRobinGroupChat([again], max_turns=1)):
        assert again.doing == "resting"


async def test_a_stream_that_is_left_early_leaves_the_team_free(store: Store) -> None:
    team = RoundRobinGroupChat([Worker(nothing)], max_turns=1)
    async with persisted(store.held, "chat", team):
        async with aclosing(team.run_stream(task="Begin.")) as messages:
            async for _ in messages:
                break
        result = await team.run(task="Once more.")
    assert len(result.messages) == 2
    assert "Once more." in await store.texts()


def note(part: str) -> str:
    """Note that a part is done."""
    return f"Done with {part}."


@pytest.mark.parametrize("turn", ["an answer", "the summary of a tool"])
async def test_a_message_said_again_in_the_same_words_is_heard_again(turn: str, store: Store) -> None:
    def made(model: Scripted) -> RoundRobinGroupChat:
        return RoundRobinGroupChat([AssistantAgent(name, model, tools=[note]) for name in ("ada", "bob")], max_turns=1)

    answer = call("note", part="part 1") if turn == "the summary of a tool" else "Done with part 1."
    first, second = made(Scripted(answer, "Done with part 2.")), Scripted("Done.")
    async with persisted(store.held, "chat", first):
        for _ in range(2):  # ada answers the first, bob the second
            await first.run(task="Continue.")
    team = made(second)
    async with persisted(store.held, "chat", team):
        await team.run(task="And now?")
    said = [one.content for one in second.prompts[0] if isinstance(one, UserMessage)]
    assert said == ["Continue.", "Continue.", "Done with part 2.", "And now?"]


ENDS = """
import asyncio
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from kronmem import AsyncClient, AsyncState
from kronmem.agentchat import persisted
from tests.agentchat.scripted import Scripted

class Hanging(AsyncState):
    def __init__(self):
        pass
    async def get(self, key, default=None):
        return default
    async def set(self, key, value):
        await asyncio.sleep(3600)

async def main():
    team = RoundRobinGroupChat([AssistantAgent("a", model_client=Scripted("hello"))], max_turns=1)
    try:
        async with persisted(Hanging(), "k", team, timeout=0.3):
            await team.run(task="hi")
    except Exception as error:
        print(type(error).__name__)

loop = asyncio.new_event_loop()
loop.run_until_complete(main())
loop.close()
"""


@pytest.mark.slow
async def test_a_process_whose_loop_is_closed_during_a_save_ends() -> None:
    with anyio.fail_after(60):
        ended = await anyio.run_process([sys.executable, "-c", ENDS], cwd=ROOT)
    assert ended.stdout == b"DeadlineError\n"
