"""Puts what fits the newest question in front of an agent's model, for one reply; the stored history stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kronmem import AgentMemory, KronmemError
from kronmem.autogen.classic import ConversableAgent
from kronmem.autogen.messages import Message, question, words
from kronmem.packs.bounded import Outage, bounded
from kronmem.text.context import render


class Recall:
    """The hook of one agent: message list in, a new list with one block out. Never raises.

    In an async chat AutoGen calls it in the event loop, which then waits too, at most `timeout` seconds.
    """

    def __init__(
        self, agent: ConversableAgent, memory: AgentMemory, limit: int, timeout: float, outage: Outage
    ) -> None:
        self._agent, self._memory, self._limit = agent, memory.with_timeout(timeout), limit
        self._timeout, self._outage = timeout, outage
        self._asked: tuple[str, str] | None = None

    def __call__(self, messages: list[Message]) -> list[Message]:
        """Insert the block before the words it belongs to.

        There, and not at the end: AutoGen looks for calls, code and farewells in the last message, and tool results
        have to follow their calls. An agent without a model gets nothing, because nobody would read it.
        """
        try:
            return self._enriched(messages)
        except Exception as error:  # noqa: BLE001 -- an exception in a hook would end the chat
            self._outage.begins(named(error))
            return messages

    async def awaited(self, messages: list[Message]) -> list[Message]:
        """The same for the one version that keeps hooks of async chats apart."""
        return self(messages)

    def _enriched(self, messages: list[Message]) -> list[Message]:
        found = question(messages, self._agent.name) if self._agent.llm_config else None
        if found is None:
            return messages
        at, asked = found
        block = self._block(asked, messages, fresh=at == len(messages) - 1)
        if not block or any(message.get("content") == block for message in messages):
            return messages
        return [*messages[:at], {"role": "user", "name": "memory", "content": block}, *messages[at:]]

    def _block(self, asked: str, messages: list[Message], fresh: bool) -> str:
        # The words are not the newest message while tools are at work: that is the same turn, and the same question.
        if not fresh and self._asked is not None and self._asked[0] == asked:
            return self._asked[1]
        block = guarded(partial(self._ask, asked, messages), self._timeout, self._outage)
        self._asked = (asked, block)
        return block

    def _ask(self, asked: str, messages: list[Message]) -> str:
        transcript = "\n".join(map(words, messages))
        found = self._memory.recall(asked, self._limit)
        # What was captured from this very chat is already in front of the model.
        hits = [hit for hit in found if "chat" not in hit.memory.metadata or hit.content not in transcript]
        # AutoGen executes fenced code found in the messages of an agent that may run code: a memory is never run.
        return render(hits, source=self._memory.agent_id).replace("```", "'''")


def guarded(work: Callable[[], str], timeout: float, outage: Outage) -> str:
    """The text that `work` makes within the time, or "": memory that fails is said once and then done without."""
    try:
        text = bounded(work, timeout)
    except Exception as error:  # noqa: BLE001 -- an exception in a hook would end the chat
        outage.begins(named(error))
        return ""
    outage.ends()
    return text


def named(error: Exception) -> KronmemError:
    """An error that may be logged: those of others may quote what was remembered."""
    return error if isinstance(error, KronmemError) else KronmemError(type(error).__name__)
