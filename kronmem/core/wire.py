"""The wire types: a `Request` out, a `Reply` back, a `Call` that turns one into the other; and the steps of a flow.

Pure data. A `Request` is ready to send: its path is quoted and its body encoded, once, however often it is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, NoReturn, Protocol, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from kronmem.api.rules import Validator
from kronmem.errors import NotFoundError, ReplyError

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """One HTTP-shaped request. `path` starts with a slash; `timeout` is the rest of the call's deadline."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    timeout: float = 10.0


UNAVAILABLE = "kronmem-unavailable"
"""The header of a 503 that says what is away: `store`, or `agent` when only the node of the database that some agents
live on is. The request is not to blame."""


@dataclass(frozen=True)
class Reply:
    """One HTTP-shaped reply. Header names are lower case; `at` is the wall-clock second it arrived."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: dict[str, str]())
    at: float = 0.0
    lost: bool = False
    """It answers the last of several attempts, and the service may have carried out one before it."""
    agent_ref: str = ""
    """The agent in the path that it answers; empty: unknown."""


class Repeat(Enum):
    """Whether a call is sent again after an attempt that failed."""

    FREELY = "as often as the client retries"
    UNTIL_GONE = "the same; 404 after an attempt whose reply was lost means that this attempt did it"
    UNLESS_LOST = "not after an attempt whose reply was lost"
    NEVER = "one attempt"


def no_agent() -> NoReturn:
    """The answer about an agent that the service does not have, unless a call has a better one."""
    raise NotFoundError("Agent not found", status=404)


@dataclass(frozen=True)
class Call(Generic[T]):
    """One question to the service and how its answer is read.

    `{agent}` in `path` is filled in by the exchange, which knows under which id the service keeps the agent.
    """

    name: str
    """Also that of the ability that it needs, where not every service has it."""
    method: str
    path: str
    parse: Callable[[Reply], T]
    agent_id: str | None = None
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    unknown: Callable[[], T] | None = no_agent
    """The answer (or the error it raises) when the service has no such agent; None: a write, which makes the agent."""
    repeat: Repeat = Repeat.FREELY
    subject: object = None
    """The checked arguments that it was made of, for its span."""
    vendor: object = None
    """The checked arguments by which the vendor's own server is asked in its own way; None: asked as any other."""
    older: Callable[[], tuple[str, bytes]] | None = None
    """Makes path and body for a service that lacks the options of it; None: every service takes it as it is."""

    def request(self, timeout: float, agent_ref: str | None = None) -> Request:
        """Make the request, with the agent under the id the service knows."""
        path = self.path.replace("{agent}", quote(agent_ref, safe="")) if agent_ref else self.path
        return Request(self.method, path, self.query, self.body, self.headers, timeout)


def parse_json(model: Validator[T], reply: Reply) -> T:
    """Read the body as `model`; anything that does not fit is a `ReplyError` that does not echo the body."""
    try:
        return model.json(reply.body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise ReplyError(f"the service's answer cannot be read: {where}: {first['msg']}") from None


# The steps that a flow yields: a request to send, a pause, or a piece of local work. Pure data; the drivers do it.


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

    def now(self) -> float:
        """Seconds, by the clock of the deadline."""
        ...

    def left(self) -> float:
        """Seconds until the deadline of the call."""
        ...

    def ask(self, call: Call[T], keep: float = 0.0, /) -> Flow[T]:
        """Carry another call through; `keep` seconds before the deadline it gives up."""
        ...

    def send(self, call: Call[T], /) -> Flow[Reply]:
        """Send another call with retries; the reply as it comes."""
        ...
