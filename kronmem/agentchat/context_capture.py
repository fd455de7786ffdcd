"""Capture from a model context: the messages that came since an agent was last asked. Never raises."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from weakref import WeakKeyDictionary

from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import AssistantMessage, LLMMessage, UserMessage

from kronmem.agentchat import injection
from kronmem.packs.capture import MAX_BEFORE, AsyncCapture, CaptureRules, Role, Utterance
from kronmem.packs.checks import check_capture
from kronmem.packs.injected_block import clean_words
from kronmem.packs.lazy_memory import LazyMemory
from kronmem.packs.log_once import LogOnce
from kronmem.packs.no_echo import Echoes

USER = "user"
"""AutoGen names the words of a person so, and those of another agent by its name."""


class ContextCapture:
    """Stores what is said in the contexts of one memory's agents.

    The words alone make the id of a memory, so several agents that hear the same sentence store it once. Of a context
    that is new here only the newest words are read: those before were captured where they were said, and may have been
    forgotten since.
    """

    def __init__(self, memory: LazyMemory, rules: CaptureRules, echoes: Echoes) -> None:
        check_capture(memory.get())
        self._memory = memory
        self._capture = AsyncCapture(rules, memory.timeout, LogOnce(f"capture into the {memory}"), echoes)
        self._last: WeakKeyDictionary[ChatCompletionContext, LLMMessage] = WeakKeyDictionary()

    async def take(self, context: ChatCompletionContext) -> None:
        """Store the new messages of a context for the user of this moment."""
        memory = self._memory.get().resolved()
        messages = [one for one in await injection.messages(context) if not injection.is_injected(one)]
        new = _since(messages, self._last.get(context))
        if messages:
            self._last[context] = messages[-1]
        for at, message in enumerate(messages[len(messages) - len(new) :], len(messages) - len(new)):
            if said := _utterance(message, messages[max(0, at - MAX_BEFORE) : at]):
                await self._capture.take(memory, said)


def _since(messages: Sequence[LLMMessage], last: LLMMessage | None) -> list[LLMMessage]:
    """The messages after the last one that was seen, else the newest words to the model."""
    if last is not None and any(one is last for one in messages):
        return [*takewhile(lambda one: one is not last, reversed(messages))][::-1]
    return [*takewhile(lambda one: isinstance(one, UserMessage), reversed(messages))][::-1]


def _utterance(message: LLMMessage, before: Sequence[LLMMessage]) -> Utterance | None:
    if isinstance(message, UserMessage):
        role: Role = "user" if message.source == USER else "assistant"
    elif isinstance(message, AssistantMessage):
        role = "assistant"
    else:
        return None
    others = tuple(clean_words(injection.words(one)) for one in before if isinstance(one, UserMessage))
    return Utterance(clean_words(injection.words(message)), message.source, role, {"source": message.source}, others)
