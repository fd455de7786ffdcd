"""Chats that outlive their process: saved message by message under a key of an agent's state, and resumed.

A killed process loses at most the message under way.
"""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, cast

from pydantic import JsonValue

from kronmem import ConfigError, DeadlineError, InvalidInputError, KronmemError, State
from kronmem.autogen.classic import Agent, ConversableAgent, GroupChatManager, wrap
from kronmem.autogen.messages import Chat, Message, derived_id, find_chat, is_traffic, set_chat, words
from kronmem.packs.checks import check_blocking_state
from kronmem.packs.deadlines import LogOnce, bounded, bounded_thread, idle_threads
from kronmem.packs.message_log import Change, ChangeLog

# Saves a chat message by message: of the lists that AutoGen keeps, only the new end is written.

TIMEOUT = 2.0
"""Seconds that a message may wait for its saving: as long as for a recall."""
LAST_TIMEOUT = 10.0
"""Seconds for the end of a chat: as long as a client's call may take."""

Place = tuple[str, ...]
Lists = Mapping[Place, Sequence[Message]]
"""The message lists of a chat, by their place in the saved value."""


class Stored(NamedTuple):
    """How much of a list is stored; the messages at both ends tell whether it is still the same list."""

    length: int
    first: Message | None
    last: Message | None

    @classmethod
    def of(cls, messages: Sequence[Message]) -> Stored:
        """All of it."""
        return cls(len(messages), messages[0], messages[-1]) if messages else cls(0, None, None)

    def begins(self, messages: Sequence[Message]) -> bool:
        """Tell whether the list still begins with the stored part."""
        if not self.length:
            return True
        return len(messages) >= self.length and messages[0] is self.first and messages[self.length - 1] is self.last


def pair_saver(state: State, key: str, first: ConversableAgent, second: ConversableAgent) -> ChatSaver:
    """Saves the chat between two agents, each side of it."""

    def lists() -> Lists:
        sides = ((first, second), (second, first))
        return {("sides", agent.name): list(agent.chat_messages.get(peer, [])) for agent, peer in sides}

    def drop_last() -> None:
        del first.chat_messages[second][-1:], second.chat_messages[first][-1:]

    return ChatSaver(state, key, "chat", lists, drop_last, (first, second), (first, second))


def group_saver(state: State, key: str, manager: GroupChatManager) -> ChatSaver:
    """Saves a group chat: the manager passes a message on right after the group has noted it."""
    members = [agent for agent in manager.groupchat.agents if isinstance(agent, ConversableAgent)]

    def lists() -> Lists:
        return {("messages",): list(manager.groupchat.messages)}

    def drop_last() -> None:
        del manager.groupchat.messages[-1:]
        for agent in members:
            del agent.chat_messages[manager][-1:], manager.chat_messages[agent][-1:]

    return ChatSaver(state, key, "group chat", lists, drop_last, (manager,), (manager, *members))


