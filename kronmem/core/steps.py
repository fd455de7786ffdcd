"""The steps that a flow yields: a request to send, a pause, or a piece of local work. Pure data; the drivers do it.

Beside it the two things that a repair is given: the exchange it is part of, and the journal of its deletes.
"""

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


@dataclass(frozen=True)
class Aside:
    """A memory that a repair deleted for a moment."""

    agent_id: str
    memory_id: str
    number: int = 0
    """Tells the repairs of one process apart: two may find the same row in their way, and each ends its own entry."""
    holder: str = ""
    """The process of the repair; empty: this one."""


class RepairJournal(Protocol):
    """Notes the deletes of a repair, on disk before each delete; a kill half-way is mended from it."""

    def put(self, entry: Aside) -> None:
        """Note an entry; it is on disk when this returns."""
        ...

    def clear(self, entry: Aside) -> bool:
        """Drop an entry when its memory is back or replaced; True: that was forgotten meanwhile."""
        ...

    def take_over(self, left: Aside, entry: Aside) -> bool:
        """Note an unfinished entry as this one of our own; False: somebody else has, or it is done."""
        ...

    def give_back(self, entry: Aside) -> None:
        """Let an entry be unfinished again."""
        ...

    def noted(self, agent_id: str) -> list[Aside]:
        """The entries of an agent, whoever works on them."""
        ...

    def forget(self, entry: Aside) -> bool:
        """Mark the entries of its memory, which must not come back; False: there was nothing to mark."""
        ...

    def is_forgotten(self, entry: Aside) -> bool:
        """Is it marked?"""
        ...

    def unfinished(self) -> list[Aside]:
        """The entries that nobody is working on any more, oldest first."""
        ...


class Asker(Protocol):
    """The exchange around a repair: further calls within the same deadline."""

    @property
    def journal(self) -> RepairJournal | None:
        """Where to note deletes; None without an outbox."""
        ...

    @property
    def known_ids(self) -> dict[str, dict[str, tuple[frozenset[str], int]]]:
        """By agent and row: the ids and a hash of the words of each row that was read for its ids."""
        ...

    @property
    def abandoned(self) -> list[Aside]:
        """The rows that cancelled repairs left deleted: the next call brings them back."""
        ...

    def left(self) -> float:
        """Seconds until the deadline of the call."""
        ...

    def ask(self, call: Call[T], keep: float = 0.0, /) -> Flow[T]:
        """Carry another call through; `keep` seconds before the deadline it gives up."""
        ...
