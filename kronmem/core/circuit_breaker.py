"""The circuit breaker of a service: while it keeps failing, calls fail at once. Pure: the time is passed in."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from kronmem.errors import UnavailableError

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
        """A request was given up half-way: a probe that nobody waits for must not block the next one."""
        if self.state == "half-open":
            self._become("open")

    def _become(self, state: str) -> None:
        if state != self.state:
            self.state = state
            self.on_change(state)
