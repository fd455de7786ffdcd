"""Which failures are tried again, how often, and after how long. Pure: chance is passed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kronmem.errors import ConfigError, KronmemError, StatusError, TransportError

RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
"""The statuses that mean "later" rather than "never"; a 500 may be a fault that passes."""

LOST = frozenset({502, 504})
"""The statuses of a gateway that heard no answer: the service behind it may have done what was asked."""


def unheard(error: KronmemError) -> bool:
    """Whether the service may have done what was asked although nobody heard of it."""
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
