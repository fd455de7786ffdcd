"""Reads many values of a state at once."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
from pydantic import JsonValue

from kronmem.async_state import AsyncState
from kronmem.errors import KronmemError

_AT_ONCE = 16
"""As many as an embedded engine answers at a time."""


async def values_of(state: AsyncState, keys: Sequence[str]) -> list[JsonValue]:
    """The values under keys, in their order, without those that are not there; a failure is raised as it is."""
    found: dict[str, JsonValue] = {}
    failed: list[KronmemError] = []
    waiting = iter(keys)

    async def work() -> None:
        for key in waiting:
            try:
                found[key] = await state.get(key)
            except KronmemError as error:  # not by the task group, which would wrap it
                failed.append(error)
                group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for _ in range(min(_AT_ONCE, len(keys))):
            group.start_soon(work)
    if failed:
        raise failed[0]
    return [value for key in keys if (value := found[key]) is not None]
