"""The words in AutoGen's message dicts, without tool traffic. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from kronmem.packs.injected_block import clean_words
from kronmem.packs.question import as_question

Message = dict[str, Any]
"""AutoGen's own: role, content, name, tool_calls, … in any mixture."""

_TOOL_KEYS = ("tool_calls", "function_call", "tool_responses")
_FAREWELL = re.compile(r"\s*\bTERMINATE\b\W*$")
_CARRYOVER = re.compile(r"\nContext: \n.*", re.DOTALL)
"""AutoGen appends the summaries of earlier chats like this: nobody said them in this one."""
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
    said = _FAREWELL.sub("", clean_words(_content(message.get("content")))).strip()
    return "" if said == "None" else said  # group chats write the absent text of a tool call like that


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
        if message.get("role", "user") == "user" and message.get("name") != own_name and (said := words(message)):
            return at, as_question(said)
    return None
