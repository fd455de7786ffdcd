"""The thread that empties an outbox: claim, send, acknowledge; one per file and process, for both shells.

A kill at any point loses nothing: a row leaves the file only after the service has answered, and every attempt
carries the row's id.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kronmem.core import calls, flows
from kronmem.core.exchange import RETRYABLE, Breaker, Link, Retry, exchange
from kronmem.core.names import Names
from kronmem.core.steps import Journal
from kronmem.errors import KronmemError, NotFoundError, ReplyError, StatusError, TransportError
from kronmem.models import Memory
from kronmem.outbox.queue import LEASE, Lane, OutboxFile, Waiting
from kronmem.transport.drive import Transport, drive

log = logging.getLogger("kronmem")

REFUSALS = 20
"""A row that a reachable service failed on so often is buried: it must not block its agent for ever."""
LONGEST_BACKOFF = 300.0
PAUSED = 300.0
"""A refused key is tried again after this time, in case somebody has mended it."""


def step(name: str) -> None:
    """A named point of the protocol, for tests that kill the process there."""


@dataclass(eq=False)
class Sender:
    """One client's way to its service, for the rows of its lane."""

    lane: Lane
    transport: Transport
    breaker: Breaker
    timeout: float
    names: Names = field(default_factory=Names)
    journal: Journal | None = None
    paused_until: float = 0.0
    left: bool = False
    link: Link = field(init=False)

    def __post_init__(self) -> None:
        # One attempt each, past the client's breaker: the outbox has its own, longer patience.
        patient, once = Breaker(limit=1_000_000_000), Retry(attempts=1)
        self.link = Link(time.monotonic, random.random, once, patient, names=self.names, journal=self.journal)

    def remember(self, draft: calls.Draft, timeout: float) -> Memory:
        """Send one memory, once."""
        return drive(exchange(calls.remember(draft), self.link, timeout), self.transport)

    def forget(self, agent_id: str, memory_id: str) -> None:
        """Take one memory back at the service; if it is not there, so much the better."""
        try:
            drive(exchange(calls.forget(agent_id, memory_id), self.link, self.timeout), self.transport)
        except NotFoundError:
            return

    def restore(self) -> None:
        """Bring back what a repair of a killed process has set aside; what cannot be now is tried again later."""
        try:
            drive(flows.recover(self.link, self.timeout), self.transport)
        except KronmemError as error:
            log.warning("memories that were set aside for a moment wait to be restored (%s)", error)

    def wait(self) -> float:
        """Seconds for which nothing should be sent: the key was refused, or the service is left alone."""
        now = time.monotonic()
        resting = self.breaker.opened_at + self.breaker.pause - now if self.breaker.state == "open" else 0.0
        return max(resting, self.paused_until - now, 0.0)


