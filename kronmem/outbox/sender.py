"""One client's way to its service, for the rows of its lane."""

from __future__ import annotations

import logging
import math
import random
import secrets
import threading
import time
from dataclasses import dataclass, field, replace

from kronmem import tracing
from kronmem.core import calls, flows
from kronmem.core.abilities import RemoteService
from kronmem.core.bodies import MOST_HITS
from kronmem.core.circuit_breaker import Breaker
from kronmem.core.exchange import Around, Link, exchange
from kronmem.core.retries import Retry
from kronmem.errors import KronmemError, NotFoundError, StatusError
from kronmem.models import Memory
from kronmem.outbox import policy
from kronmem.outbox.lease import EARLIEST
from kronmem.outbox.queue import OutboxFile
from kronmem.outbox.queue_file import Lane
from kronmem.outbox.rows import Waiting
from kronmem.transport.drive import Transport, drive

log = logging.getLogger("kronmem")

PAUSED = 300.0
"""A refused key or a used-up plan is tried again after this time, as an outage is: somebody may have corrected it."""
RESTORE_AGAIN = 5.0
"""Seconds after which restoring is tried again."""


@dataclass(eq=False)
class Sender:
    """Sends and remembers how the service behaves."""

    service: str
    key: str = field(repr=False)
    transport: Transport
    breaker: Breaker
    timeout: float
    remote: RemoteService
    paused_until: float = 0.0
    restore_at: float = 0.0
    """When to restore again the memories that a repair of 0.2 has left deleted."""
    left: bool = False
    told_stranded: bool = False
    """Were rows of this service under another key looked for, and named?"""
    answered_at: float = 0.0
    """When the service last answered anything but an error of its own (monotonic)."""
    failed_at: dict[int, float] = field(default_factory=lambda: dict[int, float]())
    """When it last failed on a row, by the row's number."""
    link: Link = field(init=False)
    _lane: tuple[int, Lane] | None = None
    _restoring: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        # One attempt each, past the client's breaker: the outbox has its own, longer patience.
        patient, once = Breaker(limit=1_000_000_000, address=self.breaker.address), Retry(attempts=1)
        self.link = Link(time.monotonic, random.random, self.remote, once, patient)

    def lane(self, file: OutboxFile) -> Lane:
        """The rows that are this sender's; each file is asked once."""
        number, known = file.number(), self._lane
        if known is None or known[0] != number:
            self._lane = known = number, file.lane(self.service, self.key)
        return known[1]

    @property
    def patience(self) -> float:
        """Seconds for one row: nobody waits for it."""
        return max(self.timeout, self.remote.repair_time)

    def remember(self, row: Waiting, draft: calls.Draft, timeout: float) -> Memory:
        """Send the memory of a row as it is to be stored now, once."""
        flow = exchange(calls.remember(draft), self.link, timeout)
        return drive(tracing.delivered(flow, draft, self.service, row.origin, row.attempts + 1), self.transport)

    def forget(self, agent_id: str, memory_id: str, timeout: float) -> None:
        """Take one memory back at the service; if it is not there, so much the better."""
        try:
            drive(exchange(calls.forget(agent_id, memory_id), self.link, timeout), self.transport)
        except NotFoundError:
            return

    def restore(self, file: OutboxFile, timeout: float) -> None:
        """Restore once the memories that a repair of 0.2 had deleted for a moment when its process ended."""
        if self.left or not self._restoring.acquire(timeout=max(timeout, 0.0)):
            return
        try:
            if time.monotonic() < self.restore_at:
                return
            self.restore_at = time.monotonic() + RESTORE_AGAIN
            around, lane = Around(self.link, time.monotonic() + timeout), self.lane(file)
            for agent_id, memory_id in file.set_aside(lane):
                try:
                    drive(self.remote.vendor.restore(agent_id, memory_id, around), self.transport)
                except KronmemError as error:
                    log.warning("memories that an earlier version has set aside wait to be restored (%s)", error)
                    return
            file.drop_set_aside(lane)
            self.restore_at = math.inf
        finally:
            self._restoring.release()

    def wait(self) -> float:
        """Seconds for which nothing should be sent: the key was refused, or the circuit breaker is open."""
        now = time.monotonic()
        resting = self.breaker.opened_at + self.breaker.pause - now if self.breaker.state == "open" else 0.0
        return max(resting, self.paused_until - now, 0.0)

    def pause(self, error: KronmemError) -> None:
        """Pause the lane until a person has had time to correct the key, the plan or the url."""
        if not self.paused_until:
            what = "refuses everything" if isinstance(error, StatusError) else "cannot be asked"
            log.warning("%s %s; the outbox waits, nothing is lost (%s)", self.service, what, error)
        self.paused_until = time.monotonic() + PAUSED

    def succeeded(self, row: Waiting) -> None:
        """The service took a row."""
        self.breaker.succeeded()
        self.paused_until = 0.0
        self.answered_at = time.monotonic()
        self.failed_at.pop(row.seq, None)

    def suspicion(self, row: Waiting, timeout: float) -> int:
        """How often in a row a service that answers other things has failed on this one, this failure included."""
        before, now = self.failed_at.get(row.seq), time.monotonic()
        self.failed_at[row.seq] = now
        if row.refused == 0:
            return 1
        answered = (before is not None and self.answered_at > before) or self._answers(row.draft.agent_id, timeout)
        return row.refused + 1 if answered else 1

    def _answers(self, agent_id: str, timeout: float) -> bool:
        """Ask for something else: a recall, since a service may be up while its store, or what embeds texts, is not."""
        fresh = f"ping {secrets.token_hex(4)}"
        try:
            question = calls.recall(agent_id, fresh, 1, calls.MemoryFilter(), None, most=MOST_HITS)
            drive(exchange(question, self.link, timeout), self.transport)
        except KronmemError as error:
            # Our own service may have no recall to offer to this key; then its health has to do.
            return not policy.is_outage(error) and self._is_well(timeout)
        return True

    def _is_well(self, timeout: float) -> bool:
        try:
            up = drive(flows.once(calls.health(), timeout), self.transport)
        except KronmemError:
            return False
        return up.service == "kronmem" and up.ok


def aged(row: Waiting, now: float) -> calls.Draft | None:
    """The draft with its age and the rest of its lifetime; None when that has already run out."""
    was_set = row.created >= EARLIEST
    age = max(now - row.created, 0.0) if was_set or now < EARLIEST else 0.0
    draft = replace(row.draft, said_at=row.created if was_set else None, age=round(age, 3))
    ttl = draft.ttl
    if not ttl or draft.pinned:
        return draft
    left = ttl.get("ttl_seconds", ttl.get("ttl_days", 0) * 86_400) - age
    if left <= 0:
        return None
    # A lifetime that has hardly begun stays as it was said; 60 seconds is the least a service takes.
    return draft if age < 60 else replace(draft, ttl={"ttl_seconds": max(60, round(left))})
