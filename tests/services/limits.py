"""What a plan of the recorded server allows: agents, memories a month, requests a minute and a day."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from tests.services.http import Refused
from tests.services.rows import Clock

# Agents, memories a month. A plan that is not here counts as free.
PLANS: dict[str, tuple[int | None, int | None]] = {
    "free": (1, 100),
    "demo": (1, 100),
    "builder": (5, 20_000),
    "startup": (15, 75_000),
    "business": (50, 500_000),
    "enterprise": (None, None),
}
A_MINUTE = 60
A_DAY = {"recall": 200, "inject_context": 200, "remember": 100}
SAID = {"recall": "recall", "inject_context": "inject", "remember": "remember"}


@dataclass
class Limits:
    """Counts the requests of all keys. `minute` and `day` stand in for the plan's rates; `minute` counts recalls only."""

    plan: str
    clock: Clock
    minute: int | None = None
    day: Mapping[str, int] | None = None
    month: int | None = None
    stored: int = 0
    _moments: list[datetime] = field(default_factory=list)
    _days: Counter[tuple[date, str]] = field(default_factory=Counter)

    @property
    def agents(self) -> int | None:
        """How many agents a key may have."""
        return PLANS.get(self.plan, PLANS["free"])[0]

    def admit(self, handler: str) -> None:
        """Refuse a request beyond the minute or the day, else count it."""
        now = self.clock()
        self._check_minute(now)
        if handler not in SAID:
            return
        self._check_day(handler, now)
        if self.minute is None or handler == "recall":
            self._moments.append(now)
        self._days[now.date(), handler] += 1

    def _check_minute(self, now: datetime) -> None:
        limit = self._per_minute()
        self._moments = [moment for moment in self._moments if moment > now - timedelta(minutes=1)]
        if limit is None or len(self._moments) < limit:
            return
        message = f"Rate limit exceeded ({limit} req/min for {self.plan} plan). Upgrade for higher limits."
        raise Refused(429, message, {"retry-after": "60", "x-ratelimit-remaining": "0"})

    def _per_minute(self) -> int | None:
        return self.minute if self.minute is not None or self.plan == "enterprise" else A_MINUTE

    def _check_day(self, handler: str, now: datetime) -> None:
        limits = self.day if self.day is not None else {} if self.plan == "enterprise" else A_DAY
        limit, used = limits.get(handler), self._days[now.date(), handler]
        if limit is None or used < limit:
            return
        word = SAID[handler]
        message = f"Daily {word} limit reached ({limit}/day on {self.plan.upper()} plan). Resets at midnight UTC."
        detail = {"error": "daily_quota_exceeded", "message": message, "current": used, "limit": limit}
        day = {"x-ratelimit-limit-day": str(limit), "x-ratelimit-used-day": str(used)}
        more = {"plan": self.plan, "upgrade_url": "https://kronvex.io/dashboard#billing"}
        headers = {"retry-after": "86400", **day, "x-ratelimit-reset-day": "midnight UTC"}
        raise Refused(429, {**detail, **more}, headers)

    def headers(self) -> dict[str, str]:
        """What an answer says of the minute: always that one request of it is used."""
        limit = self._per_minute()
        if limit is None:
            return {}
        reset = math.ceil((self.clock() + timedelta(minutes=1)).timestamp())
        return {"x-ratelimit-remaining": str(limit - 1), "x-ratelimit-reset": str(reset)}

    def check_agents(self, used: int) -> None:
        """Refuse an agent beyond the plan."""
        if self.agents is not None and used >= self.agents:
            message = f"Agent limit of {self.agents} reached for plan '{self.plan}'. Upgrade to add more agents."
            raise Refused(402, self._full("agent_limit_reached", message, {"agents_used": used, "limit": self.agents}))

    def check_month(self) -> None:
        """Refuse a store beyond the month, a folded one too."""
        limit = self.month if self.month is not None else PLANS.get(self.plan, PLANS["free"])[1]
        if limit is not None and self.stored >= limit:
            message = f"Monthly memory limit of {limit} reached for plan '{self.plan}'. "
            message += "Resets at next billing cycle or upgrade to continue."
            numbers = {"memories_used_this_cycle": self.stored, "limit": limit}
            raise Refused(402, self._full("memory_limit_reached", message, numbers))

    def _full(self, error: str, message: str, numbers: dict[str, int]) -> dict[str, Any]:
        more = {"plan": self.plan, "upgrade_url": "https://kronvex.io/#pricing"}
        return {"error": error, "message": message, **numbers, **more}
