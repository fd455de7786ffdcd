"""The client's side of the outbox: remember, forget and clear as flows for both shells.

A broken or busy outbox file keeps no caller from a service that is well, and no file work outlives the call's deadline.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from kronmem import fork_safety, tracing
from kronmem.core import calls, flows, inputs
from kronmem.core.abilities import RemoteService
from kronmem.core.exchange import Event, Flow, Link, Pause, exchange, local
from kronmem.core.policy import Breaker, Retry
from kronmem.errors import (
    ConfigError,
    DeadlineError,
    KronmemError,
    NotFoundError,
    OutboxFullError,
    TransportError,
)
from kronmem.models import Erasure, Memory
from kronmem.outbox import policy
from kronmem.outbox.policy import LEASE
from kronmem.transport.drive import CLOSED, Transport

if TYPE_CHECKING:  # SQLite is loaded when something is queued, not when kronmem is imported
    from kronmem.outbox.deliver import Delivery, Sender
    from kronmem.outbox.file import Lane, Waiting
    from kronmem.outbox.queue import OutboxFile

T = TypeVar("T")

log = logging.getLogger("kronmem")

FOR_THE_FILE = 0.25
"""This share of a deadline, at most half a second, is kept for queueing after the service took all the rest."""
LEAST = 0.25
"""Seconds that queueing may take past the deadline when the service has used it up."""
MOST_ROUNDS = 4
"""So many claims of an agent's rows a `remember` delivers itself; behind more it queues, and the thread delivers."""
LEASED = 0.5
"""Seconds that a `remember` waits for rows that the thread or another process is sending right now."""
POLL = 0.02
"""Seconds between two looks whether a row that is being sent has come to its end."""
SLOW = 30.0
"""After a call that ran into its deadline, calls queue behind waiting rows at once; the breaker's longest pause."""


@dataclass(frozen=True)
class OutboxStatus:
    """The part of `health` about the outbox."""

    pending: int = 0
    stranded: int = 0
    error: str | None = None


