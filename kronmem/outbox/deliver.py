"""The thread that empties an outbox: claim, send, acknowledge; one per file and process, for both shells.

A kill at any point loses nothing: a row leaves the file only after the service has answered, and every attempt
carries the row's id.
"""

from __future__ import annotations

import logging
import math
import random
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from kronmem import fork_safety, tracing
from kronmem.core import calls, flows
from kronmem.core.abilities import RemoteService
from kronmem.core.exchange import Around, Link, exchange
from kronmem.core.memory_json import MOST_HITS
from kronmem.core.policy import Breaker, Retry
from kronmem.errors import KronmemError, NotFoundError, StatusError
from kronmem.models import Memory
from kronmem.outbox import policy
from kronmem.outbox.file import Lane, Waiting
from kronmem.outbox.policy import EARLIEST, LEASE
from kronmem.outbox.queue import OutboxFile
from kronmem.transport.drive import Transport, drive

# One client's way to its service, for the rows of its lane.

PAUSED = 300.0
"""A refused key or a used-up plan is tried again after this time, as an outage is: it may have been corrected."""
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
        """Seconds for one row: no caller waits for it."""
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
                    log.warning("memories deleted by an unfinished repair of 0.2 are not restored yet (%s)", error)
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
        """Send another request: a recall, since a service may be up while its store, or its embedding model, is not."""
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
    # A lifetime that has hardly begun stays as it was given; 60 seconds is the least a service takes.
    return draft if age < 60 else replace(draft, ttl={"ttl_seconds": max(60, round(left))})


log = logging.getLogger("kronmem")

LOOK_AGAIN = 30.0
"""Seconds, half a lease, within which rows that another process left or gave up are found."""
FILE_WAIT = 5.0
"""Seconds that the thread waits for a locked file, Python's own default; a caller only until its deadline."""


