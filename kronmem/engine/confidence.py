"""How sure a hit is: its similarity, its recency and how often it was recalled. Pure."""

from __future__ import annotations

import math

_INFLECTION = {
    "fact": 180.0,
    "semantic": 180.0,
    "procedural": 90.0,
    "preference": 60.0,
    "episodic": 14.0,
    "context": 3.0,
}
"""In days, by type: the numbers of Kronvex's server, so that a confidence means the same there and here."""
_OTHER_INFLECTION = 30.0
"""The one number that Kronvex documents."""


def confidence(similarity: float, age_days: float, memory_type: str, access_count: int) -> float:
    """Kronvex' formula: relevance, freshness by type, and use. `access_count` counts this recall."""
    inflection = _INFLECTION.get(memory_type, _OTHER_INFLECTION)
    recency = 1 / (1 + math.exp(min(0.05 * (age_days - inflection), 700.0)))
    frequency = min(math.log(1 + access_count) / math.log(11), 1.0)
    return 0.6 * similarity + 0.2 * recency + 0.2 * frequency
