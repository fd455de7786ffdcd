"""The capture hooks: each message with its chat and turn, from which a replayed chat makes the same id again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kronmem.autogen.classic import Agent, ConversableAgent, group_of
from kronmem.autogen.messages import Message, words
from kronmem.packs.capture import Capture, Utterance, stable_id


def outgoing(sender: ConversableAgent, message: Message | str, recipient: Agent) -> Utterance:
    """A message about to be sent."""
    group = group_of(recipient)
    if group is not None:
        return _utterance(sender, message, [agent.name for agent in group.agents], group.messages)
    return _utterance(sender, message, [sender.name, recipient.name], sender.chat_messages.get(recipient, []))


def incoming(recipient: ConversableAgent, message: Message | str, sender: Agent) -> Utterance:
    """A message about to be received; a manager only passes on the words of a member."""
    group = group_of(sender)
    if group is None:
        return _utterance(sender, message, [sender.name, recipient.name], recipient.chat_messages.get(sender, []))
    name = message.get("name") if isinstance(message, dict) else None
    speaker = next((agent for agent in group.agents if agent.name == name), sender)
    earlier = group.messages
    if earlier and earlier[-1] is message:  # a running chat has noted it already, a resumed one has not
        earlier = earlier[:-1]
    return _utterance(speaker, message, [agent.name for agent in group.agents], earlier)


def _utterance(speaker: Agent, message: Message | str, names: list[str], earlier: Sequence[Message]) -> Utterance:
    text = words(message)
    # Chats have no id in AutoGen. Who takes part and how it began is the same again when a chat is resumed.
    begun = words(earlier[0]) if earlier else text
    chat = stable_id(sorted(names), begun).hex[:12]
    role = "assistant" if getattr(speaker, "llm_config", None) else "user"
    return Utterance(text, speaker.name, role, {"chat": chat, "turn": len(earlier)})


class CaptureHooks:
    """Hands every message that agents send or receive to a `Capture`; the messages go on unchanged."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def sent(
        self, sender: ConversableAgent, message: Message | str, recipient: Agent, silent: bool | None
    ) -> Message | str:
        """The hook before a message is sent. AutoGen passes exactly these names."""
        self._capture.take(partial(outgoing, sender, message, recipient))
        return message

    async def sent_async(
        self, sender: ConversableAgent, message: Message | str, recipient: Agent, silent: bool | None
    ) -> Message | str:
        """The same for the one version that keeps hooks of async chats apart."""
        return self.sent(sender, message, recipient, silent)

    def received(self, recipient: ConversableAgent, message: Message | str, sender: Agent) -> None:
        """Capture a message about to be received."""
        self._capture.take(partial(incoming, recipient, message, sender))

    def flush(self, timeout: float) -> int:
        """Wait until everything is stored; the answer is how many messages are not."""
        return self._capture.flush(timeout)
