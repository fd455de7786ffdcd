"""The policy of a call: typed errors by status, retries, Retry-After, the circuit breaker, versions of the service.

Pure: the time and the chance are passed in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar, cast

from pydantic_core import from_json

from kronmem.core.wire import UNAVAILABLE, Call, Reply
from kronmem.errors import (
    ConfigError,
    KronmemError,
    ServerError,
    StatusError,
    TransportError,
    UnavailableError,
    status_class,
)

T = TypeVar("T")

NO_REASON = "the service gave no readable reason"


def read(call: Call[T], reply: Reply) -> T:
    """Turn a reply into the call's answer, or raise the error that the service meant."""
    if 200 <= reply.status < 300:
        return call.parse(reply)
    raise status_error(reply)


def has_no_route(reply: Reply) -> bool:
    """Does the service not know this path or method at all?"""
    return reply.status == 405 or (reply.status == 404 and detail(reply) in ("Not Found", None))


def status_error(reply: Reply) -> StatusError:
    """Make the typed error for a reply that is not a success."""
    message = _message(reply)
    if 300 <= reply.status < 400:
        message = "the service redirects; redirects are never followed, so correct the url"
    if reply.status == 401:
        message += " Pass the service's key as api_key=, or set KRONMEM_API_KEY; for Kronvex KRONVEX_API_KEY."
    if reply.status == 404 and has_no_route(reply):
        message += ": no kronmem service, or not its root: the url has no path of the API"
    error = status_class(reply.status)(
        message,
        status=reply.status,
        request_id=reply.headers.get("x-request-id"),
        retry_after=retry_after(reply),
    )
    error.unheard = reply.lost
    if isinstance(error, ServerError):
        error.outage = UNAVAILABLE in reply.headers
    return error


def detail(reply: Reply) -> object:
    """The `detail` of an error body, or None when the body is not of that shape."""
    try:
        body: object = from_json(reply.body)
    except ValueError:
        return None
    return cast("dict[str, object]", body).get("detail") if isinstance(body, dict) else None


def _message(reply: Reply) -> str:
    """The service's message in words. The input it echoes is left out: it may hold a secret."""
    problem = detail(reply)
    if isinstance(problem, str):
        return problem[:500]
    if isinstance(problem, dict):
        fields = cast("dict[str, object]", problem)
        return str(fields.get("message") or fields.get("error") or "no message")[:500]
    if isinstance(problem, list):
        return "; ".join(_item(item) for item in cast("list[object]", problem)[:5])[:500] or "no message"
    return NO_REASON


def _item(item: object) -> str:
    if not isinstance(item, dict):
        return "invalid"
    fields = cast("dict[str, object]", item)
    loc = fields.get("loc")
    where = ".".join(str(part) for part in cast("list[object]", loc)) if isinstance(loc, list) else ""
    return f"{where}: {fields.get('msg', 'invalid')}".lstrip(": ")


# Which failures are tried again, how often, and after how long. Pure: chance is passed in.

RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
"""The statuses that mean "later" rather than "never"; a 500 may be a fault that passes."""

LOST = frozenset({502, 504})
"""The statuses of a gateway that received no answer: the service behind it may have carried out the request."""


def unheard(error: KronmemError) -> bool:
    """Whether the service may have carried out the request although no reply came."""
    if isinstance(error, TransportError):
        return error.sent
    return isinstance(error, StatusError) and (error.unheard or error.status in LOST)


@dataclass(frozen=True)
class Retry:
    """How often a call is tried and how long it waits in between (full jitter, doubling up to `longest`).

    With the defaults all attempts fit well into the default deadline of ten seconds.
    """

    attempts: int = 3
    first: float = 0.25
    longest: float = 8.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.first < 0 or self.longest < 0:
            raise ConfigError("Retry needs at least one attempt and waits that are not negative")

    def wait(self, attempt: int, random: Callable[[], float]) -> float:
        """Seconds to wait after attempt number `attempt` (from 1) failed."""
        return random() * min(self.longest, self.first * 2.0 ** (attempt - 1))


@dataclass
class RetryBudget:
    """Bounds the load that retries add to an outage: each costs a token, each success earns a fifth of one.

    In a lasting outage that is ten retries at once and then at most one for every five successes: 20 % more load.
    """

    tokens: float = 10.0
    most: float = 10.0

    def spend(self) -> bool:
        """Take a token if there is one."""
        if self.tokens < 1.0:
            return False
        self.tokens -= 1.0
        return True

    def earn(self) -> None:
        """A success pays a little back."""
        if self.tokens < self.most:
            self.tokens = min(self.most, self.tokens + 0.2)


# The circuit breaker of a service: while it keeps failing, calls fail at once. Pure: the time is passed in.

LONGEST_PAUSE = 30.0
"""Seconds between two probes of a failing service: a restart of it goes unnoticed for no longer."""


@dataclass
class Breaker:
    """Leaves a failing service alone: open after five failures in a row, for 1 s, doubling to 30 s, with one probe."""

    on_change: Callable[[str], None] = lambda state: None
    limit: int = 5
    address: str = "the service"
    """Scheme, host and port, for messages."""
    failures: int = 0
    pause: float = 0.0
    opened_at: float = 0.0
    probed_at: float = 0.0
    state: str = "closed"

    def admit(self, now: float) -> None:
        """Let a request pass or refuse it at once; the first one after the pause is the probe."""
        if self.state == "closed":
            return
        probing = self.state == "half-open"
        left = self.probed_at + LONGEST_PAUSE - now if probing else self.opened_at + self.pause - now
        if left > 0:
            soon = "after the probe under way" if probing else f"in {math.ceil(left)} s"
            message = f"circuit breaker open for {self.address}, next attempt {soon}"
            raise UnavailableError(message, retry_after=0.0 if probing else left)
        self.probed_at = now  # a probe that an exception out of a signal handler swallowed bars others only so long
        self._become("half-open")

    def succeeded(self) -> None:
        """The service answered."""
        self.failures, self.pause = 0, 0.0
        self._become("closed")

    def failed(self, now: float) -> None:
        """The service did not answer, or only with a server error."""
        self.failures += 1
        if self.state == "half-open" or self.failures >= self.limit:
            self.pause = min(LONGEST_PAUSE, self.pause * 2 or 1.0)
            self.opened_at = now
            self._become("open")

    def abandoned(self) -> None:
        """A request was given up half-way: a probe without a waiting caller must not block the next one."""
        if self.state == "half-open":
            self._become("open")

    def _become(self, state: str) -> None:
        if state != self.state:
            self.state = state
            self.on_change(state)


# Retry-After of a reply, in seconds from its arrival, and the service's own time. Pure.


def retry_after(reply: Reply) -> float | None:
    """Seconds to wait, from either form of Retry-After; garbage and negative values count as absent."""
    value = reply.headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        until = _date(value)
        seconds = -1.0 if until is None else (until - clock(reply)).total_seconds()
    return seconds if 0 <= seconds < float("inf") else None


def clock(reply: Reply) -> datetime:
    """The service's own time, by which its dates were written; without a Date, the time of arrival."""
    return _date(reply.headers.get("date", "")) or datetime.fromtimestamp(reply.at, UTC)


def _date(value: str) -> datetime | None:
    try:
        read = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)
