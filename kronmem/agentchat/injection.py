"""One fenced block of memories in a model's context: taken out, and put before the newest user message.

The user role is the lowest that works everywhere: a second system message makes Anthropic refuse the request, and
would lend recalled text an authority that it must not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile, takewhile
from typing import cast

from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import LLMMessage, UserMessage

from kronmem.packs.block import MAX_QUESTION_CHARS, as_question, clean_words, is_block

SOURCE = "memory"


def is_injected(message: LLMMessage, opening: str = "") -> bool:
    """Tell whether a memory put this message here, the one with this opening line if given."""
    if not isinstance(message, UserMessage) or message.source != SOURCE or not isinstance(message.content, str):
        return False
    return is_block(message.content, opening)


def strip(context: ChatCompletionContext, opening: str) -> None:
    """Take out the block of the last turn."""
    messages = _stored(context)
    if messages is not None:
        messages[:] = [message for message in messages if not is_injected(message, opening)]


async def messages(context: ChatCompletionContext) -> Sequence[LLMMessage]:
    """All messages; a view of them may hold some that nobody said ("Skipped 7 messages.")."""
    stored = _stored(context)
    return await context.get_messages() if stored is None else stored


def question(messages: Sequence[LLMMessage]) -> str:
    """The query for a recall: the last words to the model, the newest first; never a tool's output.

    In a team the newest message may be no more than "Transferred to bob", with the user's question just before it.
    """
    backwards = (message for message in reversed(messages) if not is_injected(message))
    newest = dropwhile(lambda message: not isinstance(message, UserMessage), backwards)
    said = takewhile(lambda message: isinstance(message, UserMessage), newest)
    questions = [as_question(clean_words(_text(message))) for message in said]
    return "\n".join(part for part in questions if part)[:MAX_QUESTION_CHARS].strip()


async def insert(context: ChatCompletionContext, text: str) -> bool:
    """Put the block before the newest user message; False, and no block, when the model would not get to see it."""
    messages = _stored(context)
    message = UserMessage(content=text, source=SOURCE)
    if messages is None:
        return await _append(context, message)
    messages.insert(_newest(messages), message)
    if not _is_cheap(context) or message in await context.get_messages():
        return True
    # A buffer of one message, or too few tokens left: an unseen block would only push out messages that matter more.
    messages[:] = [one for one in messages if one is not message]
    return False


def _is_cheap(context: ChatCompletionContext) -> bool:
    # Somebody else's context may ask a model for a summary whenever it is read.
    return type(context).__module__.startswith("autogen_core.")


async def _append(context: ChatCompletionContext, message: UserMessage) -> bool:
    """For a context that keeps its messages elsewhere: through the public way one can only add at the end.

    An older block stays where it is; the same block is not added twice.
    """
    if message not in await context.get_messages():
        await context.add_message(message)
    return True


def _stored(context: ChatCompletionContext) -> list[LLMMessage] | None:
    # Every context of autogen-core keeps its messages here, and none has a public way to take one out.
    found: object = getattr(context, "_messages", None)
    return cast("list[LLMMessage]", found) if isinstance(found, list) else None


def _newest(messages: Sequence[LLMMessage]) -> int:
    places = (at for at, one in enumerate(messages) if isinstance(one, UserMessage) and not is_injected(one))
    return max(places, default=len(messages))


def _text(message: LLMMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join(part for part in message.content if isinstance(part, str))
