"""Calls that end by a deadline, even when the memory behind them hangs."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from typing import TypeVar

import anyio

from kronmem.errors import DeadlineError
from kronmem.fork_safety import watch
from kronmem.packs.idle_threads import idle_threads
from kronmem.packs.log_once import LogOnce

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
            return None  # nobody waits for it any more; from here on nobody can cancel it, and its result may be set
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
