"""One fenced block of memories in a model's context, before the newest user message; and capture from that context.

The block is never stored there. The user role is the lowest that works everywhere: a second system message makes
Anthropic refuse the request, and would lend recalled text an authority that it must not have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import dropwhile, takewhile
from typing import cast
from weakref import WeakKeyDictionary

from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import AssistantMessage, LLMMessage, UserMessage

from kronmem.packs.block import MAX_QUESTION_CHARS, as_question, clean_words, is_block
from kronmem.packs.capture import MAX_BEFORE, AsyncCapture, CaptureRules, Role, Utterance
from kronmem.packs.checks import check_capture
from kronmem.packs.deadlines import LogOnce
from kronmem.packs.memory import LazyMemory
from kronmem.packs.no_echo import Echoes

SOURCE = "memory"


def is_injected(message: LLMMessage) -> bool:
    """Tell whether a memory put this message here."""
    if not isinstance(message, UserMessage) or message.source != SOURCE or not isinstance(message.content, str):
        return False
    return is_block(message.content)


def strip(context: ChatCompletionContext) -> None:
    """Take out blocks that an earlier version stored among the messages."""
    messages = _stored(context)
    if messages is not None and any(map(is_injected, messages)):
        messages[:] = [message for message in messages if not is_injected(message)]


async def context_messages(context: ChatCompletionContext) -> Sequence[LLMMessage]:
    """All messages; a view of them may hold some that no agent sent ("Skipped 7 messages.")."""
    stored = _stored(context)
    return await context.get_messages() if stored is None else stored


async def prompt(context: ChatCompletionContext) -> list[str]:
    """The texts that the model gets to see, those of other memories' blocks included."""
    shown = await context.get_messages() if _is_cheap(context) else await context_messages(context)
    return [words(message) for message in shown]


def question(messages: Sequence[LLMMessage]) -> str:
    """The query for a recall: the last words to the model, the newest first; never a tool's output.

    In a team the newest message may be no more than "Transferred to bob", with the user's question just before it.
    """
    backwards = (message for message in reversed(messages) if not is_injected(message))
    newest = dropwhile(lambda message: not isinstance(message, UserMessage), backwards)
    turn = takewhile(lambda message: isinstance(message, UserMessage), newest)
    questions = [as_question(clean_words(words(message))) for message in turn]
    return "\n".join(part for part in questions if part)[:MAX_QUESTION_CHARS].strip()


async def show(context: ChatCompletionContext, owner: object, text: str) -> bool:
    """Show the owner's block before the newest user message, in place of its last one; "" shows none.

    The answer is False, and there is no block, when the model would not get to see it.
    """
    view = _view(context)
    view.blocks.pop(owner, None)
    if not text:
        return False
    message = UserMessage(content=text, source=SOURCE)
    view.blocks[owner] = (_newest(await context_messages(context)), message)
    if not _is_cheap(context) or message in await context.get_messages():
        return True
    # A buffer of one message, or too few tokens left: an unseen block would only push out messages that matter more.
    del view.blocks[owner]
    return False


class View:
    """The blocks of one context, each with the user message that it stands before."""

    def __init__(self, read: Callable[[], Awaitable[list[LLMMessage]]]) -> None:
        self._read = read
        self.blocks: dict[object, tuple[LLMMessage | None, UserMessage]] = {}

    async def messages(self, context: ChatCompletionContext) -> list[LLMMessage]:
        """The messages that the model gets to see: the context counts the blocks among its own meanwhile."""
        stored = _stored(context)
        if stored is None:
            return self._with_blocks(await self._read())
        stored[:] = self._with_blocks(stored)
        try:
            return list(await self._read())
        finally:
            ours = [block for _, block in self.blocks.values()]
            kept = [one for one in stored if not any(one is block for block in ours)]
            stored[:] = kept

    def _with_blocks(self, messages: Sequence[LLMMessage]) -> list[LLMMessage]:
        shown = list(messages)
        for before, block in self.blocks.values():
            same = [at for at, one in enumerate(shown) if one is before]
            # Somebody else's context may hand out copies.
            equal = same or [at for at, one in enumerate(shown) if one == before]
            if equal:
                shown.insert(equal[-1], block)
        return shown


def _view(context: ChatCompletionContext) -> View:
    """The view of a context, which its `get_messages` shows from the first block on."""
    installed: object = getattr(vars(context).get("get_messages"), "kronmem_view", None)
    if isinstance(installed, View):
        return installed
    view = View(context.get_messages)

    async def get_messages() -> list[LLMMessage]:
        return await view.messages(context)

    get_messages.kronmem_view = view  # type: ignore[attr-defined] # found again above
    context.get_messages = get_messages  # type: ignore[method-assign] # no context has a public way to show without storing
    return view


def _is_cheap(context: ChatCompletionContext) -> bool:
    # Somebody else's context may ask a model for a summary whenever it is read.
    return type(context).__module__.startswith("autogen_core.")


def _stored(context: ChatCompletionContext) -> list[LLMMessage] | None:
    # Every context of autogen-core keeps its messages here.
    messages: object = getattr(context, "_messages", None)
    return cast("list[LLMMessage]", messages) if isinstance(messages, list) else None


def _newest(messages: Sequence[LLMMessage]) -> LLMMessage | None:
    return next((one for one in reversed(messages) if isinstance(one, UserMessage) and not is_injected(one)), None)


def words(message: LLMMessage) -> str:
    """The words of a message, without pictures and calls of tools."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(part for part in message.content if isinstance(part, str))


# Capture from a model context: the messages that came since an agent was last asked. Never raises.

USER = "user"
"""AutoGen names the words of a person so, and those of another agent by its name."""


class ContextCapture:
    """Stores the messages in the contexts of one memory's agents.

    The words alone make the id of a memory, so several agents that get the same sentence store it once. Of a context
    that is new here only the newest words are read: those before were captured where they were sent, and may have been
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
        messages = [one for one in await context_messages(context) if not is_injected(one)]
        new = _since(messages, self._last.get(context))
        if messages:
            self._last[context] = messages[-1]
        for at, message in enumerate(messages[len(messages) - len(new) :], len(messages) - len(new)):
            if utterance := _utterance(message, messages[max(0, at - MAX_BEFORE) : at]):
                await self._capture.take(memory, utterance)


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
    others = tuple(clean_words(words(one)) for one in before if isinstance(one, UserMessage))
    return Utterance(clean_words(words(message)), message.source, role, {"source": message.source}, others)
