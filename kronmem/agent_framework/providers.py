"""The providers of an Agent Framework agent: memory around each run, and the messages of its sessions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import dropwhile, takewhile
from typing import Any

from agent_framework import AgentSession, ContextProvider, HistoryProvider, Message, SessionContext, SupportsAgentRun
from pydantic import JsonValue

from kronmem import AsyncClient, InvalidInputError
from kronmem.packs.block import clean_words
from kronmem.packs.capture import MAX_BEFORE, CaptureOption, Utterance, stable_id
from kronmem.packs.deadlines import LogOnce
from kronmem.packs.memory import LazyMemory
from kronmem.packs.message_log import storable, values_of
from kronmem.packs.turn_memory import TimeBudget, TurnMemory

MAX_MESSAGES = 500
"""Read one by one, these take about a quarter of the default timeout from a file; a model sees fewer anyway."""


class KronmemHistoryProvider(HistoryProvider):
    """The history of each session of one `agent_id`: `AgentSession(session_id="…")` goes on where it ended.

    The input of a run is stored before the model is asked, the output after it, one record a message: a killed run
    loses its output and nothing else, and a tool call without its result is left out when the session goes on. The
    newest `max_messages` are loaded, older ones stay stored. `agent_id` may be a callable, asked in every run. Blocks
    of a context provider are never part of it.

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
        records = await values_of(store, [f"{name}.{number}" for number in numbers])
        return [message for record in records if (message := self._message(record)) is not None]

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


# KronmemContextProvider: memory around each run of an Agent Framework agent. No failure of it reaches the run.


class KronmemContextProvider(ContextProvider):
    """Durable memory of one `agent_id` for Agent Framework; the same id means the same memory, in every process.

    Before a run, the memories that fit the user's words are shown to the model for that run only. `capture` stores
    the user's statements before the model is asked, and the agent's decisions after it ("auto"; "user": only those;
    "all": both whole messages; False; or a function from a text to the texts worth keeping, awaitable or not, called
    with `role=` if it has that parameter). The model gets the tools remember, recall and forget (`tools=False`: none;
    `["recall"]`: only that).
    `agent_id` and `session_id` may be callables, asked in every run and every tool call: one provider then serves many
    users. A streamed run asks them where it is iterated. The block stands right before the newest question, before or
    after a history provider in the list. Several memories on one agent need a `source_id` and a `prefix` of their own.

    Stored words expire after `ttl_days`, if given.
    Memory that fails is logged once (logger "kronmem"); a hook takes at most `timeout` seconds, a tool call too.
    """

    def __init__(
        self,
        agent_id: str | Callable[[], str],
        *,
        url: str | None = None,
        client: AsyncClient | None = None,
        session_id: str | Callable[[], str | None] | None = None,
        read_from: Iterable[str] = (),
        limit: int = 5,
        timeout: float = 2.0,
        tools: bool | Iterable[str] = True,
        capture: CaptureOption = "auto",
        prefix: str = "",
        ttl_days: int | None = None,
        source_id: str = "kronmem",
    ) -> None:
        super().__init__(source_id)
        memory = LazyMemory(
            agent_id, url=url, client=client, session_id=session_id, read_from=read_from, timeout=timeout
        )
        self._turns = TurnMemory(memory, limit=limit, capture=capture, prefix=prefix, ttl_days=ttl_days)
        self._tools = self._turns.tools(tools)
        self._log = LogOnce(f"a history beside the {memory}")

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession | None, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Show the block and the tools to the model of this run, then store the user's words."""
        if self._tools:
            context.extend_tools(self.source_id, self._tools)
        turn, question = self._turns.begin(), _newest(context.input_messages)
        prompt = [message.text for message in await self._later_history(agent, session, context, turn.budget)]
        prompt += [message.text for message in context.get_messages(include_input=True)]
        if block := await turn.block("\n".join(clean_words(message.text) for message in question), prompt):
            context.extend_messages(self, [Message("user", [block])])
        # After the recall, so that a run does not recall its own words; here, because a run that fails or a stream
        # that is left early never comes to after_run.
        for message in question:
            # A message that the caller gave an id keeps it: passed in again, it is not a new one.
            place = {"message": message.message_id} if message.message_id else {}
            await turn.keep(Utterance(clean_words(message.text), message.author_name or "user", "user", place))

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession | None, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store the answer."""
        words = clean_words(context.response.text) if context.response is not None else ""
        if words:
            name = getattr(agent, "name", None) or "assistant"
            messages = [one for one in context.get_messages(include_input=True) if one.role == "user"]
            before = tuple(clean_words(message.text) for message in messages[-MAX_BEFORE:])
            await self._turns.begin().keep(Utterance(words, name, "assistant", before=before))

    async def close(self) -> None:
        """Release the connections opened here; a client passed in stays open."""
        await self._turns.close()

    async def _later_history(
        self, agent: object, session: AgentSession | None, context: SessionContext, budget: TimeBudget
    ) -> list[Message]:
        """The messages that histories listed after this memory are about to load; their place is before the block.

        The framework itself adds a history last where none is listed. A block before it would make a provider's cache
        useless: all that follows a change of the prompt is read afresh.
        """
        told: list[Message] = []
        for history in _listed_after(self, agent):
            context.context_messages.setdefault(history.source_id, [])
            state = session.state.get(history.source_id) if session is not None else None
            with self._log.swallowing():
                told += await budget.spend(partial(history.get_messages, context.session_id, state=state))
        return told


def _listed_after(provider: ContextProvider, agent: object) -> list[HistoryProvider]:
    listed: list[object] = [*getattr(agent, "context_providers", ())]
    later = listed[listed.index(provider) + 1 :] if provider in listed else []
    return [one for one in later if isinstance(one, HistoryProvider) and one.load_messages]


def _newest(messages: Sequence[Message]) -> list[Message]:
    """The last messages of the user in a row: a caller may pass a whole conversation as the input of a run."""
    newest = dropwhile(lambda message: message.role != "user", reversed(messages))
    return [*takewhile(lambda message: message.role == "user", newest)][::-1]
