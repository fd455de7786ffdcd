"""Resumes a team: its state is loaded at the start, and its changes are saved after every message.

Memories that were recalled into it are taken out before saving, so that a forgotten one does not live on there.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import warnings
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any, Protocol, cast

import anyio
from anyio import to_thread
from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from kronmem import AsyncState, DeadlineError, State
from kronmem.agentchat.injection import SOURCE
from kronmem.agentchat.memory import OURS
from kronmem.packs.block import is_block
from kronmem.packs.deadlines import LogOnce
from kronmem.packs.message_log import Awaited, Change, ChangeLog, differences

# Saves the state of a team or an agent while it runs: of AutoGen's `save_state`, only the parts that changed.

TIMEOUT = 2.0
"""Seconds that a message may wait for its saving: as long as for a recall."""
PAUSES = (0.05, 0.4, 3.0)
"""Seconds between further saves while no message is emitted: a team has taken in its message after the first of them,
on a busy machine later, and a model may think for longer than that. A save that finds no change writes nothing."""

JsonObject = dict[str, JsonValue]


class Stateful(Protocol):
    """A team or an agent: AutoGen's own two methods."""

    async def save_state(self) -> Mapping[str, Any]:
        """Tell everything that is needed to go on."""
        ...

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        ...


class StateSaver:
    """The journal of one state, and the state as it was saved last."""

    def __init__(
        self,
        team: Stateful,
        state: AsyncState | State,
        key: str,
        timeout: float,
        cleaned: Callable[[JsonValue], JsonValue],
    ) -> None:
        self._team, self._key, self._timeout, self._cleaned = team, key, timeout, cleaned
        self._journal = ChangeLog(Awaited(state) if isinstance(state, AsyncState) else state, key, "state of a team")
        self._log = LogOnce(f"the saving of the state {key!r}")
        self._one, self._writing = asyncio.Lock(), threading.Lock()
        self._saved: JsonObject = {}
        self.behind = False

    async def read(self) -> JsonObject | None:
        """The saved state; None when there is none."""
        head = await to_thread.run_sync(self._journal.read, abandon_on_cancel=True)
        if head is None:
            return None
        self._saved = cast("JsonObject", head["value"])
        return cast("JsonObject", to_jsonable_python(self._saved))  # a copy: AutoGen may keep parts of it

    async def save(self) -> None:
        """Save now, within the timeout, also when the run was cancelled."""
        await self._save(self._timeout)

    async def save_quietly(self) -> None:
        """Save on the way: a failure is logged once, and a store that hangs is not waited for at every message.

        `behind` is true while a failed save has still to be made up for.
        """
        self.behind = True
        if not self._one.locked() and not self._writing.locked():
            with self._log.swallowing():
                await self._save(min(TIMEOUT, self._timeout))
                self.behind = False

    async def _save(self, timeout: float) -> None:
        try:
            with anyio.fail_after(timeout, shield=True):
                async with self._one:
                    await self._write(timeout)
        except TimeoutError:
            raise DeadlineError(f"the state {self._key!r} was not saved within {timeout} s") from None

    async def _write(self, timeout: float) -> None:
        new = cast("JsonObject", self._cleaned(cast("JsonValue", to_jsonable_python(await self._team.save_state()))))

        def alone() -> None:
            if not self._writing.acquire(timeout=timeout):
                raise DeadlineError("an earlier save has not ended yet", sent=False)
            try:
                self._store(new)
            finally:
                self._writing.release()

        await to_thread.run_sync(alone, abandon_on_cancel=True)

    def _store(self, new: JsonObject) -> None:
        """Write the changes and note them, also when the caller no longer waits."""
        if self._journal.begun:
            self._journal.append(list(differences(self._saved, new)))
        else:
            whole: Sequence[Change] = [([name], None, part) for name, part in new.items()]
            self._journal.begin(whole, {})
        self._saved = new


@asynccontextmanager
async def watching(team: Stateful, saver: StateSaver) -> AsyncGenerator[None]:
    """Save after every message that the team or the agent emits, and once more when none has followed."""
    quiet = _Quiet(saver)
    stream = "on_messages_stream" if hasattr(team, "on_messages_stream") else "run_stream"
    before = {name: own for name, own in vars(team).items() if name == stream}  # another caller's, or of another key
    setattr(team, stream, _saving(getattr(team, stream), quiet))  # AutoGen calls its own methods, and so this one
    try:
        yield
    finally:
        vars(team).pop(stream, None)
        vars(team).update(before)
        await quiet.end()


def _saving(stream: Callable[..., AsyncGenerator[Any]], quiet: _Quiet) -> Callable[..., AsyncGenerator[Any]]:
    async def saved(*args: Any, **options: Any) -> AsyncGenerator[Any]:
        async with aclosing(stream(*args, **options)) as messages:  # one left early is over, and the team is free again
            async for message in messages:
                await quiet.save()
                yield message

    return saved


class _Quiet:
    """Saves at once, and again a moment later: a team emits a message before all its members have it."""

    def __init__(self, saver: StateSaver) -> None:
        self._saver = saver
        self._later: tuple[asyncio.Task[None], asyncio.Event] | None = None

    async def save(self) -> None:
        """Save now, and later unless this is called again before."""
        await self.end()
        await self._saver.save_quietly()
        if self._later is None:
            over = asyncio.Event()
            self._later = asyncio.ensure_future(self._wait(over)), over

    async def _wait(self, over: asyncio.Event) -> None:
        pauses = list(PAUSES)
        while pauses or self._saver.behind:
            with anyio.move_on_after(pauses.pop(0) if pauses else PAUSES[-1]):
                await over.wait()
                return
            await self._saver.save_quietly()

    async def end(self) -> None:
        """Stop waiting; a save under way is finished."""
        later, self._later = self._later, None
        if later is not None:
            task, over = later
            over.set()
            await asyncio.wait([task])


