"""Deletes memories that have expired, and old receipts and traces of erasures, of agents that nobody writes to.

Finding them is a question to every node of a distributed database: it is asked once a minute and after a call has been
committed, so that no call depends on it. Each space is then swept in a transaction of its own.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from kronmem.engine.postgres.pool import PostgresPool
from kronmem.engine.postgres.space_keys import SpaceKey
from kronmem.engine.postgres.writing import PostgresWriter, Sweep
from kronmem.errors import DeadlineError, KronmemError

EVERY = 60.0
"""Seconds between two passes of a process: no read shows what has expired, so only its place waits a minute."""
_SPACES = 64
"""Spaces a pass and kind: the write that sweeps waits for a bounded number; when there are more, the next goes on."""
_ROWS = 4096
"""Old rows among which these spaces are looked for: millions are not all read. One agent may fill such a look; the next
one is for the others."""
_BOUND = 256
"""Memories a space at most: a millisecond each, for which its writers wait."""
_TIME = 1.0
"""Seconds that a pass may take of the write that pays for it."""
_LOOK = "BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY"
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
_DUE = tuple(
    f"""SELECT space, count(*) FROM (SELECT space FROM kronmem.{old} AND space <> ALL(%s::bigint[]) LIMIT %s) AS due
        GROUP BY space LIMIT {_SPACES}"""
    for old in ("memories WHERE expires <= %s", "receipts WHERE at < %s", "erased WHERE at < %s")
)
_NOBODY = tuple(list[int]() for _ in _DUE)
_log = logging.getLogger("kronmem.engine")


@dataclass
class Sweeper:
    """Sweeps one database now and then."""

    pool: PostgresPool
    key_of: SpaceKey
    swept_at: float = -math.inf
    """By the engine's clock, which may be set back."""
    swept: int = 0
    """Memories that were swept and not yet reported."""
    rows: int = _ROWS
    bound: int = _BOUND
    """Memories a space, now: half as many after a sweep whose time was up, since it was rolled back."""
    seen: Sequence[list[int]] = _NOBODY
    """Of each kind, the spaces that filled the last looks: the next one is for those behind them."""

    def run(self, sweep: Sweep, left: float) -> None:
        """Sweep if it is time to, within the seconds that are left to the write that pays for it.

        Failures are for the next pass: the write itself is done.
        """
        if left <= 0 or self.swept_at <= sweep.now < self.swept_at + EVERY:
            return
        self.swept_at = sweep.now
        began = time.monotonic()
        try:
            found = self._due(sweep, min(_TIME, left))
        except KronmemError as error:
            self.seen = _NOBODY
            _log.debug("nothing is swept for now (%s)", error)
            return
        for space in _fewest_first(found):
            if (passed := time.monotonic() - began) < min(_TIME, left):
                with suppress(KronmemError):
                    self._sweep(space, sweep, min(_TIME, left - passed))
        if any(self.seen) or any(len(spaces) >= _SPACES for spaces in found):
            self.swept_at = -math.inf

    def _due(self, sweep: Sweep, timeout: float) -> list[dict[int, int]]:
        """The spaces in which there is something of each kind to delete, and how many rows of it were seen."""
        times = (sweep.now, sweep.receipts_before, sweep.receipts_before)
        asked = list(zip(_DUE, times, self.seen, strict=True))
        with self.pool.transaction(_LOOK, timeout, wait=False) as session:
            found = [dict(session.ask(sql, (at, seen, self.rows))) for sql, at, seen in asked]
        looks = zip(self.seen, found, strict=True)
        self.seen = [[*seen, *spaces] if sum(spaces.values()) >= self.rows else [] for seen, spaces in looks]
        return found

    def _sweep(self, space: int, sweep: Sweep, timeout: float) -> None:
        bound = self.bound
        try:
            with self.pool.transaction(_WRITE, timeout, wait=False) as session:
                rows = PostgresWriter(session, self.key_of)
                rows.sweep_space(space, sweep, bound)
                rows.finish()
        except DeadlineError:
            self.bound = max(bound // 2, 1)
            raise
        if rows.swept >= bound:
            self.bound = min(bound + bound // 8 + 1, _BOUND)
        self.swept += rows.swept


def _fewest_first(found: Sequence[dict[int, int]]) -> list[int]:
    """A space that takes all the time, in vain, does not keep the others waiting."""
    rows = Counter[int]()
    for spaces in found:
        rows.update(spaces)
    return sorted(rows, key=lambda space: (rows[space], space))
