"""Keeps what agents say: where it was said is its provenance, and makes an id that a replayed chat makes again."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from pydantic import JsonValue

from kronmem import AgentMemory, OutboxFullError
from kronmem.autogen.classic import Agent, ConversableAgent, group_of
from kronmem.autogen.messages import Message, words
from kronmem.autogen.recall import named
from kronmem.packs.backlog import Backlog
from kronmem.packs.bounded import Outage

Extract = Callable[[str], Sequence[str]]

PIECE_CHARS = 30_000
_NAMESPACE = uuid.UUID("6f0e3d52-6a39-5d0e-8c1b-1f2f6a1d9a77")


@dataclass(frozen=True)
class Said:
    """Words with their place. The same words at the same place are the same memory, in whichever process."""

    text: str
    speaker: str
    role: str
    chat: str
    turn: int

    def metadata(self) -> dict[str, JsonValue]:
        """The provenance, without the words."""
        return {name: value for name, value in asdict(self).items() if name != "text"}


def outgoing(sender: ConversableAgent, message: Message | str, recipient: Agent) -> Said:
    """A message about to be sent."""
    group = group_of(recipient)
    if group is not None:
        return _said(sender, message, [agent.name for agent in group.agents], group.messages)
    return _said(sender, message, [sender.name, recipient.name], sender.chat_messages.get(recipient, []))


def incoming(recipient: ConversableAgent, message: Message | str, sender: Agent) -> Said:
    """A message about to be received; a manager only passes on what one of its group said."""
    group = group_of(sender)
    if group is None:
        return _said(sender, message, [sender.name, recipient.name], recipient.chat_messages.get(sender, []))
    name = message.get("name") if isinstance(message, dict) else None
    speaker = next((agent for agent in group.agents if agent.name == name), sender)
    earlier = group.messages
    if earlier and earlier[-1] is message:  # a running chat has noted it already, a resumed one has not
        earlier = earlier[:-1]
    return _said(speaker, message, [agent.name for agent in group.agents], earlier)


def _said(speaker: Agent, message: Message | str, names: list[str], earlier: Sequence[Message]) -> Said:
    text = words(message)
    # Chats have no id in AutoGen. Who takes part and how it began is the same again when a chat is resumed.
    begun = words(earlier[0]) if earlier else text
    chat = _uuid(sorted(names), begun).hex[:12]
    role = "assistant" if getattr(speaker, "llm_config", None) else "user"
    return Said(text, speaker.name, role, chat, len(earlier))


def _uuid(*parts: object) -> uuid.UUID:
    return uuid.uuid5(_NAMESPACE, json.dumps(parts))


class Capture:
    """Stores what was said, in order and behind the chat; with `extract` only what it finds worth keeping."""

    def __init__(
        self, memory: AgentMemory, extract: Extract | None, min_length: int, timeout: float, outage: Outage
    ) -> None:
        self._memory, self._extract, self._min_length = memory.with_timeout(timeout), extract, min_length
        self._outage = outage
        self._backlog = Backlog()

    def sent(
        self, sender: ConversableAgent, message: Message | str, recipient: Agent, silent: bool | None
    ) -> Message | str:
        """The hook before a message is sent. AutoGen passes exactly these names; the message goes on unchanged."""
        self._take(partial(outgoing, sender, message, recipient))
        return message

    async def a_sent(
        self, sender: ConversableAgent, message: Message | str, recipient: Agent, silent: bool | None
    ) -> Message | str:
        """The same for the one version that keeps hooks of async chats apart."""
        return self.sent(sender, message, recipient, silent)

    def heard(self, recipient: ConversableAgent, message: Message | str, sender: Agent) -> None:
        """Keep a message about to be received."""
        self._take(partial(incoming, recipient, message, sender))

    def flush(self, timeout: float) -> int:
        """Wait until everything is stored; the answer is how many messages are not."""
        return self._backlog.flush(timeout)

    def _take(self, read: Callable[[], Said]) -> None:
        try:
            said = read()
            worth = said.text and (self._extract or len(said.text) >= self._min_length)
            if worth and not self._backlog.add(partial(self._keep, said)):
                raise OutboxFullError("too many messages wait to be stored")
        except Exception as error:  # noqa: BLE001 -- an exception in a hook would end the chat
            self._outage.begins(named(error))

    def _keep(self, said: Said) -> None:
        try:
            for text in self._extract(said.text) if self._extract else _pieces(said.text):
                self._store(text, said)
        except Exception as error:  # noqa: BLE001 -- the next message is still to be stored
            self._outage.begins(named(error))
        else:
            self._outage.ends()

    def _store(self, text: str, said: Said) -> None:
        memory, place = self._memory, said.metadata()
        kind = "fact" if self._extract else "interaction"
        # Everything that is stored goes into the id: the same id with anything else would be refused.
        memory_id = str(_uuid(memory.agent_id, memory.session_id, place, kind, text))
        memory.remember_later(text, kind, metadata=place, memory_id=memory_id)


def _pieces(text: str) -> list[str]:
    return [text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)]