log = logging.getLogger("kronmem")


def persisted(
    state: AsyncState | State, key: str, team: Stateful, *, timeout: float = 10.0
) -> AbstractAsyncContextManager[None]:
    """Load the team's state from `key` if there is any, and save its changes after every message and at the end.

    A save on the way that fails is logged once, and the run goes on. The last save has `timeout` seconds, also after an
    error or a cancellation: if it fails then, that is logged and the first error goes on, otherwise it is raised. A
    state that cannot be loaded is an error and is not overwritten. Blocks injected by `KronMemory` are not saved;
    messages of models and tools are.
    """
    if isinstance(team, str):  # pyright: ignore[reportUnnecessaryIsInstance] # the order of 0.2: team, state, key
        warnings.warn(
            "persisted(team, state, key) is now persisted(state, key, team)", DeprecationWarning, stacklevel=2
        )
        team, state, key = cast("tuple[Stateful, AsyncState | State, str]", (state, key, team))
    return _persisted(state, key, team, timeout)


@asynccontextmanager
async def _persisted(state: AsyncState | State, key: str, team: Stateful, timeout: float) -> AsyncGenerator[None, None]:
    saver = StateSaver(team, state, key, timeout, lambda saved: without_received(without_memories(saved)))
    saved = await saver.read()
    if saved is not None:
        await team.load_state(saved)
    try:
        async with watching(team, saver):
            yield
    except BaseException:
        await _rescue(saver, key)
        raise
    await saver.save()


def without_memories(value: JsonValue) -> JsonValue:
    """A saved state without injected blocks and their events, at any depth."""
    if isinstance(value, dict):
        return {name: without_memories(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_memories(inner) for inner in value if not _is_injected(inner)]
    return value


def without_received(value: JsonValue) -> JsonValue:
    """A team's state in which no agent has a message both in its model's context and in its buffer.

    AutoGen empties the buffer when the agent has answered: saved during a turn and loaded again, the agent would hear
    the message twice.
    """
    if not isinstance(value, dict) or not isinstance(agents := value.get("agent_states"), dict):
        return value
    return {
        **value,
        "agent_states": {name: _without_received(one, _tool_results_of(name, agents)) for name, one in agents.items()},
    }


def _without_received(agent: JsonValue, results: list[JsonValue]) -> JsonValue:
    if not isinstance(agent, dict):
        return agent
    match agent:
        case {"message_buffer": list(buffer), "agent_state": {"llm_context": {"messages": list(context)}}}:
            return {**agent, "message_buffer": buffer[_overlap(buffer, _unanswered(context, results)) :]}
        case {"agent_state": dict(inner)}:  # a team within the team
            return {**agent, "agent_state": without_received(inner)}
        case _:
            return agent


def _tool_results_of(name: str, agents: Mapping[str, JsonValue]) -> list[JsonValue]:
    """The results of an agent's tools in the history of its team, which holds those of finished turns only."""
    histories = [one.get("message_thread") for one in agents.values() if isinstance(one, dict)]
    return [
        message.get("content")
        for history in histories
        if isinstance(history, list)
        for message in history
        if isinstance(message, dict)
        and (message.get("type"), message.get("source")) == ("ToolCallExecutionEvent", name)
    ]


def _unanswered(context: Sequence[JsonValue], results: list[JsonValue]) -> list[JsonValue]:
    """The messages of users in a model's context that came after its last finished turn.

    A turn ends with an answer, or with the results of its tools: those look the same while the model still thinks
    about them, but are not among `results` then.
    """
    received = list[JsonValue]()
    for one in context:
        match one:
            case {"type": "UserMessage", "content": content}:
                received.append(content)
            case {"type": "AssistantMessage", "content": str()}:  # an answer; a call of tools is a list
                received.clear()
            case {"type": "FunctionExecutionResultMessage", "content": content} if content in results:
                results.remove(content)  # once each: some models give every call the same id
                received.clear()
            case _:
                pass
    return received


def _overlap(buffer: Sequence[JsonValue], received: Sequence[JsonValue]) -> int:
    """How many messages at the beginning of the buffer are the last ones that were received."""
    contents = [one.get("content") for one in buffer if isinstance(one, dict)]
    return next((count for count in range(len(contents), 0, -1) if contents[:count] == received[-count:]), 0)


def _is_injected(value: JsonValue) -> bool:
    """A block in a model's context, or the event about it in a team's history."""
    if not isinstance(value, dict):
        return False
    content = value.get("content")
    if value.get("source") == SOURCE and isinstance(content, str):
        return is_block(content)
    if value.get("type") != "MemoryQueryEvent" or not isinstance(content, list):
        return False
    return any(isinstance(one, dict) and OURS in cast("dict[str, Any]", one.get("metadata") or {}) for one in content)


async def _rescue(saver: StateSaver, key: str) -> None:
    try:
        await saver.save()
    except Exception as error:  # noqa: BLE001 -- the error that ended the run is the one to be raised
        log.warning("the state %r could not be saved (%s: %s)", key, type(error).__name__, error)
