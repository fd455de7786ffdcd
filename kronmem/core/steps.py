"""The steps that a flow yields: a request to send, a pause, or a piece of local work. Pure data; the drivers do it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from kronmem.core.wire import Reply, Request

if TYPE_CHECKING:
    from kronmem.core.wire import Call

T = TypeVar("T")


@dataclass(frozen=True)
class Event:
    """Something worth noting in the trace of a call: a retry, memories that had to be queued. Holds no text."""

    name: str
    attributes: Mapping[str, str | int | float] = field(default_factory=lambda: dict[str, str | int | float]())


@dataclass(frozen=True)
class Pause:
    """Sleep this long, then go on."""

    seconds: float
    event: Event | None = None


@dataclass(frozen=True)
class Local:
    """Do this piece of blocking work on this machine, then go on; an awaiting driver does it in a thread."""

    work: Callable[[], None]
    event: Event | None = None


Step = Request | Pause | Local
Flow = Generator[Step, Reply, T]


def local(work: Callable[[], T], event: Event | None = None) -> Flow[T]:
    """A flow that does `work` and returns its answer."""
    answers: list[T] = []
    yield Local(lambda: answers.append(work()), event)
    return answers[0]


class Asker(Protocol):
    """The exchange around a call: further calls within the same deadline."""

    def left(self) -> float:
        """Seconds until the deadline of the call."""
        ...

    def ask(self, call: Call[T], keep: float = 0.0, /) -> Flow[T]:
        """Carry another call through; `keep` seconds before the deadline it gives up."""
        ...

    def send(self, call: Call[T], /) -> Flow[Reply]:
        """Send another call with retries; the reply as it comes."""
        ...
