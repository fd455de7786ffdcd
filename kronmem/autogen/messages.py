"""The words in AutoGen's message dicts, without tool traffic, and the chat that a message belongs to."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from weakref import WeakKeyDictionary

from kronmem.autogen.classic import Agent
from kronmem.packs.block import as_question, clean_words
from kronmem.packs.capture import stable_id

Message = dict[str, Any]
"""AutoGen's own: role, content, name, tool_calls, … in any mixture."""

_TOOL_KEYS = ("tool_calls", "function_call", "tool_responses")
_FAREWELL = re.compile(r"\s*\bTERMINATE\b\W*$")
_CARRYOVER = re.compile(r"\nContext: \n.*", re.DOTALL)
"""AutoGen appends the summaries of earlier chats like this: they are no messages of this one."""
_CODE_OUTPUT = "exitcode: "


def is_traffic(message: Mapping[str, object]) -> bool:
    """Tell calls and results of tools, and the output of executed code, from words."""
    if message.get("role") in ("tool", "function") or any(message.get(key) for key in _TOOL_KEYS):
        return True
    content = message.get("content")
    return isinstance(content, str) and content.startswith(_CODE_OUTPUT)


def words(message: Message | str) -> str:
    """The words of a message: "" for traffic, without injected blocks, carryover and the word that ends a chat."""
    if isinstance(message, str):
        message = {"content": message}
    if is_traffic(message):
        return ""
    text = _FAREWELL.sub("", clean_words(_content(message.get("content")))).strip()
    return "" if text == "None" else text  # group chats write the absent text of a tool call like that


def text(message: Mapping[str, object]) -> str:
    """All that a model reads of a message, the results of tools included."""
    return _content(message.get("content"))


def _content(content: object) -> str:
    if isinstance(content, str):
        return _CARRYOVER.sub("", content)
    if not isinstance(content, Sequence):
        return ""
    parts = [cast("Mapping[str, object]", part) for part in content if isinstance(part, Mapping)]  # pyright: ignore[reportUnknownVariableType] -- AutoGen's, unchecked
    texts = [text for part in parts if isinstance(text := part.get("text"), str)]
    return "\n".join(_CARRYOVER.sub("", text) for text in texts)


def question(messages: Sequence[Message], own_name: str) -> tuple[int, str] | None:
    """The newest words of a human or a peer as a query, after their position."""
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if message.get("role", "user") == "user" and message.get("name") != own_name and (text := words(message)):
            return at, as_question(text)
    return None


# Which chat a message belongs to: AutoGen gives chats no id, and capture needs one that a resumed chat keeps.
#
# A chat that begins gets an id of its own, so that the same words in a later chat are stored again after `forget`.


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
    """The id of a chat without a given one: who takes part and how it began are the same again when it goes on."""
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
