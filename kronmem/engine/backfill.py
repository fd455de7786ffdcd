"""Gives memories of an older schema their new index entries, in the background, one process at a time.

Each batch is one transaction that also renews the lease, so a kill at any point costs at most one batch, and whoever
comes after the lease has run out goes on. Memories that are not filled yet are found by their words meanwhile.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import replace

from kronmem.engine.postings import indexed
from kronmem.engine.store import Reader, Store, Writer
from kronmem.errors import KronmemError

BATCH = 50
"""Memories a transaction: at a millisecond each, nobody who wants to write waits for long."""
LEASE = 30.0
"""Seconds after which a process that has not renewed its lease is taken for dead: six batches at their longest."""
_WAIT = 5.0
"""Seconds that a batch waits for other writers before it tries again."""
_log = logging.getLogger("kronmem.engine")


class Filler:
    """Fills one store. Starts its thread only when there is something to fill."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._holder = ""
        self._pid = 0
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def look(self, rows: Reader) -> None:
        """Begin to fill if there is anything to fill; asked at the first transaction of a process."""
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        if not rows.is_filled():
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
        left, rest = True, 0.0
        while left and not self._closing.wait(rest):
            began = time.monotonic()
            try:
                left = self._batch()
                rest = min(time.monotonic() - began, 1.0)  # as long as it worked: half of the time is the callers'
            except KronmemError as error:
                _log.warning("indexing in the background is delayed (%s)", error)
                rest = 1.0
        if not left:
            _log.info("every memory is indexed")

    def _batch(self) -> bool:
        """Fill some memories; False when there are none left. While somebody else holds the lease, only wait."""
        with self._store.write(_WAIT) as rows:
            if not self._holds_lease(rows):
                return not rows.is_filled()
            found = rows.unfilled(BATCH)
            for space, row in found:
                entries = indexed(row)
                rows.revise(space, row, replace(row, passages=len(entries.lengths)), entries)
            return bool(found)

    def _holds_lease(self, rows: Writer) -> bool:
        holder, _, until = (rows.setting("filling") or "").partition(" ")
        now = time.time()
        # A lease that would last longer than any is of a clock that has been set back since.
        with suppress(ValueError):
            if holder != self._holder and now < float(until or 0) <= now + LEASE:
                return False
        rows.set_setting("filling", f"{self._holder} {now + LEASE}")
        return True
