"""Which chat a message belongs to: AutoGen gives chats no id, and capture needs one that a resumed chat keeps.

A chat that begins gets an id of its own, so that the same words said in a later chat are stored again after `forget`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from kronmem.autogen.classic import Agent
from kronmem.autogen.messages import Message, words
from kronmem.packs.capture import stable_id


@dataclass
class Chat:
    """One conversation between two agents, or in one group."""

    id: str
    resumed: bool = False
    seen: set[tuple[str, str]] = field(default_factory=lambda: set[tuple[str, str]]())
    """Who has observed its first message: an observer sees that of every chat once."""
    went_on: bool = False


# Two agents are found by either of them, a group by its manager alone.
_chats: WeakKeyDictionary[Agent, WeakKeyDictionary[Agent, Chat]] = WeakKeyDictionary()


def find_chat(first: Agent, second: Agent | None = None) -> Chat | None:
    """The chat between two agents, or of the group that a manager runs."""
    return _chats.get(first, WeakKeyDictionary()).get(second or first)


def set_chat(chat: Chat, first: Agent, second: Agent | None = None) -> Chat:
    """Note the chat between two agents, or of a group."""
    for one, other in {(first, second or first), (second or first, first)}:
        _chats.setdefault(one, WeakKeyDictionary())[other] = chat
    return chat


def derived_id(names: Iterable[str], begun: str) -> str:
    """The id of a chat that nobody gave one: who takes part and how it began are the same again when it goes on."""
    return stable_id(sorted(names), begun).hex[:12]


def chat_of(
    parties: tuple[Agent, Agent | None], names: Iterable[str], earlier: Sequence[Message], observer: tuple[str, str]
) -> Chat:
    """The chat that a message belongs to, after these earlier ones; the first message begins a new one."""
    chat = find_chat(*parties)
    if earlier:
        chat = chat or set_chat(Chat(derived_id(names, words(earlier[0]))), *parties)
        chat.went_on = True
        return chat
    if chat is None or chat.resumed or chat.went_on or observer in chat.seen:
        chat = set_chat(Chat(uuid.uuid4().hex[:12]), *parties)
    chat.seen.add(observer)
    return chat
