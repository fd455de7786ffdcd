"""The recall hook: memories for the newest question, shown for one reply; the stored history stays as it is."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from types import MappingProxyType

from kronmem import AgentMemory, Hit
from kronmem.autogen.classic import Agent, ConversableAgent
from kronmem.autogen.messages import Message, question, text
from kronmem.packs.block import fence_context, fitting, places, render_block
from kronmem.packs.deadlines import LogOnce, attempt, bounded_thread, is_cold, load_engine
from kronmem.packs.memory import recall_beside
from kronmem.packs.no_echo import Echoes, Prompt, recall_fresh

BEFORE_REPLY = "process_all_messages_before_reply"
MAX_TURNS = 256
"""The users with a turn under way that one agent keeps apart; of more, some are asked twice in a turn."""
MOST_LOADING = 60.0
"""Seconds for the import of the engine, which takes tenths of one; no deadline of the user's is spent on it."""

CONTEXT_LIMIT = 8
"""Memories in a context."""

Prepared = tuple[AgentMemory, str]
"""For whom a block was made, and the block."""
_prepared: ContextVar[Mapping[RecallHook, Prepared | None]] = ContextVar(
    "kronmem_prepared", default=MappingProxyType({})
)
"""The blocks for the reply that this task is about to make."""


class RecallHook:
    """The hook of one agent: message list in, a new list with one block out. Never raises.

    AutoGen calls it in the event loop of an async chat: there the block is prepared beforehand, in another thread.
    """

    def __init__(
        self,
        agent: ConversableAgent,
        memory: AgentMemory,
        limit: int,
        timeout: float,
        log: LogOnce,
        read_from: Sequence[str] = (),
        echoes: Echoes | None = None,
    ) -> None:
        self._echoes = echoes or Echoes()
        self._agent, self._memory, self._limit = agent, memory.with_timeout(timeout), limit
        self._timeout, self._log, self._read_from = timeout, log, read_from
        self._turns: dict[AgentMemory, tuple[str, str]] = {}
        self.owner: object = None

    def __call__(self, messages: list[Message]) -> list[Message]:
        """Insert the block before the words it belongs to.

        There, and not at the end: AutoGen looks for calls, code and farewells in the last message, and tool results
        have to follow their calls. An agent without a model gets nothing, because it would not read it.
        """
        try:
            return self._enriched(messages)
        except Exception as error:  # noqa: BLE001 -- an exception in a hook would end the chat
            self._log.failed(error)
            return messages

    async def call_async(self, messages: list[Message]) -> list[Message]:
        """The same for the one version that keeps hooks of async chats apart."""
        return self(messages)

    @contextmanager
    def replying(self, *_: object, **__: object) -> Generator[None]:
        """Around a blocking reply: the hook goes last, so that one added later does not cut the block off."""
        self._go_last()
        yield

    @asynccontextmanager
    async def replying_async(
        self, messages: list[Message] | None = None, sender: Agent | None = None, *_: object, **__: object
    ) -> AsyncGenerator[None]:
        """Around an awaited reply: recall in another thread, for the hook to find."""
        self._go_last()
        history = self._agent.chat_messages.get(sender) if messages is None and sender is not None else messages
        token = _prepared.set({**_prepared.get(), self: await self._prepared_block(history or [])})
        try:
            yield
        finally:
            _prepared.reset(token)

    def _go_last(self) -> None:
        for name, hook in ((BEFORE_REPLY, self), (f"a_{BEFORE_REPLY}", self.call_async)):
            hooks = self._agent.hook_lists.get(name, [])
            if hook in hooks and hooks[-1] != hook:
                hooks.remove(hook)
                hooks.append(hook)

    async def _prepared_block(self, messages: list[Message]) -> Prepared | None:
        try:
            return await self._prepare(messages)
        except Exception as error:  # noqa: BLE001 -- no model to read the block, or no user: the hook does without
            self._log.failed(error)
            return None

    async def _prepare(self, messages: list[Message]) -> Prepared | None:
        asked_at = self._question(messages)
        if asked_at is None:
            return None
        memory, (at, asked) = self._memory.resolved(), asked_at
        block = self._known(memory, asked, self._is_new_turn(messages, at))
        if block is None:
            block = ""
            if is_cold(memory.client):
                await bounded_thread(load_engine, MOST_LOADING)
            with self._log.swallowing():
                block = await bounded_thread(partial(self._recall, memory, asked, list(messages)), self._timeout)
            self._note(memory, asked, block)
        return memory, block

    def _question(self, messages: list[Message]) -> tuple[int, str] | None:
        return question(messages, self._agent.name) if self._agent.llm_config else None

    def _is_new_turn(self, messages: list[Message], at: int) -> bool:
        # The words are not the newest message while tools are at work: that is the same turn, and the same question.
        return at == len(messages) - 1

    def _enriched(self, messages: list[Message]) -> list[Message]:
        asked_at = self._question(messages)
        if asked_at is None:
            return messages
        at, asked = asked_at
        block = self._block(self._memory.resolved(), asked, messages, self._is_new_turn(messages, at))
        if not block or any(message.get("content") == block for message in messages):
            return messages
        return [*messages[:at], {"role": "user", "name": "memory", "content": block}, *messages[at:]]

    def _block(self, memory: AgentMemory, asked: str, messages: list[Message], new_turn: bool) -> str:
        prepared = _prepared.get().get(self)
        if prepared is not None and prepared[0] == memory:
            return prepared[1]
        block = self._known(memory, asked, new_turn)
        if block is None:
            if is_cold(memory.client):
                load_engine()
            block = attempt(partial(self._recall, memory, asked, messages), self._timeout, self._log, "")
            self._note(memory, asked, block)
        return block

    def _known(self, memory: AgentMemory, asked: str, new_turn: bool) -> str | None:
        before, block = self._turns.get(memory, ("", ""))
        return block if not new_turn and before == asked else None

    def _note(self, memory: AgentMemory, asked: str, block: str) -> None:
        self._turns[memory] = (asked, block)  # after a failure "": a turn with many tool calls waits once
        if len(self._turns) > MAX_TURNS:
            self._turns.pop(next(iter(self._turns)), None)

    def _recall(self, memory: AgentMemory, asked: str, messages: list[Message]) -> str:
        def ask(exclude: list[str]) -> list[Hit]:
            return recall_beside(memory, self._read_from, asked, places(self._limit), exclude)

        found = recall_fresh(ask, self._echoes, memory.agent_id, self._prompt(memory, messages))
        hits = fitting(found, self._limit)
        named = any(one != memory.agent_id for one in self._read_from)
        # AutoGen executes fenced code found in the messages of an agent that may run code: a memory is never run.
        return render_block(hits, memory.agent_id, named=named).replace("```", "'''")

    def _prompt(self, memory: AgentMemory, messages: list[Message]) -> Prompt:
        """All that the model is about to see: a context in the system message, and one that another hook prepared."""
        others = [one[1] for one in _prepared.get().values() if one is not None and one[0] == memory]
        return Prompt([self._agent.system_message, *others, *map(text, messages)])


class ContextHook(RecallHook):
    """Shows the memories about one query before all messages: for an agent with many users.

    A system message is one for all of them, and two may be served at the same time.
    """

    def __init__(self, agent: ConversableAgent, memory: AgentMemory, query: str, timeout: float) -> None:
        super().__init__(agent, memory, CONTEXT_LIMIT, timeout, LogOnce(str(memory)))
        self._query = query

    def _question(self, messages: list[Message]) -> tuple[int, str] | None:
        return (0, self._query) if messages and self._agent.llm_config else None

    def _is_new_turn(self, messages: list[Message], at: int) -> bool:
        # The query is the same in every turn: the messages of others distinguish them.
        asked_at = question(messages, self._agent.name)
        return asked_at is not None and asked_at[0] == len(messages) - 1

    def _recall(self, memory: AgentMemory, asked: str, messages: list[Message]) -> str:
        return fence_context(memory.inject_context(asked, self._limit), memory.agent_id).replace("```", "'''")
