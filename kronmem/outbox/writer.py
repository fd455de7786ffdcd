"""remember_later and what belongs to it, as flows for both shells; and the outbox that users see."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread

from kronmem.core import calls, flows
from kronmem.core.exchange import RETRYABLE, Breaker, Flow, Link, exchange, local
from kronmem.core.names import Names
from kronmem.errors import KronmemError, OutboxFullError, ReplyError, StatusError, StoreError, TransportError
from kronmem.models import DeadLetter, Memory
from kronmem.outbox.journal import OutboxJournal
from kronmem.transport.drive import Transport

if TYPE_CHECKING:  # SQLite is loaded when something is queued, not when kronmem is imported
    from kronmem.outbox.delivery import Delivery, Sender
    from kronmem.outbox.queue import Lane, OutboxFile

T = TypeVar("T")

log = logging.getLogger("kronmem")


class Post:
    """One client's way into and out of an outbox file. Opens nothing before something is queued or found there."""

    def __init__(
        self,
        path: str,
        service: str,
        key: str,
        transport: Callable[[], Transport],
        breaker: Breaker,
        timeout: float,
        names: Names | None = None,
    ) -> None:
        self._path = os.path.abspath(path)
        self._service, self._key = service, key
        self._make_transport, self._breaker, self._timeout = transport, breaker, timeout
        self._names = names or Names()
        self.journal = OutboxJournal(lambda: (self._file(), self._lane()))
        self._joined: tuple[Delivery, Sender] | None = None
        self._pid = os.getpid()
        self._joining = threading.Lock()
        self._told = False
        self.looked = False
        """Has this client looked for what an earlier process left behind?"""

    # ── flows ────────────────────────────────────────────────────────────────────────────────────────────────────

    def awake(self, flow: Flow[T]) -> Flow[T]:
        """The flow, after the delivery of what an earlier process left behind has begun."""
        self.looked = True
        if os.path.exists(self._path):
            yield from local(lambda: self._quietly(self._arrive))
        return (yield from flow)

    def remember(self, draft: calls.Draft, link: Link, timeout: float) -> Flow[Memory]:
        """Store now; behind what waits already, or when the service cannot be reached, store later."""
        if (yield from self._behind(draft.agent_id)):
            return (yield from self.later([draft]))[0]
        try:
            stored = yield from exchange(calls.remember(draft), link, timeout)
        except KronmemError as error:
            return (yield from self._instead([draft], error))[0]
        self._told = False
        return stored

    def remember_many(self, drafts: Sequence[calls.Draft], link: Link, timeout: float) -> Flow[list[Memory]]:
        """The same for many: what could not be stored now is queued in its order."""
        if drafts and (yield from self._behind(drafts[0].agent_id)):
            return (yield from self.later(drafts))
        stored: list[Memory] = []
        try:
            yield from flows.remember_many(drafts, link, timeout, stored)
        except KronmemError as error:
            cause = error.__cause__ if isinstance(error.__cause__, KronmemError) else error
            if not worth_waiting(cause):
                raise
            stored += yield from self._instead(drafts[len(stored) :], cause)
        return stored

    def later(self, drafts: Sequence[calls.Draft]) -> Flow[list[Memory]]:
        """Queue: on disk when this is done."""
        yield from local(lambda: self._put(list(drafts)))
        return [_queued(draft) for draft in drafts]

    def forget(self, agent_id: str, memory_id: str, link: Link, timeout: float) -> Flow[None]:
        """Delete by the service's id or by the one that was given when it was queued, delivered or not."""
        call = calls.forget(agent_id, memory_id)
        if os.path.exists(self._path):
            taken_back, known = yield from local(lambda: self._find(agent_id, memory_id))
            if taken_back:
                return None
            call = calls.forget(agent_id, known or memory_id)
        return (yield from exchange(call, link, timeout))

    def clear(self, agent_id: str, session_id: str | None, flow: Flow[int]) -> Flow[int]:
        """Delete what waits, then what is stored: a cleared memory must not come back out of the queue."""
        waiting = 0
        if os.path.exists(self._path):
            waiting = yield from local(lambda: self._file().cancel_all(self._lane(), agent_id, session_id))
        return waiting + (yield from flow)

    def _behind(self, agent_id: str) -> Flow[bool]:
        if not os.path.exists(self._path):
            return False
        return (yield from local(lambda: self._quietly(lambda: self._file().holds(self._lane(), agent_id)) or False))

    def _instead(self, drafts: Sequence[calls.Draft], error: KronmemError) -> Flow[list[Memory]]:
        if not worth_waiting(error):
            raise error
        if not self._told:
            log.warning(
                "memories wait in the outbox until the service takes them (%s: %s)", type(error).__name__, error
            )
        self._told = True
        try:
            return (yield from self.later(drafts))
        except OutboxFullError as full:
            raise full from error
        except KronmemError as broken:
            log.warning("the outbox cannot be written (%s)", broken)
            raise error from broken

    # ── blocking parts, done in a thread when awaited ────────────────────────────────────────────────────────────

    def _arrive(self) -> tuple[Delivery, Sender]:
        from kronmem.outbox import delivery
        from kronmem.outbox.queue import OutboxFile

        with self._joining:
            if self._joined is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._joined = delivery.join(self._path, lambda: OutboxFile(self._path), self._sender)
            return self._joined

    def _sender(self, file: OutboxFile) -> Sender:
        from kronmem.outbox.delivery import Sender

        try:
            lane = file.lane(self._service, self._key)
        except StoreError as error:
            if not error.damaged:
                raise
            log.error("%s; it was set aside as %s and a new outbox begun", error, file.set_aside())
            lane = file.lane(self._service, self._key)
        return Sender(lane, self._make_transport(), self._breaker, self._timeout, self._names, self.journal)

    def _file(self) -> OutboxFile:
        return self._arrive()[0].file

    def _lane(self) -> Lane:
        return self._arrive()[1].lane

    def _put(self, drafts: list[calls.Draft]) -> None:
        from kronmem.outbox import delivery

        working, sender = self._arrive()
        working.file.put(sender.lane, drafts)
        delivery.step("queued")
        working.join(sender)

    def _find(self, agent_id: str, memory_id: str) -> tuple[bool, str | None]:
        file, lane = self._file(), self._lane()
        return file.cancel(lane, agent_id, memory_id), file.delivered(lane, agent_id, memory_id)

    def _quietly(self, work: Callable[[], T]) -> T | None:
        """A broken outbox must not keep anybody from talking to a service that is well."""
        try:
            return work()
        except KronmemError as error:
            log.warning("the outbox cannot be used (%s)", error)
            return None

    # ── what users see ───────────────────────────────────────────────────────────────────────────────────────────

    def pending(self) -> int:
        """How many memories wait."""
        return self._file().pending(self._lane()) if os.path.exists(self._path) else 0

    def flush(self, timeout: float, *, patient: bool = True) -> int:
        """Deliver now; how many are left."""
        if not os.path.exists(self._path):
            return 0
        working, sender = self._arrive()
        return working.flush(sender, timeout, patient=patient)

    def dead(self) -> list[DeadLetter]:
        """What the service refused."""
        return self._file().dead(self._lane()) if os.path.exists(self._path) else []

    def retry_dead(self) -> int:
        """Queue the refused once more."""
        if not os.path.exists(self._path):
            return 0
        working, sender = self._arrive()
        revived = working.file.revive(sender.lane)
        sender.paused_until = 0.0
        working.join(sender)
        return revived

    def close(self, timeout: float) -> None:
        """Try to deliver, then leave the rest for the next process."""
        if self._joined is None or self._pid != os.getpid():
            return
        from kronmem.outbox import delivery

        working, sender = self._joined
        self._quietly(lambda: working.flush(sender, timeout, patient=False))
        self._joined = None
        delivery.leave(self._path, working, sender)
        sender.transport.close()


