"""Conversations of AG2 1.x that outlive their process: the events of a stream, saved under a key of a state."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from functools import partial
from typing import cast
from uuid import UUID

from ag2 import Context, Plugin
from ag2.events import BaseEvent, ModelRequest, ModelResponse, ToolCallEvent, ToolResultEvent, ToolResultsEvent
from ag2.middleware import AgentTurn, BaseMiddleware, LLMCall, Middleware, ToolExecution, ToolResultType
from anyio import to_thread
from pydantic import JsonValue

from kronmem import AsyncState, ConfigError, DeadlineError, InvalidInputError, KronmemError, State
from kronmem.ag2.plugin import words_of
from kronmem.packs.deadlines import LogOnce, bounded_async
from kronmem.packs.message_log import Awaited, ChangeLog

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


class _Record(BaseEvent):
    """An event as it is stored: AG2 writes the class of an event only where it is inside another one."""

    event: BaseEvent


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
            self._conversation.busy = False
            await self._conversation.save(context)

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
        self.busy = False
        self._stored: list[BaseEvent] = []
        self._length = 0  # of the journal: records that this version cannot read stay in it

    async def begin(self, event: BaseEvent, context: Context) -> None:
        """Put the saved events into a stream that is new."""
        if self.busy:
            raise ConfigError(f"a turn of the conversation {self._key!r} is under way: one plugin, one conversation")
        if context.stream.id != self._stream:
            self.busy = True
            try:
                await self._resume(event, context)
            finally:
                self.busy = False
        self.busy = True

    async def _resume(self, event: BaseEvent, context: Context) -> None:
        self._journal, self._stored, self._length = None, [], 0
        state = Awaited(self._state) if isinstance(self._state, AsyncState) else self._state
        journal = ChangeLog(state, self._key, "conversation")
        try:
            head = await to_thread.run_sync(journal.read, abandon_on_cancel=True)
        except InvalidInputError as error:
            raise ConfigError(str(error)) from None
        except KronmemError as error:
            self._stream = context.stream.id
            self._log.failed(error)
            return
        records = cast("dict[str, list[JsonValue]]", head["value"]).get("events", []) if head else []
        events = list(await context.stream.history.get_events())
        if records and any(isinstance(one, (ModelRequest, ModelResponse)) for one in events):
            raise ConfigError(f"this stream holds another conversation than the one saved under {self._key!r}")
        if records:
            saved = [event for record in records for event in self._events(record)]
            self._stored = _before(saved, event)
            self._length = len(records) - len(saved) + len(self._stored)
            await context.stream.history.replace([*self._stored, *events])
        self._journal, self._stream = journal, context.stream.id

    def _events(self, record: JsonValue) -> list[BaseEvent]:
        try:
            event = cast("_Record", _Record.from_dict(cast("dict[str, JsonValue]", record))).event
        except Exception as error:  # noqa: BLE001 -- another version of AG2 may have written anything
            self._unreadable.failed(error)
            return []
        # Of a class that cannot be imported AG2 leaves a dict.
        return [event] if isinstance(event, BaseEvent) else []  # pyright: ignore[reportUnnecessaryIsInstance]

    async def save(self, context: Context) -> None:
        """Store the events that are new; never raises."""
        if self._journal is not None and context.stream.id == self._stream:
            with self._log.swallowing():
                work = partial(self._write, self._journal, list(await context.stream.history.get_events()))
                await bounded_async(partial(to_thread.run_sync, work, abandon_on_cancel=True), TIMEOUT)

    def _write(self, journal: ChangeLog, events: list[BaseEvent]) -> None:
        if not self._writing.acquire(timeout=TIMEOUT):
            raise DeadlineError("an earlier save has not ended yet", sent=False)
        try:
            known = len(self._stored)
            grown = known <= len(events) and events[known - 1 : known] == self._stored[-1:]
            start, new = (self._length, events[known:]) if grown else (0, events)
            if new or not grown:
                records = [_Record(event=one).to_dict() for one in new]
                change = ["events"], start, json.loads(json.dumps(records, default=str))
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
    repeated = begun < len(saved) and words_of(saved[begun]) == words_of(event) != ""
    return saved[:begun] if repeated else saved[: asked + 1]
