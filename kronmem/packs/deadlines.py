"""Keeps a hook within its deadline: bounded calls, waiting threads, a warm engine, and one log line for an outage."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import TypeVar

import anyio
from anyio import to_thread

from kronmem.agent_memory import AgentMemory
from kronmem.async_agent_memory import AsyncAgentMemory
from kronmem.async_client import AsyncClient
from kronmem.client import Client
from kronmem.core import calls
from kronmem.core.inputs import MemoryFilter
from kronmem.errors import DeadlineError, KronmemError
from kronmem.fork_safety import watch
from kronmem.transport.local import LocalTransport

T = TypeVar("T")

# A call that hangs keeps its thread until it ends. This many may hang before further ones have to wait for room: about
# as many as one process has chats under way, and few enough that their stacks do not matter.
MAX_HANGING = 32


class Room:
    """The room for calls under way."""

    def __init__(self) -> None:
        self.free = threading.BoundedSemaphore(MAX_HANGING)
        watch(self)

    def before_fork(self) -> None:
        """Nothing here has to come to rest."""

    def after_fork(self, *, child: bool) -> None:
        """The calls that hang are the parent's."""
        if child:
            self.free = threading.BoundedSemaphore(MAX_HANGING)


_room = Room()


def bounded(work: Callable[[], T], timeout: float) -> T:
    """Run `work` in a thread and wait at most `timeout` seconds; then `DeadlineError`, and its result is dropped."""
    future = _start(work, timeout)
    if not wait([future], timeout).done:
        raise _late(timeout)
    return future.result()


async def bounded_thread(work: Callable[[], T], timeout: float) -> T:
    """The same for asyncio: the event loop goes on meanwhile, and a cancelled caller does not wait for the thread."""
    future = asyncio.wrap_future(_start(work, timeout))
    try:
        done, _ = await asyncio.wait([future], timeout=timeout)
    finally:
        if not future.cancel():  # it is done
            future.exception()  # seen: asyncio logs one, with its message, that a cancelled caller never asks for
    if not done:
        raise _late(timeout)
    return future.result()


async def bounded_async(work: Callable[[], Awaitable[T]], timeout: float) -> T:
    """Await `work` for at most `timeout` seconds; then it is cancelled, and `DeadlineError`."""
    try:
        with anyio.fail_after(timeout):
            return await work()
    except TimeoutError:
        raise _late(timeout) from None


def attempt(work: Callable[[], T], timeout: float, log: LogOnce, otherwise: T) -> T:
    """The result of a bounded call, or `otherwise`: for hooks, which must not raise."""
    with log.swallowing():
        return bounded(work, timeout)
    return otherwise


def _start(work: Callable[[], T], timeout: float) -> Future[T]:
    future: Future[T] = Future()
    end = time.monotonic() + timeout
    context = contextvars.copy_context()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return None  # no caller waits for it any more; from here on none can cancel it, and its result may be set
        room = _room.free
        if not room.acquire(timeout=max(0.0, end - time.monotonic())):
            return future.set_exception(DeadlineError("too many memory calls hang already", sent=False))
        try:
            future.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 -- raised to the one that waits
            future.set_exception(error)
        finally:
            room.release()

    idle_threads.run(run)
    return future


def _late(timeout: float) -> DeadlineError:
    return DeadlineError(f"memory did not answer within {timeout} s")


# Threads that wait for further work: on a busy machine a new one begins milliseconds later than one that wakes up.

MAX_IDLE = 8
"""Threads kept for further work: a turn needs two, one that recalls and one that stores."""
IDLE_SECONDS = 30.0
"""A model may take as long to answer, and then the next turn asks again."""

Work = Callable[[], None]


