"""The manners of a tool: it never raises, ends by its deadline, and tells a model in words of a failure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kronmem.async_client import AsyncClient
from kronmem.errors import InvalidInputError, NotFoundError, UnsupportedError
from kronmem.packs.bounded_call import bounded_async
from kronmem.packs.log_once import LogOnce
from kronmem.packs.tool_descriptions import UNAVAILABLE
from kronmem.packs.warmup import load_engine_for

OWN_DEADLINE = 0.8
"""The share of a tool's time that the call itself may take: the rest is left for queueing a memory in time."""


async def answered_async(client: AsyncClient, work: Callable[[], Awaitable[str]], timeout: float, log: LogOnce) -> str:
    """The answer of `work`, or words about its failure; a failing memory is logged once. Cancellation goes on."""
    try:
        await load_engine_for(client)  # before the deadline begins
        answer = await bounded_async(work, timeout)
    except Exception as error:  # noqa: BLE001 -- a tool that raises would end the agent's turn
        return failure_message(error, log)
    log.succeeded()
    return answer


def failure_message(error: Exception, log: LogOnce) -> str:
    """Words for a model: its own mistakes by name, everything else as an outage, which is logged."""
    if isinstance(error, NotFoundError):
        return "There is no memory with that id."
    if isinstance(error, (InvalidInputError, UnsupportedError)):
        return f"Not done: {error}."
    log.failed(error)
    return UNAVAILABLE
