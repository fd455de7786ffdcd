"""AutoGen's cancellation token, honoured."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from autogen_core import CancellationToken

T = TypeVar("T")


async def until_cancelled(work: Coroutine[object, object, T], token: CancellationToken | None) -> T:
    """Await the work; cancelling the token ends it with CancelledError, and so does cancelling the caller."""
    if token is None:
        return await work
    task = asyncio.ensure_future(work)
    token.link_future(task)
    return await task
