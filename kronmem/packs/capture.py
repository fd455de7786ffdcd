"""Capture: stores the words of a conversation with speaker and role, and never fails the hook that calls it."""

from __future__ import annotations

import atexit
import contextvars
import inspect
import json
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from anyio import to_thread
from pydantic import JsonValue

from kronmem.agent_memory import AgentMemory
from kronmem.async_agent_memory import AsyncAgentMemory
from kronmem.errors import ConfigError, ConflictError, DeadlineError, InvalidInputError, OutboxFullError
from kronmem.packs.deadlines import LogOnce, bounded_async, bounded_thread, idle_threads
from kronmem.packs.no_echo import Echoes
from kronmem.text.extract import Fact
from kronmem.text.statements import statements

T = TypeVar("T")

Role = Literal["user", "assistant", "tool"]
Texts = Iterable[str]
Extract: TypeAlias = "Callable[..., Texts | Awaitable[Texts]]"
"""Finds the texts worth keeping in a message, such as `extract_facts`; called with `role=` if it has that parameter."""
CaptureWord: TypeAlias = bool | Literal["auto", "user", "all"]
CaptureOption: TypeAlias = "CaptureWord | Extract"
"""What is kept of a chat: "auto", what the user states and the assistant decides; "user", the former alone; "all" or
True, every message; a function; or False."""

MAX_PIECE_CHARS = 30_000
"""A memory holds 32,000 characters at every service; the rest is room for a redaction that lengthens a text."""
MAX_BEFORE = 8
"""Messages of a chat that an answer may repeat: those of the last minutes."""
EXTRACT_WAIT = 0.1
"""Seconds that a turn waits for a function of the user's: rules take less, and a model is not waited for."""
_NAMESPACE = uuid.UUID("6f0e3d52-6a39-5d0e-8c1b-1f2f6a1d9a77")


@dataclass(frozen=True)
class Utterance:
    """Words, their speaker and their place in a conversation. The same words at the same place are one memory."""

    text: str
    speaker: str
    role: Role
    place: Mapping[str, JsonValue] = field(default_factory=lambda: dict[str, JsonValue]())
    before: tuple[str, ...] = ()
    """The latest messages of the others: an answer that only repeats them has decided nothing."""

    def metadata(self) -> dict[str, JsonValue]:
        """The provenance, without the words and the role."""
        return {"speaker": self.speaker, **self.place}


def stable_id(*parts: object) -> uuid.UUID:
    """An id that the same parts make again in every process."""
    return uuid.uuid5(_NAMESPACE, json.dumps(parts))


class CapturedMemory(NamedTuple):
    """One text to store, with the arguments of `remember_later`."""

    text: str
    memory_type: str
    metadata: dict[str, JsonValue]
    memory_id: str
    role: Role
    ttl_days: int | None

    def store(self, memory: AgentMemory) -> None:
        """Store it: on disk when this returns. One that was forgotten since stays so."""
        with suppress(ConflictError):
            self._hand(memory.remember_later)

    async def store_async(self, memory: AsyncAgentMemory) -> None:
        """Store it: on disk when this returns. One that was forgotten since stays so."""
        with suppress(ConflictError):
            await self._hand(memory.remember_later)

    def _hand(self, remember_later: Callable[..., T]) -> T:
        return remember_later(
            self.text,
            self.memory_type,
            metadata=self.metadata,
            memory_id=self.memory_id,
            role=self.role,
            ttl_days=self.ttl_days,
        )


@dataclass(frozen=True)
class CaptureRules:
    """Which utterances are stored, and as which memories."""

    option: Literal["auto", "user", "all"] | Extract = "auto"
    min_length: int = 20
    """Characters: with "all", shorter messages ("ok, thanks") are left out."""
    ttl_days: int | None = None

    def accept(self, utterance: Utterance) -> bool:
        """Tell whether an utterance may hold anything worth storing."""
        if self.option == "all":
            return bool(utterance.text) and len(utterance.text) >= self.min_length
        return bool(utterance.text) and (self.option != "user" or utterance.role == "user")

    @property
    def waits(self) -> bool:
        """Whether a function of the user's decides, which may take its time."""
        return callable(self.option)

    def find(self, utterance: Utterance) -> Texts | Awaitable[Texts]:
        """The texts of an utterance that are worth keeping; those of a function may have to be awaited."""
        if self.option == "all":
            return [Fact(utterance.text, "interaction")]
        if not callable(option := self.option):
            return statements(utterance.text, utterance.role, utterance.before)
        return option(utterance.text, role=utterance.role) if _takes_role(option) else option(utterance.text)

    def memories(
        self, utterance: Utterance, texts: Texts, agent_id: str, session_id: str | None
    ) -> Iterator[CapturedMemory]:
        """The memories of the texts found in an utterance, for one agent."""
        place = {"speaker": utterance.speaker, "role": utterance.role, **utterance.place}
        for stated in texts:
            kind = stated.memory_type if isinstance(stated, Fact) else "fact"
            for text in _pieces(str(stated)):
                # Everything that is stored goes into the id: the same id with anything else would be refused.
                memory_id = str(stable_id(agent_id, session_id, place, kind, text))
                yield CapturedMemory(text, kind, utterance.metadata(), memory_id, utterance.role, self.ttl_days)


