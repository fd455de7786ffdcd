"""What a Kronvex stand-in keeps, and its stand-in for meaning: shared words."""

from __future__ import annotations

import math
import re
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

Clock = Callable[[], datetime]

INFLECTION = {"fact": 180, "semantic": 180, "procedural": 90, "preference": 60, "episodic": 14, "context": 3}
NO_ENTITY = frozenset(
    (
        "The",
        "This",
        "That",
        "These",
        "Those",
        "What",
        "Who",
        "Where",
        "When",
        "Which",
        "Why",
        "How",
        "Does",
        "Did",
        "User",
    )
)


@dataclass
class Agent:
    """An agent and its rows, oldest first."""

    name: str
    owner: str
    created_at: datetime
    description: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    rows: list[Row] = field(default_factory=list)

    def kept(self) -> list[Row]:
        """The rows not deleted, expired ones included."""
        return [row for row in self.rows if not row.deleted]

    def live(self, now: datetime) -> list[Row]:
        """The rows neither deleted nor expired."""
        return [row for row in self.kept() if row.expires_at is None or row.expires_at > now]

    def json(self) -> dict[str, Any]:
        """The agent as the API shows it."""
        return {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "metadata": self.metadata,
            "created_at": stamp(self.created_at),
            "memory_count": len(self.kept()),
        }


@dataclass
class Row:
    """One memory."""

    agent_id: str
    content: str
    created_at: datetime
    memory_type: str = "fact"
    session_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    expires_at: datetime | None = None
    pinned: bool = False
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    access_count: int = 0
    superseded_by: str | None = None
    deleted: bool = False
    consolidation_count: int = 0


def now_utc() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


def stamp(moment: datetime | None) -> str | None:
    """A moment as the API writes it."""
    return None if moment is None else moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def expiry(values: dict[str, Any], now: datetime) -> datetime | None:
    """When a memory ends: pinned beats ttl_seconds, which beats ttl_days."""
    if values.get("pinned"):
        return None
    if values.get("ttl_seconds") is not None:
        return now + timedelta(seconds=values["ttl_seconds"])
    return None if values.get("ttl_days") is None else now + timedelta(days=values["ttl_days"])


@lru_cache(maxsize=4096)
def bag(text: str) -> tuple[Counter[str], int]:
    """The words of a text with their counts, and the square of its length as a vector."""
    counts = Counter(re.findall(r"\w+", text.lower()))
    return counts, sum(count * count for count in counts.values())


def similarity(one: str, other: str) -> float:
    """The cosine of two texts as bags of words, 0 to 1."""
    (left, length_left), (right, length_right) = bag(one), bag(other)
    shared = sum(count * right[word] for word, count in left.items())
    length = math.sqrt(length_left * length_right)
    return round(shared / length, 4) if length else float(one == other)


def entities(text: str) -> set[str]:
    """The words that look like names: three letters or more, the first a capital."""
    return set(re.findall(r"\b[A-Z]\w{2,}", text)) - NO_ENTITY


def confidence(row: Row, close: float, now: datetime) -> float:
    """The documented score of a hit, its access already counted."""
    age = (now - row.created_at).total_seconds() / 86400
    recency = 1 / (1 + math.exp(0.05 * (age - INFLECTION.get(row.memory_type, 30))))
    frequency = min(math.log(1 + row.access_count) / math.log(11), 1)
    return round(0.6 * close + 0.2 * recency + 0.2 * frequency, 4)