class IdleThreads:
    """Runs each piece of work at once, in a thread of its own: one that is idle, or a new one."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._seconds, self._lock = idle_seconds, threading.Lock()
        self._idle: list[SimpleQueue[Work]] = []
        watch(self)

    def run(self, work: Work) -> None:
        """Begin this work, which must not raise."""
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = SimpleQueue[Work]()
            threading.Thread(target=self._serve, args=(inbox,), name="kronmem-worker", daemon=True).start()
        inbox.put(work)

    @property
    def idle(self) -> int:
        """How many threads wait for work."""
        return len(self._idle)

    def _serve(self, inbox: SimpleQueue[Work]) -> None:
        inbox.get()()
        while self._rest(inbox):
            pass

    def _rest(self, inbox: SimpleQueue[Work]) -> bool:
        """Wait for work and do it; all that it referred to is free when this thread waits again."""
        with self._lock:
            if len(self._idle) >= MAX_IDLE:
                return False
            self._idle.append(inbox)
        try:
            work = inbox.get(timeout=self._seconds)
        except Empty:
            with self._lock:
                if inbox in self._idle:
                    self._idle.remove(inbox)
                    return False
            work = inbox.get()  # a caller has just chosen this thread
        work()
        return True

    def before_fork(self) -> None:
        """Nothing here has to come to rest."""

    def after_fork(self, *, child: bool) -> None:
        """The child has none of these threads."""
        if child:
            self._lock, self._idle = threading.Lock(), []


idle_threads = IdleThreads()


# LogOnce: one log line when memory fails and one when it is back, so that an outage does not fill a log.

log = logging.getLogger("kronmem")


class LogOnce:
    """Logs each change between working and failing once; never a text that was remembered or asked."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._failing = False

    def failed(self, error: BaseException) -> None:
        """Note a failed call."""
        if not self._failing:
            self._failing = True
            log.warning("%s is unavailable, going on without it (%s)", self._subject, _loggable(error))

    def succeeded(self) -> None:
        """Note a call that worked."""
        if self._failing:
            self._failing = False
            log.warning("%s is available again", self._subject)

    @contextmanager
    def swallowing(self) -> Generator[None]:
        """Log an exception instead of raising it: frameworks let one from a hook end the run. Cancellation goes on."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 -- see above
            self.failed(error)
        else:
            self.succeeded()


def _loggable(error: BaseException) -> str:
    # The message of an error that is not ours may quote a memory.
    name = type(error).__name__
    return f"{name}: {error}" if isinstance(error, KronmemError) else name


# Loads the embedded engine before a deadline begins: the first recall of a process does not spend it on imports.

_ENGINE = "kronmem.engine.sqlite.store"  # the store imports the rest of the engine, or the service below does
_MODULES = (_ENGINE, "kronmem.engine.engine", "kronmem.engine.service")
_warmed: weakref.WeakSet[Client | AsyncClient] = weakref.WeakSet()
_NOBODY = "kronmem-warm-up"
MOST_SECONDS = 60.0
"""For a store of any size: no caller waits for it."""


def is_cold(client: Client | AsyncClient) -> bool:
    """Tell whether a call of this client would have to import the engine first."""
    return client.in_process and any(name not in sys.modules for name in _MODULES)


def load_engine() -> None:
    """Import the engine; takes as long as it takes, and opens nothing."""
    for name in _MODULES:
        import_module(name)


async def load_engine_for(client: Client | AsyncClient) -> None:
    """Import the engine in another thread, if a call of this client would have to import it first."""
    if is_cold(client):
        await to_thread.run_sync(load_engine)


def warm_up(memory: AgentMemory | AsyncAgentMemory) -> None:
    """Open the store and load its index in the background, once for each client. A service is not asked anything.

    For hooks: a constructor and an import do not call it.
    """
    client = memory.client
    if client.in_process and client not in _warmed:
        _warmed.add(client)
        agent_id = memory.agent_id if memory.fixed else _NOBODY
        threading.Thread(target=_warm, args=(client, agent_id), name="kronmem-warm-up", daemon=True).start()


def _warm(client: Client | AsyncClient, agent_id: str) -> None:
    # Past the calls of the client: this one is no user's, so it is not traced, and an AsyncClient has no loop here.
    transport = client._transport  # pyright: ignore[reportPrivateUsage] -- the same engine behind both clients
    asked = calls.recall(agent_id, "warm up", 1, MemoryFilter(), None, most=1, count_access=False)
    with suppress(Exception):  # the first call of the user's will say so
        if isinstance(transport, LocalTransport):
            transport.send(asked.request(MOST_SECONDS, agent_id))