def capture_rules(
    capture: CaptureOption, ttl_days: int | None = None, *, min_length: int = 20, awaits: bool = True
) -> CaptureRules | None:
    """The rules behind a pack's `capture=`, None for False; `InvalidInputError` for any other word.

    Where nothing `awaits`, an async function is a `ConfigError`.
    """
    if capture is False:
        return None
    if not callable(capture) and capture not in (True, "auto", "user", "all"):
        raise InvalidInputError('capture must be "auto", "user", "all", False or a function from a text to texts')
    if callable(capture) and not awaits and _is_async(capture):
        raise ConfigError("capture= is an async function, which a blocking chat cannot await: pass a plain one")
    return CaptureRules("all" if capture is True else capture, min_length, ttl_days)


def _is_async(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 -- not whether it can be called


def _takes_role(function: Extract) -> bool:
    try:
        return "role" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return False


class Capture:
    """Stores utterances in order, in a thread of its own; `settle` waits until they are on disk. Never raises."""

    def __init__(
        self, memory: AgentMemory, rules: CaptureRules, timeout: float, log: LogOnce, echoes: Echoes | None = None
    ) -> None:
        self._memory, self._rules, self._log = memory.with_timeout(timeout), rules, log
        self._echoes = echoes or Echoes()
        self._backlog = Backlog()
        self._wait = min(timeout, EXTRACT_WAIT) if rules.waits else timeout
        self._behind = False

    def take(self, read: Callable[[], Utterance]) -> int:
        """Begin to store an utterance for the agent of this moment; the answer is its ticket for `settle`.

        A failure to read or to queue it is logged once.
        """
        ticket: int | None = 0
        try:
            utterance = read()
            if self._rules.accept(utterance):
                # Resolved here: the thread that stores it has none of the caller's thread-local data.
                ticket = self._backlog.add(partial(self._store, self._memory.resolved(), utterance))
                if ticket is None:
                    raise OutboxFullError("too many messages wait to be stored")
        except Exception as error:  # noqa: BLE001 -- an exception in a hook would end the chat
            self._log.failed(error)
        return ticket or 0

    def settle(self, ticket: int) -> None:
        """Wait until an utterance is on disk. A store found hanging once is not waited for again until it goes on."""
        if not self._is_settled(ticket):
            self._behind = not self._backlog.wait(ticket, self._wait)

    async def settle_async(self, ticket: int) -> None:
        """The same for asyncio: the event loop goes on meanwhile."""
        if self._is_settled(ticket):
            return
        try:
            self._behind = not await bounded_thread(partial(self._backlog.wait, ticket, self._wait), 2 * self._wait)
        except DeadlineError:  # no thread to wait in
            self._behind = not self._backlog.done(ticket)

    def flush(self, timeout: float) -> int:
        """Wait until everything is stored; the answer is how many utterances are not."""
        return self._backlog.flush(timeout)

    def _is_settled(self, ticket: int) -> bool:
        return self._behind or self._backlog.done(ticket)

    def _store(self, memory: AgentMemory, utterance: Utterance) -> None:
        with self._log.swallowing():  # the next utterance is still to be stored
            texts = _at_once(self._rules.find(utterance))
            for one in self._rules.memories(utterance, texts, memory.agent_id, memory.session_id):
                self._echoes.note(memory.agent_id, one.memory_id, one.text)
                one.store(memory)
        self._behind = False


class AsyncCapture:
    """Stores utterances before the hook returns: an outbox or a file takes them at once. Never raises."""

    def __init__(self, rules: CaptureRules, timeout: float, log: LogOnce, echoes: Echoes | None = None) -> None:
        self._rules, self._timeout, self._log, self._echoes = rules, timeout, log, echoes or Echoes()

    async def take(self, memory: AsyncAgentMemory, utterance: Utterance) -> None:
        """Store an utterance within the timeout; a failure is logged once, cancellation goes on."""
        if self._rules.accept(utterance):
            with self._log.swallowing():
                await bounded_async(partial(self._store, memory.resolved(), utterance), self._timeout)

    async def _store(self, memory: AsyncAgentMemory, utterance: Utterance) -> None:
        texts = await self._texts(utterance)
        for one in self._rules.memories(utterance, texts, memory.agent_id, memory.session_id):
            self._echoes.note(memory.agent_id, one.memory_id, one.text)
            await one.store_async(memory)

    async def _texts(self, utterance: Utterance) -> Texts:
        if not self._rules.waits or _is_async(self._rules.option):
            texts = self._rules.find(utterance)
        else:  # a plain function of the user's may block: that takes its own time, not the event loop's
            texts = await to_thread.run_sync(partial(_listed, self._rules, utterance), abandon_on_cancel=True)
        return await texts if isinstance(texts, Awaitable) else texts


def _at_once(texts: Texts | Awaitable[Texts]) -> Texts:
    if not isinstance(texts, Awaitable):
        return texts
    if isinstance(texts, Coroutine):
        texts.close()  # it would warn that it was never awaited
    raise ConfigError("capture= gave an awaitable, which a blocking chat cannot await: pass a plain function")


def _listed(rules: CaptureRules, utterance: Utterance) -> Texts | Awaitable[Texts]:
    """The texts, all of them found here: a generator would do its work where it is read."""
    texts = rules.find(utterance)
    return texts if isinstance(texts, Awaitable) else list(texts)


def _pieces(text: str) -> list[str]:
    """A text in parts that every service takes; none of them blank."""
    parts = [text[at : at + MAX_PIECE_CHARS] for at in range(0, len(text), MAX_PIECE_CHARS)]
    return [part for part in parts if part.strip()]


# The queue of captured messages: stored in order, by a thread of its own, and finished before the process ends.

MAX_JOBS = 1000
"""Messages of a long chat during an outage; beyond that, RAM is not the place to keep them."""
AT_EXIT = 5.0
"""Seconds that the end of a process may wait: two attempts at the default timeout of 2 s, and some room."""

_busy: set[Backlog] = set()


class Backlog:
    """A bounded queue, and a thread that works for it only while there is something in it."""

    def __init__(self, max_jobs: int = MAX_JOBS) -> None:
        self._max_jobs = max_jobs
        self._jobs: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._working_in: int | None = None
        self._added = self._done = 0

    def add(self, job: Callable[[], None]) -> int | None:
        """Do this after the jobs added before; the answer is its ticket, None when too many wait already.

        The job must not raise. It runs in the caller's context, and so under the caller's span.
        """
        with self._changed:
            if len(self._jobs) >= self._max_jobs:
                return None
            self._jobs.append(partial(contextvars.copy_context().run, job))
            self._added += 1
            if self._working_in != os.getpid():  # the thread of another process was lost in a fork
                self._start()
            return self._added

    def done(self, ticket: int) -> bool:
        """Tell whether the job with this ticket, and all before it, are done."""
        return self._done >= ticket

    def wait(self, ticket: int, timeout: float) -> bool:
        """Wait until it is done, at most `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.done(ticket), timeout)

    def flush(self, timeout: float) -> int:
        """Wait until everything is done, at most `timeout` seconds; the answer is how much is left."""
        with self._changed:
            self._changed.wait_for(lambda: not self._jobs, timeout)
            return len(self._jobs)

    def _start(self) -> None:
        _busy.add(self)
        idle_threads.run(self._work)
        self._working_in = os.getpid()

    def _work(self) -> None:
        while job := self._next():
            with suppress(BaseException):  # it may end itself, such as by sys.exit, and not the jobs after it
                job()
            del job  # with all that it refers to, before this thread waits for further work
            with self._changed:
                self._jobs.popleft()
                self._done += 1
                self._changed.notify_all()

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            if self._jobs:
                return self._jobs[0]
            self._working_in = None
            _busy.discard(self)
            return None


@atexit.register
def _finish() -> None:
    """Give waiting jobs a last chance; a memory that hangs does not keep the process alive."""
    end = time.monotonic() + AT_EXIT
    for backlog in list(_busy):
        backlog.flush(max(0.0, end - time.monotonic()))
