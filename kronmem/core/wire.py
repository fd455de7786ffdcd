"""The wire types: a `Request` out, a `Reply` back, and a `Call` that turns one into the other.

Pure data. A `Request` is ready to send: its path is quoted and its body encoded, once, however often it is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from kronmem.api.validators import Validator
from kronmem.errors import ReplyError

if TYPE_CHECKING:
    from kronmem.core.steps import Asker, Flow

T = TypeVar("T")

U = TypeVar("U")


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
live on is. Whatever was asked, it is not the request's fault."""


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
    notice: Callable[[str], None] = field(default=lambda _message: None, compare=False, repr=False)
    """Logs what is odd about it."""


@dataclass(frozen=True)
class Call(Generic[T]):
    """One question to the service and how its answer is read.

    `{agent}` in `path` is filled in by the exchange, which knows under which id the service keeps the agent.
    """

    name: str
    method: str
    path: str
    parse: Callable[[Reply], T]
    agent_id: str | None = None
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    creates: bool = False
    """A write: the agent may be created for it. A read never creates anything."""
    unknown: Callable[[], T] | None = None
    """The answer (or the error it raises) when the service has no such agent."""
    gone_is_done: bool = False
    """A delete: 404 after an attempt whose reply was lost means that this attempt did it."""
    vendor_body: Callable[[], bytes] | None = None
    """The body for the vendor's own server, where it differs."""
    mend: Callable[[Reply, Asker], Flow[T]] | None = None
    """Reads a reply of the vendor's own server in place of `parse`, and repairs it by further calls."""

    before: Callable[[Asker], Flow[None]] | None = None
    """Looks at the vendor's own server first, and may refuse the call."""
    attempts: int | None = None
    """How often it may be tried; None: as often as the client retries."""
    subject: object = None
    """The checked arguments that it was made of, for its span."""
    needs: str | None = None
    """The feature of our own service that this call needs, for the error where a service has no such route."""
    drops: str | None = None
    """The arguments that kronmem 0.1 would ignore in silence, for the error where it answers."""
    new_path: str | None = None
    """The path while the service is unknown: one that kronmem 0.1 lacks, so that a write of `drops` cannot happen."""
    mends_outdated: bool = False
    """`mend` serves the replies of kronmem 0.1 too."""
    repeatable: bool = True
    """It may be sent again after an attempt whose reply was lost."""

    def request(
        self, timeout: float, agent_ref: str | None = None, *, vendor: bool = False, probing: bool = False
    ) -> Request:
        """Make the request, with the agent under the id the service knows."""
        path = self.new_path if probing and self.new_path is not None else self.path
        if agent_ref:
            path = path.replace("{agent}", quote(agent_ref, safe=""))
        body = self.vendor_body() if vendor and self.vendor_body is not None else self.body
        return Request(self.method, path, self.query, body, self.headers, timeout)

    def then(self, change: Callable[[T], U]) -> Call[U]:
        """The same call, its answer changed by a pure function."""
        parse, unknown, mend = self.parse, self.unknown, self.mend

        def mended(reply: Reply, asker: Asker) -> Flow[U]:
            return change(parse(reply) if mend is None else (yield from mend(reply, asker)))

        return Call(
            self.name,
            self.method,
            self.path,
            lambda reply: change(parse(reply)),
            self.agent_id,
            self.query,
            self.body,
            self.headers,
            self.creates,
            None if unknown is None else lambda: change(unknown()),
            self.gone_is_done,
            self.vendor_body,
            None if mend is None else mended,
            self.before,
            self.attempts,
            self.subject,
            self.needs,
            self.drops,
            self.new_path,
            self.mends_outdated,
            self.repeatable,
        )


def parse_json(model: Validator[T], reply: Reply) -> T:
    """Read the body as `model`; anything that does not fit is a `ReplyError` that does not echo the body."""
    try:
        return model.json(reply.body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise ReplyError(f"the service's answer cannot be read: {where}: {first['msg']}") from None
