"""Retry-After of a reply, in seconds from its arrival, and the service's own time. Pure."""

from __future__ import annotations

from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from kronmem.core.wire import Reply


def retry_after(reply: Reply, said: object = None) -> float | None:
    """Seconds to wait, from either form of Retry-After; garbage and negative values count as absent.

    `said` is the detail that the service gave for its refusal.
    """
    value = reply.headers.get("retry-after", "").strip()
    if reply.status == 429 and _is_daily_quota(said):
        # Kronvex names 86400 seconds at any time of the day, but counts anew at midnight UTC.
        return 86_400.0 - clock(reply).timestamp() % 86_400.0
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
    return _date(reply.headers.get("date", "")) or datetime.fromtimestamp(reply.at, timezone.utc)


def _is_daily_quota(said: object) -> bool:
    return isinstance(said, dict) and cast("dict[str, object]", said).get("error") == "daily_quota_exceeded"


def _date(value: str) -> datetime | None:
    try:
        read = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return read if read.tzinfo else read.replace(tzinfo=timezone.utc)