class OutboxWriter:
    """One client's way into and out of an outbox file. Opens nothing before something is queued or found there."""

    def __init__(
        self,
        path: str,
        service: str,
        key: str,
        transport: Callable[[], Transport],
        breaker: Breaker,
        timeout: float,
        remote: RemoteService,
    ) -> None:
        self.path = os.path.abspath(path)
        self._service, self._key = service, key
        self._make_transport, self._breaker, self._timeout = transport, breaker, timeout
        self._remote = remote
        self._joined: tuple[Delivery, Sender] | None = None
        self._closed = False
        self._warned = False
        self._slow_until = 0.0
        self.looked = False
        """Has this client looked for rows that an earlier process left behind?"""
        fork_safety.watch(self)

    # ── flows ────────────────────────────────────────────────────────────────────────────────────────────────────

    def awake(self) -> None:
        """Begin the delivery of rows that an earlier process left behind."""
        self.looked = True
        if self.exists():
            working, sender = self.arrive()
            working.begin(sender)

    def remember(self, draft: calls.Draft, link: Link, timeout: float) -> Flow[Memory]:
        """Store now, after the agent's waiting rows; when the service cannot be reached, store later."""
        ends = link.now() + timeout
        clear, paused = yield from self._clear_the_way(draft.agent_id, link, ends)
        if not clear:
            return (yield from self.later([draft], ends - link.now()))[0]
        try:
            stored = yield from exchange(calls.remember(draft), link, _for_service(ends - link.now()))
        except KronmemError as error:
            return (yield from self._queued_instead([draft], error, ends - link.now()))[0]
        yield from self._succeeded(paused, ends - link.now())
        return stored

    def remember_many(self, drafts: Sequence[calls.Draft], link: Link, timeout: float) -> Flow[list[Memory]]:
        """The same for many: those that could not be stored now are queued in their order."""
        clear, paused = True, False
        if drafts:
            clear, paused = yield from self._clear_the_way(drafts[0].agent_id, link, link.now() + timeout)
        if not clear:
            return (yield from self.later(drafts, timeout))
        stored: list[Memory] = []
        try:
            yield from flows.remember_many(drafts, link, _for_service(timeout), stored)
        except KronmemError as error:
            cause = error.__cause__ if isinstance(error.__cause__, KronmemError) else error
            if not policy.is_outage(cause):
                raise
            stored += yield from self._queued_instead(drafts[len(stored) :], cause, timeout * FOR_THE_FILE)
        else:
            yield from self._succeeded(paused, timeout)
        return stored

    def later(
        self,
        drafts: Sequence[calls.Draft],
        timeout: float,
        delay: policy.Delay | None = None,
        because: KronmemError | None = None,
    ) -> Flow[list[Memory]]:
        """Queue: on disk when this is done. `because` is the error of the service that they are queued for."""
        event = None if because is None else Event("kronmem.queued", {"error.type": type(because).__name__})
        sent = because is not None and policy.may_be_stored(because)
        yield from local(lambda: self._put(drafts, timeout, delay, sent), event)
        return [_queued(draft) for draft in drafts]

    def forget(self, agent_id: str, memory_id: str, link: Link, timeout: float) -> Flow[None]:
        """Delete by the service's id or by the one that was given when it was queued, delivered or not."""
        ends = link.now() + timeout
        call = calls.forget(agent_id, memory_id)
        if self.exists():
            taken_back, known = yield from local(lambda: self._find(agent_id, memory_id, ends - link.now()))
            if taken_back:
                return None
            call = calls.forget(agent_id, known or memory_id)
            if taken_back is None:
                return (yield from _if_there(exchange(call, link, ends - link.now())))
        return (yield from exchange(call, link, ends - link.now()))

    def by_id(
        self, agent_id: str, memory_id: str, flow: Callable[[str, float], Flow[T]], link: Link, timeout: float
    ) -> Flow[T]:
        """Ask about a memory by the service's id or by the one that it was queued under; one that waits goes first."""
        ends = link.now() + timeout
        try:
            return (yield from flow(memory_id, timeout))
        except NotFoundError:
            if not self.exists():
                raise
        known = yield from self._arrived(agent_id, memory_id, link, ends)
        return (yield from flow(known, ends - link.now()))

    def _arrived(self, agent_id: str, memory_id: str, link: Link, ends: float) -> Flow[str]:
        """The id of a memory at the service, after its delivery if it was queued here.

        One that no longer waits and has no other id there may have arrived since the service was asked.
        """

        def look() -> tuple[bool, str | None] | None:
            return self._quietly(
                lambda: self.ask(
                    lambda file, lane: (
                        file.waits(lane, agent_id, memory_id),
                        file.delivered(lane, agent_id, memory_id),
                    ),
                    ends - link.now(),
                )
            )

        waits, known = (yield from local(look)) or (False, None)
        if not waits:
            return known or memory_id
        clear, _ = yield from self._clear_the_way(agent_id, link, ends)
        waits, known = (yield from local(look)) or (False, None)
        if waits or not clear:
            raise TransportError(f"memory {memory_id} still waits in the outbox: try again later", sent=False)
        return known or memory_id

    def clear(
        self,
        agent_id: str,
        session_id: str | None,
        before: datetime | None,
        flow: Callable[[float], Flow[int]],
        timeout: float,
    ) -> Flow[int]:
        """Delete waiting rows, then stored ones: a cleared memory must not come back out of the queue.

        `flow` deletes at the service within the seconds that are left.
        """
        ends = time.monotonic() + timeout
        waiting = yield from self._cancelled(agent_id, session_id, before, timeout / 2)
        return waiting + (yield from flow(ends - time.monotonic()))

    def erase(self, agent_id: str, flow: Callable[[float], Flow[Erasure]], timeout: float) -> Flow[Erasure]:
        """Erase waiting rows and those that say where a memory was delivered, then everything at the service.

        The file has half of the time; `flow` erases at the service within the seconds that are left.
        """
        ends = time.monotonic() + timeout
        half = ends - timeout / 2
        waiting = yield from self._cancelled(agent_id, None, None, timeout / 2)
        clean = not self.exists() or (yield from self._erased(agent_id, half))
        if clean and self.exists():  # rows under another key may be another owner's: only `complete` reports them
            ask = partial(self.ask, lambda file, lane: not file.has_stranded(lane, agent_id), timeout / 4)
            clean = yield from local(ask)
        done = yield from flow(ends - time.monotonic())
        return done.model_copy(update={"queued": waiting, "complete": done.complete and clean})

    def _erased(self, agent_id: str, ends: float) -> Flow[bool]:
        """Erase the rows of an agent from the file; one that is being sent is waited for until then."""
        while True:
            left = max(ends - time.monotonic(), LEAST)
            if (yield from local(partial(self.ask, lambda file, lane: file.erase(lane, agent_id), left))):
                return True
            if time.monotonic() + POLL >= ends:
                return False
            yield Pause(POLL)

    def _cancelled(self, agent_id: str, session_id: str | None, before: datetime | None, timeout: float) -> Flow[int]:
        inputs.identifier(agent_id, "agent_id")  # before anything is removed, and SQLite takes no lone surrogate
        inputs.session(session_id)
        if not self.exists():
            return 0
        until = None if before is None else before.timestamp()
        return (
            yield from local(
                lambda: self.ask(lambda file, lane: file.cancel_all(lane, agent_id, session_id, until), timeout)
            )
        )

    def _succeeded(self, paused: bool, timeout: float) -> Flow[None]:
        """The service stored something: nothing waits for a pause that it asked for earlier."""
        self._warned, self._slow_until = False, 0.0
        if paused:
            yield from local(lambda: self._quietly(lambda: self._go_on(timeout)))

    def _queued_instead(self, drafts: Sequence[calls.Draft], error: KronmemError, timeout: float) -> Flow[list[Memory]]:
        if not policy.is_outage(error):
            raise error
        if isinstance(error, DeadlineError):
            self._slow_until = time.monotonic() + SLOW
        if not self._warned:
            log.warning(
                "memories wait in the outbox until the service takes them (%s: %s)", type(error).__name__, error
            )
        self._warned = True
        if policy.retry_after(error) > policy.DAY:
            log.warning("%s asks to wait for %.0f s; a day is enough", self._service, policy.retry_after(error))
        try:
            # Our own thread may be writing: a memory is not given up for the want of a moment.
            left = max(timeout, LEAST)
            delay = policy.delay(error, 0, random.uniform(0.5, 1.0))
            return (yield from self.later(drafts, left, delay, error))
        except OutboxFullError as full:
            raise full from error
        except KronmemError as broken:
            log.warning("the outbox cannot be written (%s)", broken)
            raise error from broken

    # ── the agent's rows that wait already ───────────────────────────────────────────────────────────────────────

    def _clear_the_way(self, agent_id: str, link: Link, ends: float) -> Flow[tuple[bool, bool]]:
        """Deliver the agent's waiting rows; False: they still wait, and a new one has its place behind them.

        The second answer: the lane was paused.
        """
        if not self.exists():
            return True, False
        patience = (ends - link.now()) / 4
        ahead = yield from local(lambda: self._quietly(lambda: self._ahead(agent_id, patience)))
        count, paused, named = ahead or (0, False, False)
        if not count:
            return True, paused
        resting = link.breaker.state == "open" and link.breaker.opened_at + link.breaker.pause > link.now()
        if named or resting or time.monotonic() < self._slow_until:
            return False, paused
        try:
            patience = min((ends - link.now()) / 2, LEASE / 2)  # their claim is not over before they are settled
            return (yield from self._deliver_first(agent_id, link, link.now() + patience)), paused
        except KronmemError as error:  # of the file: a row that the service does not take is settled there
            self._warn(error)
            return True, paused

    def _deliver_first(self, agent_id: str, link: Link, ends: float) -> Flow[bool]:
        rounds, leased = 0, link.now() + LEASED
        while link.now() < ends and rounds < MOST_ROUNDS:
            rows = yield from self._claimed(agent_id, ends - link.now())
            if rows:
                rounds += 1
                if not (yield from self._send_first(rows, link, ends)):
                    return False
            count, *_ = yield from local(lambda: self._ahead(agent_id, ends - link.now()))
            if not count:
                return True
            if not rows:
                if link.now() > leased:
                    return False
                yield Pause(0.01)
        return False

    def _claimed(self, agent_id: str, timeout: float) -> Flow[list[Waiting]]:
        working, abandoned = self.arrive()[0], threading.Event()
        claimed: list[Waiting] = []

        def claim() -> list[Waiting]:
            rows = self.ask(lambda file, lane: file.claim_agent(lane, agent_id.encode()), timeout)
            claimed.extend(rows or ())
            if abandoned.is_set():
                working.hand_back(claimed)
            return claimed

        try:
            return (yield from local(claim))
        except BaseException:
            abandoned.set()  # cancelled while a thread is at it, or just after
            working.hand_back(claimed)
            raise

    def _send_first(self, rows: Sequence[Waiting], link: Link, ends: float) -> Flow[bool]:
        from kronmem.outbox.deliver import aged

        working, sender = self.arrive()
        once = replace(link, retry=Retry(attempts=1))
        for position, row in enumerate(rows):
            until = time.monotonic() + (ends - link.now())
            rest = rows[position + 1 :]
            if (draft := aged(row, time.time())) is None:
                drop = partial(working.file.within(max(ends - link.now(), LEAST)).drop, row)
                try:
                    yield from local(drop)
                except BaseException:
                    working.hand_back(rows[position:])
                    raise
                continue
            try:
                flow = exchange(calls.remember(draft), once, ends - link.now())
                stored = yield from tracing.delivered(flow, draft, self._service, row.origin, row.attempts + 1)
            except KronmemError as error:
                if isinstance(error, DeadlineError):
                    self._slow_until = time.monotonic() + SLOW
                settle = partial(working.failed, sender, row, error, until, forced=True)
            except BaseException:
                working.hand_back([replace(row, interrupted=True), *rest])
                raise
            else:
                settle = partial(working.arrived, sender, row, stored.id, until)
            try:
                goes_on = yield from local(settle)
            except BaseException as error:
                # Cancelled, a thread goes on to settle the row; when the file is locked, no thread does.
                mine = [replace(row, interrupted=True)] if isinstance(error, KronmemError) else []
                working.hand_back([*mine, *rest])
                raise
            if not goes_on:
                working.hand_back(rest)
                return False
        return True

    # ── blocking parts, done in a thread when awaited ────────────────────────────────────────────────────────────

    def exists(self) -> bool:
        """Is there a file at all?"""
        return os.path.exists(self.path)

    def arrive(self) -> tuple[Delivery, Sender]:
        """Take part in the delivery of the file. Touches nothing on disk and sends nothing."""
        if (joined := self._joined) is not None:
            return joined
        with fork_safety.first_use.lock:
            from kronmem.outbox import deliver
            from kronmem.outbox.deliver import Sender
            from kronmem.outbox.queue import OutboxFile

            if self._closed:  # by another thread: a second delivery would outlive the client
                raise ConfigError(CLOSED)
            if self._joined is None:
                way = (self._make_transport(), self._breaker, self._timeout, self._remote)
                sender = Sender(self._service, self._key, *way)
                self._joined = deliver.join(self.path, lambda: OutboxFile(self.path)), sender
            return self._joined

    def ask(self, question: Callable[[OutboxFile, Lane], T], timeout: float) -> T:
        """Ask the file about this client's lane, within `timeout`; memories there are delivered from then on."""
        working, sender = self.arrive()
        try:
            return self._ask(working, sender, question, timeout)
        finally:
            working.begin(sender)

    def look(self, question: Callable[[OutboxFile, Lane], T], timeout: float) -> T:
        """The same for a reader: nothing is sent."""
        return self._ask(*self.arrive(), question, timeout)

    def _ask(self, working: Delivery, sender: Sender, question: Callable[[OutboxFile, Lane], T], timeout: float) -> T:
        ends = time.monotonic() + timeout
        lane = sender.lane(working.file.within(timeout))
        return question(working.file.within(ends - time.monotonic()), lane)

    def change(self, question: Callable[[OutboxFile, Lane], T], timeout: float) -> T:
        """The same for an answer upon which there may be something to deliver at once."""
        working, sender = self.arrive()
        answer = self._ask(working, sender, question, timeout)
        sender.paused_until = 0.0
        working.join(sender)
        return answer

    def _put(self, drafts: Sequence[calls.Draft], timeout: float, delay: policy.Delay | None, sent: bool) -> None:
        # Arrived once: closed in between, the row waits for the next process and no thread starts again.
        working, sender = self.arrive()
        origin = tracing.headers().get("traceparent")

        def put(file: OutboxFile, lane: Lane) -> None:
            file.put(lane, drafts, delay, sent=sent, origin=origin)

        self._ask(working, sender, put, timeout)
        working.join(sender)

    def _ahead(self, agent_id: str, timeout: float) -> tuple[int, bool, bool]:
        return self.ask(lambda file, lane: file.ahead(lane, agent_id), timeout)

    def _find(self, agent_id: str, memory_id: str, timeout: float) -> tuple[bool | None, str | None]:
        return self.ask(
            lambda file, lane: (file.cancel(lane, agent_id, memory_id), file.delivered(lane, agent_id, memory_id)),
            timeout,
        )

    def _go_on(self, timeout: float) -> None:
        self.change(lambda file, lane: file.go_on(lane), timeout)

    def _quietly(self, work: Callable[[], T]) -> T | None:
        """A broken outbox must not keep a caller from a service that is well."""
        try:
            return work()
        except KronmemError as error:
            self._warn(error)
            return None

    def _warn(self, error: KronmemError) -> None:
        log.warning("the outbox cannot be used (%s)", error)

    # ── for users ────────────────────────────────────────────────────────────────────────────────────────────────

    def status(self, timeout: float) -> OutboxStatus:
        """How many memories wait, or why that is unknown."""
        if not self.exists():
            return OutboxStatus()
        try:
            return self.look(lambda file, lane: OutboxStatus(file.pending(lane), file.count_stranded(lane)), timeout)
        except KronmemError as error:
            return OutboxStatus(error=str(error))

    def flush(self, timeout: float) -> int:
        """Deliver now; how many are left."""
        if not self.exists():
            return 0
        working, sender = self.arrive()
        working.begin(sender)
        return working.flush(sender, timeout)

    def close(self, timeout: float) -> None:
        """Try to deliver, then leave the rest for the next process."""
        ends = time.monotonic() + timeout
        try:
            if self._joined is not None:
                self._quietly(lambda: self._drain(timeout * 0.8))  # the rest is for the row under way
        finally:
            self._leave(ends)

    def _leave(self, ends: float) -> None:
        with fork_safety.first_use.lock:
            joined, self._joined, self._closed = self._joined, None, True
        if joined is None:
            return
        from kronmem.outbox import deliver

        working, sender = joined
        deliver.leave(self.path, working, sender, ends - time.monotonic())
        sender.transport.close()

    def _drain(self, timeout: float) -> None:
        working, sender = self.arrive()
        working.drain(sender, timeout)

    def before_fork(self) -> None:
        """Nothing is held for long."""

    def after_fork(self, *, child: bool) -> None:
        """The child takes part again."""
        if child:
            self._joined, self.looked = None, False


def _if_there(flow: Flow[None]) -> Flow[None]:
    try:
        yield from flow
    except NotFoundError:
        return


def _for_service(left: float) -> float:
    return left - min(0.5, left * FOR_THE_FILE)


def _queued(draft: calls.Draft) -> Memory:
    return Memory(
        id=draft.client_id,
        agent_id=draft.agent_id,
        content=draft.content,
        memory_type=draft.memory_type,
        session_id=draft.session_id,
        tags=draft.tags,
        metadata=draft.metadata,
        created_at=datetime.now(UTC),
        pinned=draft.pinned,
        role=draft.role,
        key=draft.key,
        queued=True,
    )
