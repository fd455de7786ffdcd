"""How long a claim on a queued memory holds."""

from __future__ import annotations

LEASE = 60.0
"""A claim that is not acknowledged within this time, six default deadlines of a call, belongs to a dead process."""
AHEAD = 5.0
"""A note further in the future than this was made by a clock that has been set back since; NTP corrects less."""
EARLIEST = 1_577_836_800.0
"""The year 2020: a clock that shows an earlier time was not set when it was read."""
