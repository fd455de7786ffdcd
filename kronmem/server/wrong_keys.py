"""Counts wrong keys by the address they come from. Right keys are never counted and reset nothing: many users may share
an address."""

from __future__ import annotations

import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable

ALLOWED = 20
"""Wrong keys in a window before an address gets 429: more than a program with a mistyped key tries by itself."""
WINDOW = 60.0
"""Seconds after which an address begins anew: 20 guesses a minute find no random key."""
_ADDRESSES = 10_000
"""How many addresses are remembered, in a few megabytes; the one that was counted first goes first."""
_log = logging.getLogger("kronmem.server")


class WrongKeys:
    """How many wrong keys each address has tried of late."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._tried: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """By address: how many, and since when."""

    def count(self, address: str) -> int:
        """Note a wrong key; the seconds that the address has to wait, 0 while it may go on."""
        now = self._now()
        tried, since = self._tried.get(address, (0, now))
        if now - since >= WINDOW:
            tried, since = 0, now
        self._tried[address] = (tried + 1, since)
        if len(self._tried) > _ADDRESSES:
            self._tried.popitem(last=False)
        if tried == ALLOWED:
            _log.warning("%s tried %d wrong keys within a minute and gets 429 now", address, tried)
        return 0 if tried < ALLOWED else math.ceil(since + WINDOW - now)
