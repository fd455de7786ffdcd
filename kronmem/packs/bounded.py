"""Calls that end by a deadline, even when the memory behind them hangs."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Awaitable, Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

import anyio

from kronmem.errors import DeadlineError
from kronmem.packs.log_once import LogOnce

T = TypeVar("T")

# A call that hangs keeps its thread until it ends. This many may hang before further ones are not even begun: about
# as many as one process has chats under way, and few enough that their stacks do not matter.
MAX_HANGING = 32
_room = threading.BoundedSemaphore(MAX_HANGING)


def bounded(work: Callable[[], T], timeout: float) -> T:
    """Run `work` in a thread and wait at most `timeout` seconds; then `DeadlineError`, and its result is dropped."""
    if not _room.acquire(blocking=False):
        raise DeadlineError("too many memory calls hang already", sent=False)
    answers: SimpleQueue[tuple[bool, T | BaseException]] = SimpleQueue()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            answers.put((True, context.run(work)))
        except BaseException as error:  # noqa: BLE001 -- raised in the waiting thread
            answers.put((False, error))
        finally:
            _room.release()

    threading.Thread(target=run, name="kronmem-bounded", daemon=True).start()
    try:
        done, answer = answers.get(timeout=timeout)
    except Empty:
        raise _late(timeout) from None
    if done:
        return answer  # type: ignore[return-value] # the flag says which of the two it is
    raise answer  # type: ignore[misc] # as above


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


def _late(timeout: float) -> DeadlineError:
    return DeadlineError(f"memory did not answer within {timeout} s")
