"""Gives memories of an older schema their new index entries, in the background, one process at a time.

Each batch is one transaction that also renews the lease, so a kill at any point costs no more than the batches of a
moment, and whoever comes after the lease has run out goes on. No batch waits for the disk: one that a power failure
undoes is filled again. Memories that are not filled yet are found by their words meanwhile.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from contextlib import suppress

from kronmem.engine.postings import indexed
from kronmem.engine.store import Reader, Store, Writer
from kronmem.errors import KronmemError, StoreError

BATCH = 50
"""Memories a transaction: at a fifth of a millisecond each, nobody who wants to write waits for long."""
BATCH_BESIDE_CALLERS = 10
"""The same while this process is called: a caller who writes waits for such a transaction."""
QUIET = 1.0
"""Seconds without a call after which the callers of this process are taken to be away."""
LEASE = 30.0
"""Seconds after which a process that has not renewed its lease is taken for dead: six batches at their longest."""
_WAIT = 5.0
"""Seconds that a batch waits for other writers before it tries again."""
_RETRY = 1.0
"""Seconds before another attempt after an error, and before another look at a lease that somebody else holds."""
_LONGEST_RETRY = 60.0
"""The same after many errors in a row: somebody who may only read waits for others to fill."""
_log = logging.getLogger("kronmem.engine")


class Filler:
    """Fills one store. Starts its thread only when there is something to fill."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._holder = ""
        self._pid = 0
        self._called = 0.0
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def look(self, rows: Reader) -> None:
        """Note that somebody calls; at the first transaction of a process begin to fill if anything is left."""
        self._called = time.monotonic()
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        try:
            left = not rows.is_filled()
        except BaseException:
            self._pid = 0  # the next transaction looks again
            raise
        if left:
            self._holder = uuid.uuid4().hex
            self._closing = threading.Event()
            self._thread = threading.Thread(target=self._work, name="kronmem-fill", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop after the batch at hand; the rest is filled when the database is opened again."""
        self._closing.set()
        if self._thread is not None and self._pid == os.getpid():
            self._thread.join(timeout=10.0)

    def _work(self) -> None:
        _log.info("indexing memories of an older kronmem in the background; they are found by their words meanwhile")
        left, rest, failures = True, 0.0, 0
        while left and not self._closing.wait(rest):
            try:
                left, rest = self._batch()
                failures = 0
            except KronmemError as error:
                failures += 1
                if failures == 1:
                    _log.warning("indexing in the background is delayed (%s)", error)
                left, rest = self._after(error, failures)
        with suppress(KronmemError), self._store.note(_RETRY) as rows:
            self._end_lease(rows)
        if not left:
            _log.info("every memory is indexed")

    def _batch(self) -> tuple[bool, float]:
        """Fill some memories; whether some are left, and how long to rest before the next ones."""
        with self._store.note(_WAIT) as rows:
            began = time.monotonic()
            if not self._holds_lease(rows):
                return not rows.is_filled(), _RETRY
            found = rows.unfilled(min(BATCH, BATCH_BESIDE_CALLERS) if self._is_called() else BATCH)
            for space, row in found:
                rows.fill(space, row, indexed(row))
            if not found:  # those that were there a moment ago may have been deleted, and not be all
                return not rows.is_filled(), _RETRY
        return True, self._rest(time.monotonic() - began)

    def _after(self, error: KronmemError, failures: int) -> tuple[bool, float]:
        """What is left to others where this process may not write, and when to look again: less and less often."""
        left = True
        if isinstance(error, StoreError):
            with suppress(KronmemError), self._store.read(_WAIT) as rows:
                left = not rows.is_filled()
        return left, min(_RETRY * 2 ** min(failures - 1, 16), _LONGEST_RETRY)

    def _rest(self, worked: float) -> float:
        """As long as it worked while somebody calls, so that half of the time is theirs; else next to nothing."""
        return min(worked if self._is_called() else worked / 20, _RETRY)

    def _is_called(self) -> bool:
        return time.monotonic() - self._called < QUIET

    def _end_lease(self, rows: Writer) -> None:
        """Let the next process begin at once."""
        if (rows.setting("filling") or "").startswith(f"{self._holder} "):
            rows.set_setting("filling", "")

    def _holds_lease(self, rows: Writer) -> bool:
        holder, _, until = (rows.setting("filling") or "").partition(" ")
        now = time.time()
        # A lease that would last longer than any is of a clock that has been set back since.
        with suppress(ValueError):
            if holder != self._holder and now < float(until or 0) <= now + LEASE:
                return False
        rows.set_setting("filling", f"{self._holder} {now + LEASE}")
        return True
