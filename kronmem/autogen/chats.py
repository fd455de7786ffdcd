"""Chats that outlive their process: saved under a key of an agent's state, and put back into fresh agents.

`persisted_chat` and `persisted_group_chat` save after every message: a killed process loses at most the one under way.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar, cast

from kronmem import ConfigError, InvalidInputError, KronmemError, State
from kronmem.autogen.chat_identity import Chat, derived_id, set_chat
from kronmem.autogen.classic import Agent, ConversableAgent, GroupChatManager
from kronmem.autogen.messages import Message, words
from kronmem.autogen.saving import ChatSaver, group_saver, pair_saver
from kronmem.packs.log_once import LogOnce

T = TypeVar("T")
Last = tuple[Agent, Message]


def save_chat(state: State, key: str, first: ConversableAgent, second: ConversableAgent) -> None:
    """Save the messages between two agents, tool messages included."""
    _rewrite(pair_saver(state, key, first, second))


def resume_chat(state: State, key: str, first: ConversableAgent, second: ConversableAgent) -> bool:
    """Give two agents back the messages between them; False when nothing was saved.

    Go on with `initiate_chat(…, clear_history=False)`: AutoGen forgets everything otherwise. A tool call that never
    got its result is left out, since no model accepts it.
    """
    return _resume_chat(pair_saver(state, key, first, second), first, second)


def save_group_chat(state: State, key: str, manager: GroupChatManager) -> None:
    """Save the messages of a group chat, tool messages included."""
    _rewrite(group_saver(state, key, manager))


def resume_group_chat(state: State, key: str, manager: GroupChatManager) -> Last | None:
    """Give a group back its messages; None when nothing was saved, else the last speaker and the last message.

    Go on with `agent.initiate_chat(manager, message=message, clear_history=False)`: the last message is sent again,
    so one that ended the chat ends it again. Memory attached to the agents does not keep the replay a second time.
    """
    return _resume_group_chat(group_saver(state, key, manager), manager)


@contextmanager
def persisted_chat(state: State, key: str, first: ConversableAgent, second: ConversableAgent) -> Generator[bool]:
    """Resume on the way in, save after every message; the value says whether there was a chat.

    When the store is out of reach the chat goes on without: logged once, and nothing overwrites an unread chat.

    The way in reads the saved chat, one blocking read a message, and the way out waits for the last save: in an async
    program both hold up the event loop. There, enter it in a thread: `await asyncio.to_thread(stack.enter_context, …)`
    of a `contextlib.ExitStack`, and close the stack the same way.
    """
    saver = pair_saver(state, key, first, second)
    read = _attempted(key, lambda: _resume_chat(saver, first, second))
    with saver.watching() if read else _nothing():
        yield bool(read and read[0])


@contextmanager
def persisted_group_chat(state: State, key: str, manager: GroupChatManager) -> Generator[Last | None]:
    """The same for a group; the value is that of `resume_group_chat`."""
    saver = group_saver(state, key, manager)
    read = _attempted(key, lambda: _resume_group_chat(saver, manager))
    with saver.watching() if read else _nothing():
        yield read[0] if read else None


def _rewrite(saver: ChatSaver) -> None:
    saver.read()  # what stands there is removed once the new chat is stored
    saver.rewrite()
    saver.remove_replaced()


def _resume_chat(saver: ChatSaver, first: ConversableAgent, second: ConversableAgent) -> bool:
    saved = saver.read()
    if saved is None:
        return False
    sides = cast("dict[str, list[Message]]", saved["sides"])
    if set(sides) != {first.name, second.name}:
        raise ConfigError(f"the chat under {saver.key!r} is between {' and '.join(map(repr, sides))}")
    for agent, peer in ((first, second), (second, first)):
        agent.chat_messages[peer] = _answered(sides[agent.name])
    saver.resumed()
    if opening := sides[first.name][:1]:
        saver.chat_id = saver.chat_id or derived_id(sides, words(opening[0]))
        set_chat(Chat(saver.chat_id, resumed=True), first, second)
    return True


def _resume_group_chat(saver: ChatSaver, manager: GroupChatManager) -> Last | None:
    saved = saver.read()
    messages = cast("list[Message]", saved["messages"] if saved else [])
    if not messages:
        return None
    _check_members(saver.key, manager, messages)
    saver.chat_id = saver.chat_id or derived_id([agent.name for agent in manager.groupchat.agents], words(messages[0]))
    set_chat(Chat(saver.chat_id, resumed=True), manager)
    last = cast("Last", manager.resume(messages, silent=True))
    for agent in manager.groupchat.agents:
        _complete(agent, manager, messages[:-1])
    saver.resumed()
    return last


def _check_members(key: str, manager: GroupChatManager, messages: list[Message]) -> None:
    group = manager.groupchat
    known = {*(agent.name for agent in group.agents), group.admin_name, manager.name}
    if others := sorted({str(one["name"]) for one in messages if one.get("name")} - known):
        raise ConfigError(f"the group chat under {key!r} has other members: {', '.join(map(repr, others))}")


@contextmanager
def _nothing() -> Generator[None]:
    yield


def _attempted(key: str, work: Callable[[], T]) -> tuple[T] | None:
    """The store's answer in a tuple; None when there is none. A mistake in the program is still an error."""
    try:
        return (work(),)
    except (ConfigError, InvalidInputError):
        raise
    except KronmemError as error:
        LogOnce(f"the chat saved under {key!r}").failed(error)
        return None


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
