"""AutoGen's cancellation token, honoured."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from autogen_core import CancellationToken

T = TypeVar("T")


async def until_cancelled(work: Coroutine[object, object, T], token: CancellationToken | None) -> T:
    """Await the work; cancelling the token ends it at once with CancelledError, and so does cancelling the caller.

    The work is cancelled too, but not waited for: a thread of it may go on to its end.
    """
    if token is None:
        return await work
    task = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(asyncio.wait([task]))
    token.link_future(waiting)
    try:
        await waiting
    except asyncio.CancelledError:
        task.add_done_callback(_forget)
        task.cancel()
        raise
    return task.result()


def _forget(task: asyncio.Task[object]) -> None:
    """Take the result of a task that nobody waits for, or asyncio would complain of an exception never retrieved."""
    if not task.cancelled():
        task.exception()
