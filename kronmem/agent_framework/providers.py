"""KronmemHistoryProvider: the messages of Agent Framework's sessions, kept in the state of an agent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from agent_framework import AgentSession, HistoryProvider, Message, SessionContext, SupportsAgentRun
from pydantic import JsonValue

from kronmem import AsyncClient, InvalidInputError
from kronmem.packs.capture import stable_id
from kronmem.packs.lazy_memory import LazyMemory
from kronmem.packs.log_once import LogOnce
from kronmem.packs.state_values import values_of
from kronmem.packs.storable_json import storable
from kronmem.packs.turn_memory import TimeBudget

MAX_MESSAGES = 500
"""Read one by one, these take about a quarter of the default timeout from a file; a model sees fewer anyway."""


class KronmemHistoryProvider(HistoryProvider):
    """The history of each session of one `agent_id`: `AgentSession(session_id="…")` goes on where it ended.

    The input of a run is stored before the model is asked, the output after it, one record a message: a killed run
    loses its output and nothing else, and a tool call without its result is left out when the session goes on. The
    newest `max_messages` are loaded, older ones stay stored. `agent_id` may be a callable, asked in every run. Blocks
    of a context provider are never part of it. List it before that: `context_providers=[history, memory]`.

    A history that cannot be read or written is logged once (logger "kronmem") and the run goes on without it, after
    at most `timeout` seconds. `get_messages` and `save_messages`, called directly, raise a `KronmemError`.
    """

    def __init__(
        self,
        agent_id: str | Callable[[], str],
        *,
        url: str | None = None,
        client: AsyncClient | None = None,
        timeout: float = 2.0,
        max_messages: int = MAX_MESSAGES,
        source_id: str = "kronmem_history",
    ) -> None:
        super().__init__(source_id)
        if max_messages < 1:
            raise InvalidInputError("max_messages must be at least 1")
        self._memory, self._most = LazyMemory(agent_id, url=url, client=client, timeout=timeout), max_messages
        self._memory.get().client.state("any")  # says now that a service keeps no state, not in a log line of each run
        self._log = LogOnce(f"history in the {self._memory}")
        self._unreadable = LogOnce(f"a message of the history in the {self._memory}")

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession | None, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Load the messages of the session, then store the new ones: a run that fails never comes to after_run."""
        budget = TimeBudget(self._memory.timeout)
        load = partial(super().before_run, agent=agent, session=session, context=context, state=state)  # type: ignore[arg-type] # None in 1.0
        with self._log.swallowing():
            await budget.spend(load)
        loaded = context.context_messages.get(self.source_id, [])
        loaded[:] = _paired(loaded, context.input_messages)
        with self._log.swallowing():
            await budget.spend(partial(self.save_messages, context.session_id, context.input_messages), last=True)

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession | None, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store the answer, with the tool calls and results on the way to it."""
        output = context.response.messages if context.response is not None else []
        with self._log.swallowing():
            save = partial(self.save_messages, context.session_id, output)
            await TimeBudget(self._memory.timeout).spend(save, last=True)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """The newest messages of a session, oldest first; one that this version cannot read is left out."""
        if session_id is None:
            return []
        store, name = self._memory.get().state(), self._name(session_id)
        count = _count(await store.get(name))
        numbers = range(max(0, count - self._most), count)
        # A key that a killed run claimed and never wrote has no value.
        found = await values_of(store, [f"{name}.{number}" for number in numbers])
        return [message for record in found if (message := self._message(record)) is not None]

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Append messages to a session, in order."""
        if session_id is None or not messages:
            return
        store, name = self._memory.get().state(), self._name(session_id)
        # The numbers are taken in one step: runs at the same time get different ones, in this process or another.
        count = _count(await store.update(name, lambda value: _count(value) + len(messages)))
        for number, message in enumerate(messages, count - len(messages)):
            await store.set(f"{name}.{number}", storable(json.loads(json.dumps(message.to_dict()))))

    async def close(self) -> None:
        """Release the connections opened here; a client passed in stays open."""
        await self._memory.close()

    def _name(self, session_id: str) -> str:
        # A session may be named by any text, a key may not.
        return f"history.{stable_id(self.source_id, session_id)}"

    def _message(self, record: JsonValue) -> Message | None:
        try:
            return Message.from_dict(record)  # type: ignore[arg-type] # anything else fails as a foreign version does
        except Exception as error:  # noqa: BLE001 -- a newer version may have written anything
            self._unreadable.failed(error)
            return None


def _count(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


def _paired(history: Sequence[Message], new: Sequence[Message]) -> list[Message]:
    """The history without calls that have no result and results that have no call: models refuse a prompt with one."""
    both = _ids([*history, *new], "function_call") & _ids([*history, *new], "function_result")
    loose = ("function_call", "function_result")
    return [one for one in history if all(part.call_id in both for part in one.contents if part.type in loose)]


def _ids(messages: Sequence[Message], kind: str) -> set[str | None]:
    return {part.call_id for message in messages for part in message.contents if part.type == kind}
