"""Maps a failure to the fate of a queued memory, and decides how long a claim on one holds. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from kronmem.api.rules import FORGOTTEN
from kronmem.core.policy import unheard
from kronmem.errors import (
    ConfigError,
    ConflictError,
    InvalidInputError,
    KronmemError,
    ReplyError,
    ServerError,
    StatusError,
    TransportError,
    UnsupportedError,
)

DAY = 86_400.0
"""No Retry-After counts for longer: Kronvex's own longest is a day, and a queue that sleeps for years is lost."""
LONGEST_BACKOFF = 300.0
"""Seconds between two tries of a lasting outage: its end goes unnoticed for no longer."""
TRIES = 3
"""A row that got 5xx twice while the service answered something else is suspect; it gets one more try."""
_ABOUT_TIME = frozenset({408, 425, 429})
"""4xx that say "later", not "never"."""


@dataclass(frozen=True)
class Delay:
    """How long a row, or the whole lane, is paused, in seconds."""

    backoff: float = 0.0
    asked: float = 0.0
    """Named by the service for this row."""
    lane: float = 0.0
    """Named by the service for everything under this key."""


def is_outage(error: KronmemError) -> bool:
    """Will the same memory be taken later? An unreadable answer is no answer; the id makes asking again safe."""
    status = _status(error)
    return isinstance(error, (TransportError, ReplyError)) or status >= 500 or status in _ABOUT_TIME


def stops_the_lane(error: KronmemError) -> bool:
    """Is it about the key, the plan or the url, so that every other row would fare the same?"""
    about_all = isinstance(error, ConfigError) and not isinstance(error, UnsupportedError)
    return _status(error) in (401, 402, 403) or 300 <= _status(error) < 400 or about_all


def is_done(error: KronmemError) -> bool:
    """Was the memory stored and forgotten since? It must not come back."""
    return isinstance(error, ConflictError) and error.message == FORGOTTEN


def is_refusal(error: KronmemError) -> bool:
    """Does it name this one request, for good?"""
    return isinstance(error, (InvalidInputError, UnsupportedError)) or (
        400 <= _status(error) < 500 and not is_outage(error) and not stops_the_lane(error)
    )


def may_be_the_row(error: KronmemError) -> bool:
    """Did the service answer, but not for this row? It may be the row's fault, or an outage it does not tell of."""
    says_so = isinstance(error, ServerError) and error.outage
    return not says_so and (_status(error) >= 500 or isinstance(error, ReplyError))


def may_be_stored(error: KronmemError) -> bool:
    """Can the service have stored it although the call failed? A service that answers "later" has stored nothing."""
    return unheard(error) or isinstance(error, ReplyError) or (_status(error) >= 500 and _status(error) != 503)


def delay(error: KronmemError, attempts: int, jitter: float) -> Delay:
    """When to come back: after a backoff that doubles (`jitter` from 0.5 to 1 of it), never before the named time."""
    backoff = jitter * min(LONGEST_BACKOFF, 2.0 ** min(attempts, 16))
    asked = min(retry_after(error), DAY)
    if asked and _status(error) == 429:  # a limit of the key: the other agents' rows would fare the same
        return Delay(lane=asked)
    return Delay(backoff, asked)


def retry_after(error: KronmemError) -> float:
    """The seconds that the service named, uncapped; 0 when it named none."""
    return (error.retry_after or 0.0) if isinstance(error, StatusError) else 0.0


def _status(error: KronmemError) -> int:
    return error.status if isinstance(error, StatusError) else 0


# How long a claim on a queued memory holds.

LEASE = 60.0
"""A claim that is not acknowledged within this time, six default deadlines of a call, belongs to a dead process."""
AHEAD = 5.0
"""A note further in the future than this was made by a clock that has been set back since; NTP corrects less."""
EARLIEST = 1_577_836_800.0
"""The year 2020: a clock that shows an earlier time was not set when it was read."""