class ChatSaver:
    """The journal of one chat, and how much of the chat it holds."""

    def __init__(
        self,
        state: State,
        key: str,
        kind: str,
        lists: Callable[[], Lists],
        drop_last: Callable[[], None],
        parties: tuple[Agent, ...],
        watched: Sequence[ConversableAgent],
    ) -> None:
        self.key, self._lists, self.parties, self._watched = key, lists, parties, watched
        self.drop_last, self._state = drop_last, check_blocking_state(state)
        self._journal = ChangeLog(state, key, kind)
        self._log = LogOnce(f"the saving of the chat {key!r}")
        self._lock, self._hanging = threading.Lock(), False
        self._stored: dict[Place, Stored] = {}
        self.chat_id: str | None = None

    def read(self) -> Mapping[str, JsonValue] | None:
        """The saved chat; None when there is none."""
        try:
            head = self._journal.read()
        except InvalidInputError as error:
            raise ConfigError(str(error)) from None
        if head is None:
            return None
        self.chat_id = cast("str | None", head.get("chat"))
        return cast("Mapping[str, JsonValue]", head["value"])

    def resumed(self) -> None:
        """Note that the agents hold the saved chat again."""
        self._stored = {place: Stored.of(messages) for place, messages in self._lists().items()}

    def holds_chat(self) -> bool:
        """Whether a chat is saved, and was not deleted since."""
        return any(one.length for one in self._stored.values()) and self._state.get(self.key) is not None

    def rewrite(self) -> None:
        """Store the whole chat in place of the saved one; `remove_replaced` removes its entries."""
        lists, chat = self._lists(), find_chat(*self.parties)
        chat_id = chat.id if chat is not None else self.chat_id
        self._journal.begin([_change(place, 0, messages) for place, messages in lists.items()], {"chat": chat_id})
        self.chat_id, self._stored = chat_id, {place: Stored.of(messages) for place, messages in lists.items()}

    def remove_replaced(self) -> None:
        """Remove the chat that another one has taken the place of."""
        self._journal.remove_replaced()

    def save(self) -> None:
        """Store the new messages; a chat that was cleared takes the place of the saved one."""
        lists = self._lists()
        if self._is_new(lists) and not self._continues(lists):
            self.rewrite()
            idle_threads.run(self._remove_quietly)  # the old chat may be long: no message waits for this
        elif self._is_new(lists):
            changes = [_change(place, self._stored[place].length, messages) for place, messages in lists.items()]
            self._journal.append([change for change in changes if change[2]])
            self._stored = {place: Stored.of(messages) for place, messages in lists.items()}

    @contextmanager
    def watching(self) -> Generator[None]:
        """Save around everything that adds a message, and at the end."""
        with ExitStack() as undo:
            for agent in self._watched:
                # A message under way is noted by its sender first: when it is received, only one side has it.
                for name, before in (("generate_reply", True), ("send", True), ("receive", False)):
                    undo.callback(wrap(agent, name, partial(self._around, before)))
                    undo.callback(wrap(agent, f"a_{name}", partial(self._around_async, before)))
            try:
                yield
            finally:
                self._end()

    @contextmanager
    def _around(self, before: bool, *_: object, **__: object) -> Generator[None]:
        if before:
            self._save_within()
        try:
            yield
        finally:
            self._save_within()

    @asynccontextmanager
    async def _around_async(self, before: bool, *_: object, **__: object) -> AsyncGenerator[None]:
        if before:
            await self._save_async()
        try:
            yield
        finally:
            await self._save_async()

    def _save_within(self) -> None:
        if self._is_new(self._lists()):
            with self._log.swallowing():
                bounded(partial(self._save_alone, TIMEOUT), TIMEOUT)

    async def _save_async(self) -> None:
        if self._is_new(self._lists()):
            with self._log.swallowing():
                await bounded_thread(partial(self._save_alone, TIMEOUT), TIMEOUT)

    def _end(self) -> None:
        with self._log.swallowing():
            if self._is_new(self._lists()):
                bounded(partial(self._save_alone, LAST_TIMEOUT), LAST_TIMEOUT)
            if self._journal.replaced:
                with LogOnce(f"the removal of the chat before under {self.key!r}").swallowing():
                    bounded(self.remove_replaced, LAST_TIMEOUT)

    def _save_alone(self, timeout: float) -> None:
        # A save that hangs is waited for once, and at the end; messages meanwhile are stored with the next that works.
        if not self._lock.acquire(timeout=0 if self._hanging and timeout < LAST_TIMEOUT else timeout):
            self._hanging = True
            raise DeadlineError("an earlier save has not ended yet", sent=False)
        try:
            self.save()
        finally:
            self._hanging = False
            self._lock.release()

    def _remove_quietly(self) -> None:
        with suppress(Exception):  # tried once more at the end
            self.remove_replaced()

    def _is_new(self, lists: Lists) -> bool:
        """Whether there are messages that are not stored; an emptied list alone is nothing to save."""
        known = self._stored
        return any(messages and (at not in known or known[at] != Stored.of(messages)) for at, messages in lists.items())

    def _continues(self, lists: Lists) -> bool:
        chat = find_chat(*self.parties)
        if not self._journal.begun or (chat is not None and chat.id != self.chat_id):
            return False
        return all(at in self._stored and self._stored[at].begins(messages) for at, messages in lists.items())


def _change(place: Place, start: int, messages: Sequence[Message]) -> Change:
    """The messages from there on, as JSON: others values that AutoGen lets in, such as functions, as descriptions."""
    plain: JsonValue = json.loads(json.dumps(messages[start:], default=str))
    return list(place), start, plain


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
        """Take the lists of the agents as the stored ones."""
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
