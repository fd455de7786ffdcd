"""Chats that outlive their process: saved under a key of an agent's state, and put back into fresh agents.

Every message is saved as it is sent: a killed process loses at most the one under way.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import cast

from kronmem import ConfigError, InvalidInputError, KronmemError, State
from kronmem.autogen.chat_identity import Chat, derived_id, set_chat
from kronmem.autogen.classic import Agent, ConversableAgent, GroupChatManager
from kronmem.autogen.messages import Message, is_traffic, words
from kronmem.autogen.saving import ChatSaver, group_saver, pair_saver
from kronmem.autogen.wrapping import wrap
from kronmem.packs.log_once import LogOnce

_COMPARED = ("content", "tool_calls", "tool_responses", "function_call")


@dataclass(frozen=True)
class Resumed:
    """The saved chat that was put back: false when there was none, and unpacks as (speaker, message).

    `message` is the last one, `speaker` its agent, `ended` true if it ended the chat. A chat that broke off is taken up
    with `speaker.initiate_chat(…, message=message, clear_history=False)`.
    """

    speaker: ConversableAgent | None = None
    message: Message | None = None
    ended: bool = False

    def __bool__(self) -> bool:
        return self.message is not None

    def __iter__(self) -> Iterator[ConversableAgent | Message | None]:
        return iter((self.speaker, self.message))


@contextmanager
def persisted_chat(state: State, key: str, first: ConversableAgent, second: ConversableAgent) -> Generator[Resumed]:
    """Put a saved chat back into two agents, and save it after every message.

    All messages are back before the block begins. Go on with `initiate_chat(…, clear_history=False)`: a new message
    comes after them, the last one sent again takes its own place, and a tool call without a result, which no model
    accepts, makes room. Without `clear_history=False` that is a `ConfigError`, for the saved chat would be lost.

    When the store is out of reach the chat goes on without: logged once, and nothing overwrites an unread chat.

    The way in reads the saved chat, one blocking read a message, and the way out waits for the last save: in an async
    program both hold up the event loop. There, enter it in a thread: `await asyncio.to_thread(stack.enter_context, …)`
    of a `contextlib.ExitStack`, and close the stack the same way.
    """
    both = (first, second)
    with _persisted(_SavedChat(pair_saver(state, key, *both), both, both), partial(_resume_pair, *both)) as resumed:
        yield resumed


@contextmanager
def persisted_group_chat(state: State, key: str, manager: GroupChatManager) -> Generator[Resumed]:
    """The same for a group: the messages are back in the group and in the view of every member."""
    chat = _SavedChat(group_saver(state, key, manager), _talking(manager), (manager,))
    with _persisted(chat, partial(_resume_group, manager)) as resumed:
        yield resumed


@dataclass
class _SavedChat:
    """A chat and its journal, with the rules for the first message after a resume."""

    saver: ChatSaver
    senders: Sequence[ConversableAgent]
    recipients: tuple[ConversableAgent, ...]
    resumed: Resumed = Resumed()

    def note(self, resumed: Resumed, chat_id: str) -> None:
        """Take the lists of the agents for what is stored."""
        self.resumed, self.saver.chat_id = resumed, chat_id
        set_chat(Chat(chat_id, resumed=bool(resumed)), *self.saver.parties)
        self.saver.resumed()

    @contextmanager
    def guarded(self) -> Generator[None]:
        """Watch how the agents go on."""
        with ExitStack() as undo:
            for agent in self.senders:
                for prefix in ("", "a_"):
                    undo.callback(wrap(agent, f"{prefix}initiate_chat", self._initiating))
                    undo.callback(wrap(agent, f"{prefix}send", partial(self._sending, agent)))
            yield

    def _initiating(
        self, recipient: Agent, clear_history: bool = True, *_: object, **__: object
    ) -> AbstractContextManager[None]:
        if clear_history and recipient in self.recipients and self.saver.holds_chat():
            key = self.saver.key
            raise ConfigError(
                f"a chat is saved under {key!r}, and AutoGen would forget it: go on with initiate_chat(…, "
                f"clear_history=False), or begin a new one after state.delete({key!r})"
            )
        return nullcontext()

    def _sending(
        self, sender: Agent, message: Message | str, recipient: Agent, *_: object, **__: object
    ) -> AbstractContextManager[None]:
        last = self.resumed.message
        if last is not None and recipient in self.recipients:
            if _is_call(last) or (sender is self.resumed.speaker and _repeats(message, last)):
                self.saver.drop_last()
                self.note(Resumed(), self.saver.chat_id or "")
            self.resumed = Resumed()
        return nullcontext()


@contextmanager
def _persisted(chat: _SavedChat, resume: Callable[[_SavedChat], Resumed]) -> Generator[Resumed]:
    try:
        resumed = resume(chat)
    except (ConfigError, InvalidInputError):  # a mistake in the program
        raise
    except KronmemError as error:
        LogOnce(f"the chat saved under {chat.saver.key!r}").failed(error)
        yield Resumed()
    else:
        with chat.guarded(), chat.saver.watching():
            yield resumed


def _resume_pair(first: ConversableAgent, second: ConversableAgent, chat: _SavedChat) -> Resumed:
    saved = chat.saver.read()
    sides = cast("dict[str, list[Message]]", saved["sides"] if saved else {})
    if saved and set(sides) != {first.name, second.name}:
        raise ConfigError(f"the chat under {chat.saver.key!r} is between {' and '.join(map(repr, sides))}")
    agent, peer = (
        (first, second) if len(sides.get(first.name, ())) >= len(sides.get(second.name, ())) else (second, first)
    )
    messages = sides.get(agent.name, [])
    if not messages:
        return Resumed()
    agent.chat_messages[peer] = messages
    # A process killed in the middle of a message leaves one side without it.
    missing = messages[len(sides[peer.name]) :]
    peer.chat_messages[agent] = sides[peer.name] + [_as_seen_by_peer(message) for message in missing]
    speaker = _speaker(messages, agent, peer)
    ended = _ends(messages[-1], [peer if speaker is agent else agent])
    chat_id = chat.saver.chat_id or derived_id(sides, words(messages[0]))
    chat.note(resumed := Resumed(speaker, messages[-1], ended), chat_id)
    return resumed


def _resume_group(manager: GroupChatManager, chat: _SavedChat) -> Resumed:
    saved = chat.saver.read()
    messages = cast("list[Message]", saved["messages"] if saved else [])
    if not messages:
        return Resumed()
    group = manager.groupchat
    _check_members(chat.saver.key, manager, messages)
    group.messages[:] = messages
    group.send_introductions = False  # as AutoGen does when it resumes: they may not come between a call and its result
    for agent in _talking(manager):
        agent.chat_messages[manager] = [_as_seen_by(agent, message) for message in messages]
        manager.chat_messages[agent] = [_as_seen_by_peer(message) for message in agent.chat_messages[manager]]
    last = messages[-1]
    speaker = next((agent for agent in _talking(manager) if agent.name == last.get("name")), manager)
    resumed = Resumed(speaker, last, _ends(last, [one for one in (manager, *_talking(manager)) if one is not speaker]))
    chat.note(resumed, chat.saver.chat_id or derived_id([agent.name for agent in group.agents], words(messages[0])))
    return resumed


def _talking(manager: GroupChatManager) -> list[ConversableAgent]:
    return [agent for agent in manager.groupchat.agents if isinstance(agent, ConversableAgent)]


def _check_members(key: str, manager: GroupChatManager, messages: list[Message]) -> None:
    group = manager.groupchat
    known = {*(agent.name for agent in group.agents), group.admin_name, manager.name}
    if others := sorted({str(one["name"]) for one in messages if one.get("name")} - known):
        raise ConfigError(f"the group chat under {key!r} has other members: {', '.join(map(repr, others))}")


def _ends(last: Message, listening: Sequence[ConversableAgent]) -> bool:
    if is_traffic(last):  # calls and results of tools never end a chat
        return False
    # AutoGen has no public way to ask an agent.
    return any(agent._is_termination_msg(last) for agent in listening)  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]


def _speaker(messages: Sequence[Message], agent: ConversableAgent, peer: ConversableAgent) -> ConversableAgent:
    """The agent of the last message in the view of `agent`: tool traffic may have no name, but turns alternate."""
    for turn, message in enumerate(reversed(messages)):
        if not is_traffic(message):
            return agent if (message.get("role") == "assistant") == (turn % 2 == 0) else peer
    return agent


def _is_call(message: Message) -> bool:
    return bool(message.get("tool_calls") or message.get("function_call"))


def _repeats(message: Message | str, last: Message) -> bool:
    sent = {"content": message} if isinstance(message, str) else message
    return all((sent.get(name) or None) == (last.get(name) or None) for name in _COMPARED)


def _as_seen_by(agent: Agent, message: Message) -> Message:
    if message.get("role") in ("tool", "function"):
        return dict(message)
    return {**message, "role": "assistant" if message.get("name") == agent.name or _is_call(message) else "user"}


def _as_seen_by_peer(message: Message) -> Message:
    """The same message in the view of the other side; tool traffic keeps its role."""
    if message.get("role") in ("tool", "function") or _is_call(message):
        return dict(message)
    return {**message, "role": "user" if message.get("role") == "assistant" else "assistant"}
