"""The capture hooks: each message with its chat and turn, which make its id; a replayed one is not captured again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial

from kronmem.autogen.classic import Agent, ConversableAgent, group_of
from kronmem.autogen.messages import Chat, Message, chat_of, words
from kronmem.packs.capture import MAX_BEFORE, Capture, Role, Utterance

NOTHING = Utterance("", "", "user")
"""Of a message that AutoGen replays: it was captured when it was sent, and may have been forgotten since."""
_tickets: ContextVar[list[tuple[Capture, int]] | None] = ContextVar("kronmem_tickets", default=None)
"""The messages that this task has handed over and not yet waited for; None where chats are not awaited."""


def outgoing(sender: ConversableAgent, message: Message | str, recipient: Agent) -> Utterance:
    """A message about to be sent."""
    if _is_resent(message, sender):
        return NOTHING
    group = group_of(recipient)
    observer = (sender.name, "sent")
    if group is None:
        names, earlier = [sender.name, recipient.name], sender.chat_messages.get(recipient, [])
        chat = chat_of((sender, recipient), names, earlier, observer)
        return _utterance(sender, message, chat, earlier, _others(earlier, "assistant"))
    names = [agent.name for agent in group.agents]
    chat = chat_of((recipient, None), names, group.messages, observer)
    return _utterance(sender, message, chat, group.messages, _others(group.messages, sender.name))


def incoming(recipient: ConversableAgent, message: Message | str, sender: Agent) -> Utterance:
    """A message about to be received; a manager only passes on the words of a member."""
    group = group_of(sender)
    observer = (recipient.name, "received")
    if group is None and _is_resent(message, sender):
        return NOTHING
    if group is None:
        names, earlier = [sender.name, recipient.name], recipient.chat_messages.get(sender, [])
        chat = chat_of((sender, recipient), names, earlier, observer)
        return _utterance(sender, message, chat, earlier, _others(earlier, "user"))
    speaker = speaker_of(message, sender)
    earlier = group.messages
    if not earlier or earlier[-1] is not message:  # a running chat has noted it already, a replayed one has not
        return NOTHING
    names = [agent.name for agent in group.agents]
    chat = chat_of((sender, None), names, earlier[:-1], observer)
    return _utterance(speaker, message, chat, earlier[:-1], _others(earlier[:-1], speaker.name))


def _is_resent(message: Message | str, sender: Agent) -> bool:
    # Only messages of a saved chat carry the name and the role that they were once given.
    return isinstance(message, dict) and message.get("name") == sender.name and "role" in message


def speaker_of(message: Message | str, sender: Agent) -> Agent:
    """The agent that wrote these words: a manager only passes on those of a member."""
    group, name = group_of(sender), message.get("name") if isinstance(message, dict) else None
    return next((agent for agent in group.agents if agent.name == name), sender) if group else sender


def _others(earlier: Sequence[Message], speaker: str) -> tuple[str, ...]:
    """The latest words of the others: in a group messages carry a name, between two agents the role decides."""
    return tuple(words(one) for one in earlier[-MAX_BEFORE:] if speaker not in (one.get("name"), one.get("role")))


def _utterance(
    speaker: Agent, message: Message | str, chat: Chat, earlier: Sequence[Message], before: tuple[str, ...]
) -> Utterance:
    role: Role = "assistant" if getattr(speaker, "llm_config", None) else "user"
    return Utterance(words(message), speaker.name, role, {"chat": chat.id, "turn": len(earlier)}, before)


class CaptureHooks:
    """Hands every message that agents send or receive to a `Capture`; the messages go on unchanged.

    They are on disk before a blocking chat goes on. In an async chat AutoGen calls the hook in the event loop: there
    the next reply waits for them, and the end of the sending.
    """

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self.owner: object = None

    def sent(
        self, sender: ConversableAgent, message: Message | str, recipient: Agent, silent: bool | None
    ) -> Message | str:
        """The hook before a message is sent. AutoGen passes exactly these names."""
        ticket, waiting = self._capture.take(partial(outgoing, sender, message, recipient)), _tickets.get()
        if waiting is None:
            self._capture.settle(ticket)
        else:
            waiting.append((self._capture, ticket))
        return message

    async def sent_async(
        self, sender: ConversableAgent, message: Message | str, recipient: Agent, silent: bool | None
    ) -> Message | str:
        """The same for the one version that keeps hooks of async chats apart."""
        return self.sent(sender, message, recipient, silent)

    def received(self, recipient: ConversableAgent, message: Message | str, sender: Agent) -> None:
        """Capture a message about to be received."""
        self._capture.settle(self._capture.take(partial(incoming, recipient, message, sender)))

    async def received_async(self, recipient: ConversableAgent, message: Message | str, sender: Agent) -> None:
        """The same for asyncio: the event loop goes on meanwhile."""
        await self._capture.settle_async(self._capture.take(partial(incoming, recipient, message, sender)))

    @asynccontextmanager
    async def sending_async(self, *_: object, **__: object) -> AsyncGenerator[None]:
        """Around an awaited sending, which includes the replies to it."""
        token = _tickets.set([]) if _tickets.get() is None else None
        try:
            yield
        finally:
            await _settle()
            if token is not None:
                _tickets.reset(token)

    @asynccontextmanager
    async def replying_async(self, *_: object, **__: object) -> AsyncGenerator[None]:
        """Around an awaited reply: the messages before it are on disk when the model is asked."""
        await _settle()
        yield

    def flush(self, timeout: float) -> int:
        """Wait until everything is stored; the answer is how many messages are not."""
        return self._capture.flush(timeout)


async def _settle() -> None:
    waiting = _tickets.get() or []
    newest = dict(waiting)  # tickets count up: the last of each capture is the newest
    waiting.clear()
    for capture, ticket in newest.items():
        await capture.settle_async(ticket)
