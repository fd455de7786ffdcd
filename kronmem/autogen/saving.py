"""Saves a chat message by message: of the lists that AutoGen keeps, only the new end is written."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import NamedTuple, cast

from pydantic import JsonValue

from kronmem import ConfigError, DeadlineError, InvalidInputError, State
from kronmem.autogen.chat_identity import find_chat
from kronmem.autogen.classic import Agent, ConversableAgent, GroupChatManager
from kronmem.autogen.messages import Message
from kronmem.autogen.wrapping import wrap
from kronmem.packs.bounded_call import bounded, bounded_thread
from kronmem.packs.checks import check_blocking_state
from kronmem.packs.idle_threads import idle_threads
from kronmem.packs.log_once import LogOnce
from kronmem.packs.saved_changes import Change, ChangeLog

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
        """Store the whole chat in place of the saved one, whose entries `remove_replaced` removes."""
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
