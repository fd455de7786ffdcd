"""Conversations of AG2 1.x that outlive their process: the events of a stream, saved under a key of a state."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import cast
from uuid import UUID

from ag2 import Context, Plugin
from ag2.events import (
    BaseEvent,
    ModelRequest,
    ModelResponse,
    TextInput,
    ToolCallEvent,
    ToolResultEvent,
    ToolResultsEvent,
)
from ag2.middleware import AgentTurn, BaseMiddleware, LLMCall, Middleware, ToolExecution, ToolResultType
from anyio import to_thread
from pydantic import JsonValue

from kronmem import AsyncState, ConfigError, DeadlineError, InvalidInputError, KronmemError, State
from kronmem.packs.bounded_call import bounded_async
from kronmem.packs.log_once import LogOnce
from kronmem.packs.saved_changes import Awaited, ChangeLog

TIMEOUT = 2.0
"""Seconds that a model or a tool may wait for the saving before it: as long as for a recall."""


def persisted(state: AsyncState | State, key: str) -> Plugin:
    """Make the plugin of one conversation: `Agent(…, plugins=[persisted(client.state("ada"), "chat")])`.

    The first `ask` of a process goes on after the saved events, and so does every `ask` with a stream of its own.
    Events are saved before each call of the model and of a tool, and at the end of a turn: kill -9 loses at most the
    one under way. Of a turn that broke off, calls without results are left out, and asked again it is not doubled.

    When the store is out of reach the conversation goes on without: logged once, and nothing overwrites an unread one.
    Two turns at the same time, and a stream with another conversation in it, are a `ConfigError`.
    """
    return Plugin(middleware=[Middleware(_Saving, conversation=_Conversation(state, key))])


class _Saving(BaseMiddleware):
    """The hooks of one turn."""

    def __init__(self, event: BaseEvent, context: Context, *, conversation: _Conversation) -> None:
        super().__init__(event, context)
        self._conversation = conversation

    async def on_turn(self, call_next: AgentTurn, event: BaseEvent, context: Context) -> ModelResponse:
        await self._conversation.begin(event, context)
        try:
            return await call_next(event, context)
        finally:
            await self._conversation.end(context)

    async def on_llm_call(self, call_next: LLMCall, events: Sequence[BaseEvent], context: Context) -> ModelResponse:
        await self._conversation.save(context)
        return await call_next(events, context)

    async def on_tool_execution(
        self, call_next: ToolExecution, event: ToolCallEvent, context: Context
    ) -> ToolResultType:
        await self._conversation.save(context)
        return await call_next(event, context)


class _Conversation:
    """The journal of one conversation, and how much of its stream it holds."""

    def __init__(self, state: AsyncState | State, key: str) -> None:
        self._state, self._key = state, key
        self._log = LogOnce(f"the saving of the conversation {key!r}")
        self._unreadable = LogOnce(f"an event of the conversation {key!r}")
        self._writing = threading.Lock()
        self._journal: ChangeLog | None = None
        self._stream: UUID | None = None
        self._busy = False
        self._stored: list[BaseEvent] = []
        self._length = 0  # of the journal: records that this version cannot read stay in it

    async def begin(self, event: BaseEvent, context: Context) -> None:
        """Put the saved events into a stream that is new."""
        if self._busy:
            raise ConfigError(f"a turn of the conversation {self._key!r} is under way: one plugin, one conversation")
        if context.stream.id != self._stream:
            await self._resume(event, context)
        self._busy = True

    async def _resume(self, event: BaseEvent, context: Context) -> None:
        self._journal, self._stored, self._length = None, [], 0
        state = Awaited(self._state) if isinstance(self._state, AsyncState) else self._state
        journal = ChangeLog(state, self._key, "conversation")
        try:
            records = await to_thread.run_sync(partial(self._read, journal), abandon_on_cancel=True)
        except InvalidInputError as error:
            raise ConfigError(str(error)) from None
        except KronmemError as error:
            self._stream = context.stream.id
            self._log.failed(error)
            return
        events = list(await context.stream.history.get_events())
        if records and any(isinstance(one, (ModelRequest, ModelResponse)) for one in events):
            raise ConfigError(f"this stream holds another conversation than the one saved under {self._key!r}")
        if records:
            saved = [one for one in map(self._event, records) if one is not None]
            self._stored = _before(saved, event)
            self._length = len(records) - len(saved) + len(self._stored)
            await context.stream.history.replace([*self._stored, *events])
        self._journal, self._stream = journal, context.stream.id

    def _read(self, journal: ChangeLog) -> list[JsonValue]:
        head = journal.read()
        if head is None:
            return []
        if head.get("kind") != "conversation":
            raise ConfigError(f"the value saved under {self._key!r} is not a conversation")
        value = cast("dict[str, list[JsonValue]]", head["value"])
        return value.get("events", [])

    def _event(self, record: JsonValue) -> BaseEvent | None:
        try:
            name, data = cast("tuple[str, dict[str, JsonValue]]", record)
            return _classes()[name].from_dict(data)
        except Exception as error:  # noqa: BLE001 -- another version of AG2 may have written anything
            self._unreadable.failed(error)
            return None

    async def end(self, context: Context) -> None:
        """Save the rest of a turn."""
        self._busy = False
        await self.save(context)

    async def save(self, context: Context) -> None:
        """Store the events that are new; never raises."""
        if self._journal is None or context.stream.id != self._stream:
            return
        with self._log.swallowing():
            events = list(await context.stream.history.get_events())
            work = partial(self._write, self._journal, events)
            await bounded_async(partial(to_thread.run_sync, work, abandon_on_cancel=True), TIMEOUT)

    def _write(self, journal: ChangeLog, events: list[BaseEvent]) -> None:
        if not self._writing.acquire(timeout=TIMEOUT):
            raise DeadlineError("an earlier save has not ended yet", sent=False)
        try:
            known = len(self._stored)
            grown = known <= len(events) and events[known - 1 : known] == self._stored[-1:]
            start, new = (self._length, events[known:]) if grown else (0, events)
            if new or not grown:
                change = ["events"], start, [_record(event) for event in new]
                journal.append([change]) if journal.begun else journal.begin([change], {})
                self._stored, self._length = events, start + len(new)
        finally:
            self._writing.release()


def _before(saved: list[BaseEvent], event: BaseEvent) -> list[BaseEvent]:
    """The saved events that a new one goes on after.

    An answer that is not complete is left out, since no model accepts a call without its result; and so is the whole
    turn when its request is repeated.
    """
    asked = max((at for at, one in enumerate(saved) if isinstance(one, (ModelRequest, ToolResultsEvent))), default=-1)
    tail = saved[asked + 1 :]
    given = {one.parent_id for one in tail if isinstance(one, ToolResultEvent)}
    answers = [one for one in tail if isinstance(one, ModelResponse)]
    called = {call.id for one in answers if one.tool_calls for call in one.tool_calls.calls}
    if answers and called <= given:
        return saved
    begun = max((at for at, one in enumerate(saved) if isinstance(one, ModelRequest)), default=0)
    repeated = begun < len(saved) and _words(saved[begun]) == _words(event) != ""
    return saved[:begun] if repeated else saved[: asked + 1]


def _words(event: BaseEvent) -> str:
    parts = event.parts if isinstance(event, ModelRequest) else []
    return "\n".join(part.content for part in parts if isinstance(part, TextInput))


def _record(event: BaseEvent) -> JsonValue:
    plain: JsonValue = json.loads(json.dumps(event.to_dict(), default=str))
    return [f"{type(event).__module__}.{type(event).__qualname__}", plain]


def _classes() -> dict[str, type[BaseEvent]]:
    """The classes of events by their names: of those that are imported, nothing is imported by a stored name."""
    return {f"{one.__module__}.{one.__qualname__}": one for one in _descendants(BaseEvent)}


def _descendants(kind: type[BaseEvent]) -> Iterator[type[BaseEvent]]:
    for one in kind.__subclasses__():
        yield one
        yield from _descendants(one)
