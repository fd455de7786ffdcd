"""The recall hook: memories for the newest question, shown for one reply; the stored history stays as it is."""

from __future__ import annotations

from functools import partial

from kronmem import AgentMemory
from kronmem.autogen.classic import ConversableAgent
from kronmem.autogen.messages import Message, question, words
from kronmem.packs.block import render_block
from kronmem.packs.bounded import attempt
from kronmem.packs.log_once import LogOnce


class RecallHook:
    """The hook of one agent: message list in, a new list with one block out. Never raises.

    In an async chat AutoGen calls it in the event loop, which then waits too, at most `timeout` seconds.
    """

    def __init__(self, agent: ConversableAgent, memory: AgentMemory, limit: int, timeout: float, log: LogOnce) -> None:
        self._agent, self._memory, self._limit = agent, memory.with_timeout(timeout), limit
        self._timeout, self._log = timeout, log
        self._last: tuple[AgentMemory, str, str] | None = None

    def __call__(self, messages: list[Message]) -> list[Message]:
        """Insert the block before the words it belongs to.

        There, and not at the end: AutoGen looks for calls, code and farewells in the last message, and tool results
        have to follow their calls. An agent without a model gets nothing, because nobody would read it.
        """
        try:
            return self._enriched(messages)
        except Exception as error:  # noqa: BLE001 -- an exception in a hook would end the chat
            self._log.failed(error)
            return messages

    async def call_async(self, messages: list[Message]) -> list[Message]:
        """The same for the one version that keeps hooks of async chats apart."""
        return self(messages)

    def _enriched(self, messages: list[Message]) -> list[Message]:
        found = question(messages, self._agent.name) if self._agent.llm_config else None
        if found is None:
            return messages
        at, asked = found
        block = self._block(self._memory.resolved(), asked, messages, new_turn=at == len(messages) - 1)
        if not block or any(message.get("content") == block for message in messages):
            return messages
        return [*messages[:at], {"role": "user", "name": "memory", "content": block}, *messages[at:]]

    def _block(self, memory: AgentMemory, asked: str, messages: list[Message], new_turn: bool) -> str:
        # The words are not the newest message while tools are at work: that is the same turn, and the same question.
        if not new_turn and self._last is not None and self._last[:2] == (memory, asked):
            return self._last[2]
        block = attempt(partial(self._recall, memory, asked, messages), self._timeout, self._log, "")
        self._last = (memory, asked, block)
        return block

    def _recall(self, memory: AgentMemory, asked: str, messages: list[Message]) -> str:
        transcript = "\n".join(map(words, messages))
        found = memory.recall(asked, self._limit)
        # A text captured from this very chat is already in front of the model.
        hits = [hit for hit in found if "chat" not in hit.memory.metadata or hit.content not in transcript]
        # AutoGen executes fenced code found in the messages of an agent that may run code: a memory is never run.
        return render_block(hits, memory.agent_id).replace("```", "'''")
