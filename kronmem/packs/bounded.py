"""Keeps a memory that fails or hangs from taking the agent with it: bounded calls, one log line a change of state."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

from kronmem.errors import DeadlineError

T = TypeVar("T")

log = logging.getLogger("kronmem")

# A call that hangs keeps its thread until it ends. This many may hang before further ones are not even begun.
_room = threading.BoundedSemaphore(32)


def bounded(work: Callable[[], T], timeout: float) -> T:
    """Run `work` in a thread and wait at most `timeout` seconds; then `DeadlineError`, and it goes on unheard."""
    if not _room.acquire(blocking=False):
        raise DeadlineError("too many memory calls hang already", sent=False)
    answers: SimpleQueue[tuple[bool, T | BaseException]] = SimpleQueue()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            answers.put((True, context.run(work)))
        except BaseException as error:  # noqa: BLE001 -- handed to the waiting thread, whatever it is
            answers.put((False, error))
        finally:
            _room.release()

    threading.Thread(target=run, name="kronmem-bounded", daemon=True).start()
    try:
        done, answer = answers.get(timeout=timeout)
    except Empty:
        raise DeadlineError(f"memory did not answer within {timeout} s") from None
    if done:
        return answer  # type: ignore[return-value] # the flag says which of the two it is
    raise answer  # type: ignore[misc] # as above


class Outage:
    """Says once that memory is out and once that it is back; never what was remembered or asked."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._out = False

    def begins(self, error: BaseException) -> None:
        """A call failed."""
        if not self._out:
            self._out = True
            log.warning("%s is unavailable, going on without it (%s: %s)", self._what, type(error).__name__, error)

    def ends(self) -> None:
        """A call succeeded."""
        if self._out:
            self._out = False
            log.warning("%s is available again", self._what)