class Delivery:
    """Empties one outbox file for all lanes of this process."""

    def __init__(self, file: OutboxFile) -> None:
        self.file = file
        self.users = 0
        self._broken = False
        self._begin()
        fork_safety.watch(self)

    def _begin(self) -> None:
        self._senders: list[Sender] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._given_back: list[Waiting] = []
        self._thread: threading.Thread | None = None
        self._closing = False
        self._serving: Sender | None = None

    def join(self, sender: Sender) -> None:
        """Deliver this client's lane from now on. Touches no file: the thread does."""
        with self._lock:
            if sender.left:  # closed while another thread was queueing: its row is on disk, for the next process
                return
            if sender not in self._senders:
                self._senders.append(sender)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="kronmem-outbox", daemon=True)
                self._thread.start()
        self._wake.set()

    def begin(self, sender: Sender) -> None:
        """The same, unless it is delivered already."""
        if sender not in self._senders:
            self.join(sender)

    def leave(self, sender: Sender, timeout: float) -> None:
        """Stop delivering this client's lane; the thread ends with the last one."""
        ends = time.monotonic() + timeout
        with self._lock:
            sender.left = True
            if sender in self._senders:
                self._senders.remove(sender)
            last, thread = not self._senders, self._thread
        self._wake.set()
        if last and thread is not None:
            thread.join(max(timeout, 0.0))
        while self._serving is sender and time.monotonic() < ends:
            time.sleep(0.002)  # a row that is being sent right now is settled first, or it would be sent again

    def close(self) -> None:
        """Close the file; a thread that still waits in it does so itself, after giving back its claimed rows."""
        with self._lock:
            self._closing = True
            if self._thread is not None and self._thread.is_alive():
                return
        self._end()

    def _end(self) -> None:
        with suppress(KronmemError):  # their lease ends by itself
            self._release_given_back()
        self.file.close()

    def hand_back(self, claimed: Sequence[Waiting]) -> None:
        """Release rows soon: for a caller that was cancelled or could not settle them, and waits for no file."""
        with self._lock:
            self._given_back.extend(claimed)
        self._wake.set()

    def _release_given_back(self) -> None:
        with self._lock:
            rows = list(self._given_back)
        if rows:
            self.file.release(rows)
            with self._lock:  # only now: a file that is locked is asked again
                del self._given_back[: len(rows)]

    def flush(self, sender: Sender, timeout: float) -> int:
        """A person asks: try every agent once, past backoff and Retry-After, then go on as usual; the rows left."""
        ends = time.monotonic() + timeout
        self._pending(sender, ends)
        sender.restore(self._within(ends), ends - time.monotonic())
        held = self._ask_all(sender, ends)
        rest = 0.02
        while (left := self._pending(sender, ends)) and time.monotonic() < ends:
            # A row under way when the person asked was sent before: it gets its try as soon as it is free.
            held = [agent for agent in held if self._ask_agent(sender, agent, ends) is None]
            if sender.paused_until < time.monotonic() and self._some(sender, ends):
                continue
            if not held and self._hopeless(sender, ends):
                break
            time.sleep(min(rest, max(0.0, ends - time.monotonic())))
            rest = min(0.2, rest * 2)
        return left

    def drain(self, sender: Sender, timeout: float) -> None:
        """Deliver rows that are due and can be delivered at once; no service is asked before the time it named."""
        ends = time.monotonic() + timeout
        if sender not in self._senders:  # its client only looked
            return
        while time.monotonic() < ends and not sender.wait() and self._some(sender, ends):
            pass

    def _ask_all(self, sender: Sender, ends: float) -> list[bytes]:
        """Try every agent once; those with rows under way elsewhere are named in the answer."""
        held: list[bytes] = []
        agent: bytes = b""
        while time.monotonic() < ends:
            file = self._within(ends)
            agent = file.agent_after(sender.lane(file), agent)
            if not agent:
                break
            paused = sender.paused_until
            tried = self._ask_agent(sender, agent, ends)
            if tried is None:
                held.append(agent)
            if tried is False and sender.paused_until > paused:  # the key is refused: so it would be for the others
                break
        return held

    def _ask_agent(self, sender: Sender, agent: bytes, ends: float) -> bool | None:
        """Deliver the rows of one agent, due or not; False: the service failed; None: they are under way elsewhere."""
        while rows := (file := self._within(ends)).claim_agent(sender.lane(file), agent):
            if not self._deliver(sender, rows, ends, forced=True):
                return False
        return None if rows is None else True

    def _hopeless(self, sender: Sender, ends: float) -> bool:
        """Is nothing going to be due in time? A lease of another process may end any moment."""
        file = self._within(ends)
        due = file.next_unleased(sender.lane(file))
        return sender.paused_until > ends or (due is not None and time.monotonic() + due > ends)

    def _pending(self, sender: Sender, ends: float) -> int:
        file = self._within(ends)
        return file.pending(sender.lane(file))

    def _within(self, ends: float) -> OutboxFile:
        return self.file.within(min(FILE_WAIT, max(ends - time.monotonic(), 0.05)))

    # ── the thread ───────────────────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while True:
            self._wake.clear()
            with self._lock:
                senders = list(self._senders)
                if not senders:
                    self._thread = None
                    closing = self._closing
                    break
            wait = min(self._serve(sender) for sender in senders)
            if wait > 0:
                self._wake.wait(min(wait, LOOK_AGAIN))
        if closing:
            self._end()

    def _serve(self, sender: Sender) -> float:
        """Deliver some rows; the answer is in how many seconds to look again."""
        self._serving = sender
        try:
            wait = 1.0 if sender.left else self._work(sender)
        except Exception as error:  # noqa: BLE001 -- the thread must outlive a full disk or a damaged file
            if not self._broken and not sender.left:
                log.warning("the outbox cannot be used right now (%s: %s)", type(error).__name__, error)
            self._broken = True
            return 1.0
        finally:
            self._serving = None
        self._broken = False
        return wait

    def _work(self, sender: Sender) -> float:
        self._release_given_back()
        self._name_stranded(sender)
        if (resting := sender.wait()) > 0:
            return resting
        sender.restore(self.file, sender.timeout)
        if self._some(sender, time.monotonic() + 86_400):
            return 0.0
        due = self.file.next_due(sender.lane(self.file))
        return LOOK_AGAIN if due is None else max(due, sender.wait(), 0.05)

    def _name_stranded(self, sender: Sender) -> None:
        if sender.told_stranded:
            return
        count = self.file.count_stranded(sender.lane(self.file))
        sender.told_stranded = True
        if count:
            log.warning(
                "%s holds %d memories for %s that were queued under another key and are not sent with this one:"
                " outbox.stranded() lists them, outbox.adopt() takes them over, outbox.drop(id) removes one",
                self.file.path,
                count,
                sender.service,
            )

    # ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _some(self, sender: Sender, ends: float) -> bool:
        """Deliver the oldest due rows of one agent, in order; False when nothing was due or the service failed."""
        file = self._within(ends)
        rows = file.claim(sender.lane(file))
        return bool(rows) and self._deliver(sender, rows, ends)

    def _deliver(self, sender: Sender, rows: Sequence[Waiting], ends: float, *, forced: bool = False) -> bool:
        claimed = time.monotonic()
        try:
            while rows:
                # By either clock: a process that slept with its machine does not see it by the first.
                if time.monotonic() - claimed > LEASE / 3 or time.time() > rows[0].lease - LEASE / 3:
                    rows, claimed = self._within(ends).renew(rows), time.monotonic()
                    if not rows:  # another process has them
                        return False
                row, *rest = rows
                if sender.left or ends <= time.monotonic():
                    self._within(ends).release(rows)
                    return False
                if not self._send(sender, row, ends, forced):
                    self._within(ends).release(rest)
                    return False
                rows = rest
        except BaseException:  # the file is locked, or an interrupt: no thread works on them any more
            self.hand_back([replace(rows[0], interrupted=True), *rows[1:]])
            raise
        return True

    def _send(self, sender: Sender, row: Waiting, ends: float, forced: bool) -> bool:
        """Send one row and settle it; False when its agent has to wait."""
        draft = aged(row, time.time())
        if draft is None:
            self._within(ends).drop(row)
            return True
        try:
            stored = sender.remember(row, draft, min(sender.patience, LEASE / 3, ends - time.monotonic()))
        except KronmemError as error:
            if policy.is_outage(error) and not (isinstance(error, StatusError) and error.status < 500):
                sender.breaker.failed(time.monotonic())
            return self.failed(sender, row, error, ends, forced=forced)
        return self.arrived(sender, row, stored.id, ends)

    def arrived(self, sender: Sender, row: Waiting, memory_id: str, ends: float) -> bool:
        """The service has a row: acknowledge it; one that was taken back meanwhile is forgotten there."""
        sender.succeeded(row)
        if not row.cancelled and self._within(ends).done(sender.lane(self.file), row, memory_id):
            return True
        try:
            sender.forget(row.draft.agent_id, memory_id, self._probe_time(sender, ends))
        except KronmemError as error:
            return self.failed(sender, row, error, ends, forced=False)
        self._within(ends).drop(row)
        return True

    def failed(self, sender: Sender, row: Waiting, error: KronmemError, ends: float, *, forced: bool) -> bool:
        """Settle a row that the service did not take; True when the next one of its agent may go.

        Forced: tried out of turn for a person, so it counts towards nothing.
        """
        if policy.is_done(error):
            sender.succeeded(row)
            self._within(ends).drop(row)
            return True
        if policy.is_refusal(error):
            self._bury(sender, row, str(error), ends)
            return True
        if not policy.is_outage(error):
            self._within(ends).release([row])
            sender.pause(error)
            return False
        if policy.retry_after(error) > policy.DAY:
            log.warning("%s asks to wait for %.0f s; a day is enough", sender.service, policy.retry_after(error))
        delay = policy.delay(error, row.attempts, random.uniform(0.5, 1.0))
        if forced:
            sent = policy.may_be_stored(error)
            self._within(ends).tried(sender.lane(self.file), row, str(error), delay, sent=sent)
            return False
        return self._put_off(sender, row, error, delay, ends)

    def _put_off(self, sender: Sender, row: Waiting, error: KronmemError, delay: policy.Delay, ends: float) -> bool:
        refused = row.refused
        if policy.may_be_the_row(error):
            refused = sender.suspicion(row, self._probe_time(sender, ends))
        sent = policy.may_be_stored(error)
        if refused >= policy.TRIES:
            self._bury(sender, row, f"the service fails on this memory and answers others ({error})", ends, sent=sent)
            return True
        self._within(ends).later(sender.lane(self.file), row, str(error), delay, refused=refused, sent=sent)
        return False

    def _probe_time(self, sender: Sender, ends: float) -> float:
        """Seconds for each request after a row was sent: with them its claim is not over before it is settled."""
        return max(0.05, min(sender.timeout, LEASE / 6, ends - time.monotonic()))

    def _bury(self, sender: Sender, row: Waiting, reason: str, ends: float, *, sent: bool = False) -> None:
        log.warning("a queued memory is kept as a dead letter: %s", reason)
        sender.failed_at.pop(row.seq, None)
        sender.answered_at = time.monotonic()
        self._within(ends).bury(row, reason, sent=sent)

    def before_fork(self) -> None:
        """Nothing to do: a row on its way stays the parent's, by its lease."""

    def after_fork(self, *, child: bool) -> None:
        """The child has no thread yet, and takes part when its clients join."""
        if child:
            self.users = 0
            self._begin()


_deliveries: dict[str, Delivery] = {}


class _Making:
    """The lock under which deliveries are made and dropped."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        fork_safety.watch(self)

    def before_fork(self) -> None:
        """Nothing is held for long."""

    def after_fork(self, *, child: bool) -> None:
        """Give the child a lock of its own."""
        if child:
            self.lock = threading.Lock()


_making = _Making()


def join(path: str, make: Callable[[], OutboxFile]) -> Delivery:
    """Take part in the one delivery of a file in this process; nothing is sent before a sender joins."""
    with _making.lock:
        delivery = _deliveries.get(path) or _deliveries.setdefault(path, Delivery(make()))
        delivery.users += 1
    return delivery


def leave(path: str, delivery: Delivery, sender: Sender, timeout: float) -> None:
    """Take part no longer; the last one out closes the file."""
    with _making.lock:
        delivery.users -= 1
        last = delivery.users == 0
        if last and _deliveries.get(path) is delivery:
            del _deliveries[path]
    delivery.leave(sender, timeout)
    if last:
        delivery.close()
