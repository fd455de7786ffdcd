"""`client.outbox`: the memories that wait for delivery, as users see them."""

from __future__ import annotations

import builtins  # `list` is a method here
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kronmem.core import inputs
from kronmem.models import DeadLetter, QueuedMemory
from kronmem.outbox.writer import OutboxWriter
from kronmem.transport.drive import aside

if TYPE_CHECKING:  # SQLite is loaded when something is queued, not when kronmem is imported
    from kronmem.outbox.file import Lane
    from kronmem.outbox.queue import OutboxFile

T = TypeVar("T")


class AsyncOutbox:
    """The memories that wait for delivery. An embedded client writes directly, so its outbox is always empty."""

    def __init__(self, writer: OutboxWriter | None, timeout: float) -> None:
        self._writer, self._timeout = writer, timeout

    async def pending(self) -> int:
        """How many memories wait for delivery."""
        return await aside(lambda: self._ask(lambda file, lane: file.pending(lane), 0))

    async def list(self) -> builtins.list[QueuedMemory]:
        """The memories that wait for delivery, oldest first."""
        return await aside(lambda: self._ask(lambda file, lane: file.queued(lane), []))

    async def flush(self, timeout: float = 10.0) -> int:
        """Try every agent once, past backoff and Retry-After, and go on for `timeout` seconds; how many are left."""
        limit = inputs.seconds(timeout, "timeout")
        writer = self._writer
        return await aside(lambda: writer.flush(limit) if writer else 0)

    async def dead(self) -> builtins.list[DeadLetter]:
        """The dead letters, oldest first: memories that the service refused for good, or unreadable rows."""
        return await aside(lambda: self._ask(lambda file, lane: file.dead(lane), []))

    async def retry_dead(self) -> int:
        """Queue the dead letters once more; return how many there were."""
        return await aside(lambda: self._change(lambda file, lane: file.revive(lane), 0))

    async def drop(self, id: str) -> bool:
        """Remove one memory that waits, is stranded or a dead letter; False when there is none of that id."""
        checked = inputs.identifier(id, "id")
        return await aside(lambda: self._change(lambda file, lane: file.remove(lane, checked), False))

    async def stranded(self) -> builtins.list[QueuedMemory]:
        """The memories that were queued for this url under another key, oldest first; none is sent with this one."""
        return await aside(lambda: self._ask(lambda file, lane: file.stranded(lane), []))

    async def elsewhere(self) -> dict[str, int]:
        """How many memories in this file wait for other services, by url; each waits for a client of its own."""
        return await aside(lambda: self._ask(lambda file, lane: file.elsewhere(lane), {}))

    async def adopt(self, url: str | None = None) -> int:
        """Send the stranded memories, or those for another `url`, by this client from now on; answer how many."""
        other = None if url is None else inputs.checked_text(url, "url").rstrip("/")  # as clients write it
        return await aside(lambda: self._change(lambda file, lane: file.adopt(lane, other or lane.service), 0))

    def _ask(self, question: Callable[[OutboxFile, Lane], T], nothing: T) -> T:
        writer = self._writer
        return nothing if writer is None or not writer.exists() else writer.look(question, self._timeout)

    def _change(self, question: Callable[[OutboxFile, Lane], T], nothing: T) -> T:
        writer = self._writer
        return nothing if writer is None or not writer.exists() else writer.change(question, self._timeout)