class Delivery:
    """Empties one outbox file for all lanes of this process."""

    def __init__(self, file: OutboxFile) -> None:
        self.file = file
        self.holders = 0
        self._senders: list[Sender] = []
        self._pid = os.getpid()
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def join(self, sender: Sender) -> None:
        """Deliver this client's lane from now on."""
        self._after_fork()
        with self._lock:
            if sender.left:  # closed while another thread was queueing: its row is on disk, for the next process
                return
            if sender not in self._senders:
                self._senders.append(sender)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="kronmem-outbox", daemon=True)
                self._thread.start()
        self._wake.set()

    def leave(self, sender: Sender) -> None:
        """Stop delivering this client's lane; the thread ends with the last one."""
        self._after_fork()
        with self._lock:
            sender.left = True
            self._senders.remove(sender)
            last, thread = not self._senders, self._thread
        self._wake.set()
        if last and thread is not None:
            thread.join()  # whatever is being sent right now is settled first

    def flush(self, sender: Sender, timeout: float, *, patient: bool) -> int:
        """Deliver what can be delivered within `timeout`; the answer is how many rows are left.

        Patient: go on trying while the service is down. Otherwise the first failure ends it.
        """
        self._after_fork()
        ends = time.monotonic() + timeout
        sender.restore()
        rest = 0.02
        while self.file.pending(sender.lane) and (left := ends - time.monotonic()) > 0:
            if not self._turn.acquire(timeout=left):
                break
            try:
                moved = self._some(sender, max(0.05, ends - time.monotonic()), hurry=True)
            finally:
                self._turn.release()
            if not moved:
                if not patient:
                    break
                time.sleep(min(rest, max(0.0, ends - time.monotonic())))
                rest = min(0.5, rest * 2)
        return self.file.pending(sender.lane)

    # ── the thread ───────────────────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while True:
            self._wake.clear()
            with self._lock:
                senders = list(self._senders)
                if not senders:
                    self._thread = None
                    return
            try:
                wait = min(self._serve(sender) for sender in senders)
            except Exception as error:  # noqa: BLE001 -- the thread must outlive a full disk or a damaged file
                log.warning("the outbox cannot be read right now (%s: %s)", type(error).__name__, error)
                wait = 1.0
            if wait > 0:
                self._wake.wait(min(wait, 30.0))

    def _serve(self, sender: Sender) -> float:
        """Deliver some rows; the answer is in how many seconds to look again."""
        if (resting := sender.wait()) > 0:
            return resting
        sender.restore()
        with self._turn:
            moved = self._some(sender, sender.timeout, hurry=False)
        if moved:
            return 0.0
        due = self.file.next_due(sender.lane)
        return 30.0 if due is None else max(due, sender.wait(), 0.05)

    def _some(self, sender: Sender, timeout: float, *, hurry: bool) -> bool:
        """Deliver the oldest due rows of one agent, in order; False when nothing was due or the service failed."""
        rows = self.file.claim(sender.lane, hurry=hurry)
        claimed = time.monotonic()
        for position, row in enumerate(rows):
            step("claimed")
            if time.monotonic() - claimed > LEASE / 3:
                self.file.renew(rows[position:])
                claimed = time.monotonic()
            if not self._deliver(sender, row, min(timeout, LEASE / 3)):
                self.file.release(rows[position + 1 :])
                return False
        return bool(rows)

    def _deliver(self, sender: Sender, row: Waiting, timeout: float) -> bool:
        """Send one row and settle what becomes of it; False when the service should be left alone for a while."""
        draft = _aged(row, time.time())
        if draft is None:
            self.file.drop(row)
            return True
        try:
            stored = sender.remember(draft, timeout)
            step("sent")
            sender.breaker.succeeded()
            sender.paused_until = 0.0
            if row.cancelled or not self.file.done(sender.lane, row, stored.id):
                sender.forget(row.draft.agent_id, stored.id)
                self.file.drop(row)
            step("acknowledged")
        except KronmemError as error:
            return self._settle(sender, row, error)
        return True

    def _settle(self, sender: Sender, row: Waiting, error: KronmemError) -> bool:
        status = error.status if isinstance(error, StatusError) else 0
        if status in (401, 403):
            self._pause(sender, row)
            return False
        if isinstance(error, StatusError) and status not in RETRYABLE:
            log.warning("the service refused a queued memory for good; it is kept as a dead letter (%s)", status)
            self.file.bury(row, str(error))
            return True
        if not isinstance(error, (StatusError, TransportError, ReplyError)):
            raise error
        if not isinstance(error, StatusError) or status >= 500:
            sender.breaker.failed(time.monotonic())
        refused = not isinstance(error, TransportError) and status != 429
        asked = (error.retry_after or 0.0) if isinstance(error, StatusError) else 0.0
        backoff = random.uniform(0.5, 1.0) * min(LONGEST_BACKOFF, 2.0 ** min(row.attempts, 16))
        self.file.later(row, str(error), backoff, asked, refused=refused)
        if refused and row.refused + 1 >= REFUSALS:
            self.file.bury(row, str(error))
        return False

    def _pause(self, sender: Sender, row: Waiting) -> None:
        if not sender.paused_until:
            log.warning("the service refuses the key; the outbox waits until the key works (nothing is lost)")
        sender.paused_until = time.monotonic() + PAUSED
        self.file.release([row])

    def _after_fork(self) -> None:
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._begin()


def _aged(row: Waiting, now: float) -> calls.Draft | None:
    """The draft with what is left of its lifetime; None when it has already run out."""
    ttl = row.draft.ttl
    if not ttl or row.draft.pinned:
        return row.draft
    left = row.created + ttl.get("ttl_seconds", ttl.get("ttl_days", 0) * 86_400) - now
    if left <= 0:
        return None
    # A lifetime that has hardly begun stays as it was said; 60 seconds is the least a service takes.
    return row.draft if now - row.created < 60 else replace(row.draft, ttl={"ttl_seconds": max(60, round(left))})


_deliveries: dict[str, Delivery] = {}
_making = threading.Lock()


def join(
    path: str, make: Callable[[], OutboxFile], sender_of: Callable[[OutboxFile], Sender]
) -> tuple[Delivery, Sender]:
    """Take part in the one delivery of a file in this process."""
    with _making:
        delivery = _deliveries.get(path) or _deliveries.setdefault(path, Delivery(make()))
        delivery.holders += 1
    try:
        sender = sender_of(delivery.file)
    except BaseException:
        leave(path, delivery, None)
        raise
    delivery.join(sender)
    return delivery, sender


def leave(path: str, delivery: Delivery, sender: Sender | None) -> None:
    """Take part no longer; the last one out closes the file."""
    with _making:
        delivery.holders -= 1
        last = delivery.holders == 0
        if last and _deliveries.get(path) is delivery:
            del _deliveries[path]
    if sender is not None:
        delivery.leave(sender)
    if last:
        delivery.file.close()


def _child() -> None:
    global _making
    _making = threading.Lock()  # one that another thread held at the fork would never be released


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_child)
