"""Retry-After of a reply, in seconds from its arrival, and the service's own time. Pure."""

from __future__ import annotations

from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kronmem.core.wire import Reply


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
    return _date(reply.headers.get("date", "")) or datetime.fromtimestamp(reply.at, timezone.utc)


def _date(value: str) -> datetime | None:
    try:
        read = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return read if read.tzinfo else read.replace(tzinfo=timezone.utc)
