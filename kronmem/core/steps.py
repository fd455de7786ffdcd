"""What a flow yields: a request to send, a pause, or a piece of local work. Pure data; the drivers do it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

from kronmem.core.wire import Reply, Request

T = TypeVar("T")


@dataclass(frozen=True)
class Pause:
    """Sleep this long, then go on."""

    seconds: float


@dataclass(frozen=True)
class Local:
    """Do this piece of blocking work on this machine, then go on; an awaiting driver does it in a thread."""

    work: Callable[[], None]


Step = Request | Pause | Local
Flow = Generator[Step, Reply, T]


def local(work: Callable[[], T]) -> Flow[T]:
    """A flow that does `work` and returns its answer."""
    answers: list[T] = []
    yield Local(lambda: answers.append(work()))
    return answers[0]
