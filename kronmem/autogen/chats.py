"""Chats that outlive their process: saved as JSON under a key of an agent's state, and put back into fresh agents.

Saving works at any time, also in `finally` after a chat has died; the context managers do just that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar, cast

from pydantic import JsonValue

from kronmem import ConfigError, InvalidInputError, KronmemError, State
from kronmem.autogen.classic import Agent, ConversableAgent, GroupChatManager
from kronmem.autogen.messages import Message
from kronmem.packs.log_once import LogOnce

T = TypeVar("T")
Last = tuple[Agent, Message]


def save_chat(state: State, key: str, first: ConversableAgent, second: ConversableAgent) -> None:
    """Save the messages between two agents, tool messages included."""
    sides = {first.name: first.chat_messages.get(second, []), second.name: second.chat_messages.get(first, [])}
    state.set(key, {"kind": "chat", "sides": _json(sides)})


def resume_chat(state: State, key: str, first: ConversableAgent, second: ConversableAgent) -> bool:
    """Give two agents back the messages between them; False when nothing was saved.

    Go on with `initiate_chat(…, clear_history=False)`: AutoGen forgets everything otherwise. A tool call that never
    got its result is left out, since no model accepts it.
    """
    saved = _saved(state, key, "chat", "sides")
    if saved is None:
        return False
    sides = cast("dict[str, list[Message]]", saved)
    if set(sides) != {first.name, second.name}:
        raise ConfigError(f"the chat under {key!r} is between {' and '.join(map(repr, sides))}")
    for agent, peer in ((first, second), (second, first)):
        agent.chat_messages[peer] = _answered(sides[agent.name])
    return True


def save_group_chat(state: State, key: str, manager: GroupChatManager) -> None:
    """Save the messages of a group chat, tool messages included."""
    state.set(key, {"kind": "group chat", "messages": _json(manager.groupchat.messages)})


def resume_group_chat(state: State, key: str, manager: GroupChatManager) -> Last | None:
    """Give a group back its messages; None when nothing was saved, else the last speaker and the last message.

    Go on with `agent.initiate_chat(manager, message=message, clear_history=False)`: the last message is sent again,
    so one that ended the chat ends it again. Memory attached to the agents does not keep the replay a second time.
    """
    saved = _saved(state, key, "group chat", "messages")
    if not saved:
        return None
    messages = cast("list[Message]", saved)
    last = cast("Last", manager.resume(messages, silent=True))
    for agent in manager.groupchat.agents:
        _complete(agent, manager, messages[:-1])
    return last


@contextmanager
def persisted_chat(state: State, key: str, first: ConversableAgent, second: ConversableAgent) -> Generator[bool]:
    """Resume on the way in, save on the way out, also after an exception; the value says whether there was a chat.

    When the store is out of reach the chat goes on without: logged, and nothing overwrites an unread chat.
    """
    read = _attempted(key, lambda: resume_chat(state, key, first, second))
    try:
        yield bool(read and read[0])
    finally:
        if read:
            _attempted(key, lambda: save_chat(state, key, first, second))


@contextmanager
def persisted_group_chat(state: State, key: str, manager: GroupChatManager) -> Generator[Last | None]:
    """The same for a group; the value is that of `resume_group_chat`."""
    read = _attempted(key, lambda: resume_group_chat(state, key, manager))
    before = list(manager.groupchat.messages)
    try:
        yield read[0] if read else None
    finally:
        # Until its last message is sent again, a resumed chat is one message short of the saved one.
        if read and (read[0] is None or manager.groupchat.messages != before):
            _attempted(key, lambda: save_group_chat(state, key, manager))


def _attempted(key: str, work: Callable[[], T]) -> tuple[T] | None:
    """The store's answer in a tuple; None when there is none. A mistake in the program is still an error."""
    try:
        return (work(),)
    except (ConfigError, InvalidInputError):
        raise
    except KronmemError as error:
        LogOnce(f"the chat saved under {key!r}").failed(error)
        return None


def _saved(state: State, key: str, kind: str, part: str) -> JsonValue:
    saved = state.get(key)
    if saved is None:
        return None
    if not isinstance(saved, dict) or saved.get("kind") != kind:
        raise ConfigError(f"the value saved under {key!r} is not a {kind}")
    return saved[part]


def _json(messages: object) -> JsonValue:
    """As JSON: other values that AutoGen lets into a message, such as functions, are kept as their description."""
    plain: JsonValue = json.loads(json.dumps(messages, default=str))
    return plain


def _answered(messages: list[Message]) -> list[Message]:
    while messages and messages[-1].get("tool_calls"):
        messages = messages[:-1]
    return messages


def _complete(agent: Agent, manager: GroupChatManager, messages: list[Message]) -> None:
    """Put back the agent's own messages: pyautogen 0.2.35 leaves them out, and tool results lose their calls."""
    if isinstance(agent, ConversableAgent) and len(agent.chat_messages.get(manager, [])) < len(messages):
        agent.chat_messages[manager] = [_as_seen_by(agent, message) for message in messages]


def _as_seen_by(agent: Agent, message: Message) -> Message:
    if message.get("role") in ("tool", "function"):
        return dict(message)
    own = message.get("name") == agent.name or message.get("tool_calls") or message.get("function_call")
    return {**message, "role": "assistant" if own else "user"}
