"""Retry-After of a reply, in seconds from its arrival. Pure."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from kronmem.core.wire import Reply


def retry_after(reply: Reply, said: object = None) -> float | None:
    """Seconds to wait, from either form of Retry-After; garbage and negative values count as absent.

    `said` is the detail that the service gave for its refusal.
    """
    value = reply.headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = _seconds_until(value, reply)
    if reply.status == 429 and _is_daily_quota(said):
        seconds = min(seconds, 86_400.0 - _clock(reply) % 86_400.0)
    return seconds if 0 <= seconds < float("inf") else None


def _is_daily_quota(said: object) -> bool:
    """Kronvex names 86400 seconds at any time of the day, but counts anew at midnight UTC."""
    return isinstance(said, dict) and cast("dict[str, object]", said).get("error") == "daily_quota_exceeded"


def _seconds_until(date: str, reply: Reply) -> float:
    try:
        return parsedate_to_datetime(date).timestamp() - _clock(reply)
    except (ValueError, TypeError, OverflowError):
        return -1.0


def _clock(reply: Reply) -> float:
    """The service's own time, by which its dates were written; without a Date, the time of arrival."""
    try:
        return parsedate_to_datetime(reply.headers.get("date", "")).timestamp()
    except (ValueError, TypeError, OverflowError):
        return reply.at
