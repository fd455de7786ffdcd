"""A team that goes on where it stopped: its state loaded on the way in and saved on the way out.

Memories that were recalled into it are taken out before saving, so that a forgotten one does not live on there.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol, cast

import anyio
from anyio import to_thread
from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from kronmem import AsyncState, DeadlineError, InvalidInputError, State
from kronmem.agentchat.content import OURS
from kronmem.agentchat.injection import SOURCE
from kronmem.packs.block import is_block

log = logging.getLogger("kronmem")


class Stateful(Protocol):
    """A team or an agent: AutoGen's own two methods."""

    async def save_state(self) -> Mapping[str, Any]:
        """Tell everything that is needed to go on."""
        ...

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        ...


@asynccontextmanager
async def persisted(
    team: Stateful, state: AsyncState | State, key: str, *, timeout: float = 10.0
) -> AsyncGenerator[None, None]:
    """Load the team's state from `key` if there is any, and save it there at the end, also after an error.

    The save has `timeout` seconds, also after a cancellation. If it fails after another error, that is logged and the
    first error goes on. A state that cannot be loaded is an error and is not overwritten. Blocks injected by
    `KronMemory` are not saved; messages of models and tools are.
    """
    saved = await _get(state, key)
    if saved is not None:
        await team.load_state(_checked(saved, key))
    try:
        yield
    except BaseException:
        await _rescue(team, state, key, timeout)
        raise
    await _save(team, state, key, timeout)


def without_memories(value: JsonValue) -> JsonValue:
    """A saved state without injected blocks and their events, at any depth."""
    if isinstance(value, dict):
        return {name: without_memories(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_memories(inner) for inner in value if not _is_injected(inner)]
    return value


def _is_injected(value: JsonValue) -> bool:
    """A block in a model's context, or the event that told of it in a team's history."""
    if not isinstance(value, dict):
        return False
    content = value.get("content")
    if value.get("source") == SOURCE and isinstance(content, str):
        return is_block(content)
    if value.get("type") != "MemoryQueryEvent" or not isinstance(content, list):
        return False
    return any(isinstance(one, dict) and OURS in cast("dict[str, Any]", one.get("metadata") or {}) for one in content)


async def _save(team: Stateful, state: AsyncState | State, key: str, timeout: float) -> None:
    try:
        with anyio.fail_after(timeout, shield=True):
            plain = cast("JsonValue", to_jsonable_python(await team.save_state()))
            await _set(state, key, without_memories(plain))
    except TimeoutError:
        raise DeadlineError(f"the state {key!r} was not saved within {timeout} s") from None


async def _rescue(team: Stateful, state: AsyncState | State, key: str, timeout: float) -> None:
    try:
        await _save(team, state, key, timeout)
    except Exception as error:  # noqa: BLE001 -- the error that ended the run is the one to be raised
        log.warning("the state %r could not be saved (%s: %s)", key, type(error).__name__, error)


def _checked(saved: JsonValue, key: str) -> Mapping[str, JsonValue]:
    if not isinstance(saved, dict):
        raise InvalidInputError(f"the value under {key!r} is not the state of a team")
    return saved


async def _get(state: AsyncState | State, key: str) -> JsonValue:
    return await state.get(key) if isinstance(state, AsyncState) else await to_thread.run_sync(state.get, key)


async def _set(state: AsyncState | State, key: str, value: JsonValue) -> None:
    if isinstance(state, AsyncState):
        await state.set(key, value)
    else:
        await to_thread.run_sync(state.set, key, value, abandon_on_cancel=True)