def worth_waiting(error: KronmemError) -> bool:
    """Will the same memory be taken later? A refusal for good is the caller's to hear."""
    # An answer that cannot be read is no answer; the id makes asking again safe.
    return isinstance(error, (TransportError, ReplyError)) or (
        isinstance(error, StatusError) and error.status in RETRYABLE
    )


def _queued(draft: calls.Draft) -> Memory:
    return Memory(
        id=draft.client_id,
        agent_id=draft.agent_id,
        content=draft.content,
        memory_type=draft.memory_type,
        session_id=draft.session_id,
        tags=draft.tags,
        metadata=draft.metadata,
        created_at=datetime.now(timezone.utc),
        pinned=draft.pinned,
        queued=True,
    )


class Outbox:
    """What waits for delivery. An embedded client writes directly, so its outbox is always empty."""

    def __init__(self, post: Post | None) -> None:
        self._post = post

    def pending(self) -> int:
        """How many memories wait for delivery."""
        return self._post.pending() if self._post else 0

    def flush(self, timeout: float = 10.0) -> int:
        """Try for `timeout` seconds to deliver everything; the answer is how many are left."""
        return self._post.flush(timeout) if self._post else 0

    def dead(self) -> list[DeadLetter]:
        """The memories that the service refused for good, oldest first."""
        return self._post.dead() if self._post else []

    def retry_dead(self) -> int:
        """Queue what was refused once more; the answer is how many."""
        return self._post.retry_dead() if self._post else 0


class AsyncOutbox:
    """What waits for delivery. An embedded client writes directly, so its outbox is always empty."""

    def __init__(self, post: Post | None) -> None:
        self._post = post

    async def pending(self) -> int:
        """How many memories wait for delivery."""
        return await anyio.to_thread.run_sync(Outbox(self._post).pending)

    async def flush(self, timeout: float = 10.0) -> int:
        """Try for `timeout` seconds to deliver everything; the answer is how many are left."""
        return await anyio.to_thread.run_sync(Outbox(self._post).flush, timeout, abandon_on_cancel=True)

    async def dead(self) -> list[DeadLetter]:
        """The memories that the service refused for good, oldest first."""
        return await anyio.to_thread.run_sync(Outbox(self._post).dead)

    async def retry_dead(self) -> int:
        """Queue what was refused once more; the answer is how many."""
        return await anyio.to_thread.run_sync(Outbox(self._post).retry_dead)
