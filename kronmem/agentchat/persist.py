"""Resumes a team: its state is loaded at the start, and its changes are saved after every message.

Memories that were recalled into it are taken out before saving, so that a forgotten one does not live on there.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

from pydantic import JsonValue

from kronmem import AsyncState, State
from kronmem.agentchat.changed_state import Stateful, StateSaver, watching
from kronmem.agentchat.content import OURS
from kronmem.agentchat.injection import SOURCE
from kronmem.packs.injected_block import is_block

log = logging.getLogger("kronmem")


def persisted(
    state: AsyncState | State, key: str, team: Stateful, *, timeout: float = 10.0
) -> AbstractAsyncContextManager[None]:
    """Load the team's state from `key` if there is any, and save its changes after every message and at the end.

    A save on the way that fails is logged once, and the run goes on. The last save has `timeout` seconds, also after an
    error or a cancellation: if it fails then, that is logged and the first error goes on, otherwise it is raised. A
    state that cannot be loaded is an error and is not overwritten. Blocks injected by `KronMemory` are not saved;
    messages of models and tools are.
    """
    if isinstance(team, str):  # pyright: ignore[reportUnnecessaryIsInstance] # the order of 0.2: team, state, key
        warnings.warn(
            "persisted(team, state, key) is now persisted(state, key, team)", DeprecationWarning, stacklevel=2
        )
        team, state, key = cast("tuple[Stateful, AsyncState | State, str]", (state, key, team))
    return _persisted(state, key, team, timeout)


@asynccontextmanager
async def _persisted(state: AsyncState | State, key: str, team: Stateful, timeout: float) -> AsyncGenerator[None, None]:
    saver = StateSaver(team, state, key, timeout, lambda saved: told_once(without_memories(saved)))
    saved = await saver.read()
    if saved is not None:
        await team.load_state(saved)
    try:
        async with watching(team, saver):
            yield
    except BaseException:
        await _rescue(saver, key)
        raise
    await saver.save()


def without_memories(value: JsonValue) -> JsonValue:
    """A saved state without injected blocks and their events, at any depth."""
    if isinstance(value, dict):
        return {name: without_memories(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_memories(inner) for inner in value if not _is_injected(inner)]
    return value


def told_once(value: JsonValue) -> JsonValue:
    """A team's state in which no agent has a message both in its model's context and in its buffer.

    AutoGen empties the buffer when the agent has answered: saved during a turn and loaded again, the agent would hear
    the message twice.
    """
    if not isinstance(value, dict) or not isinstance(agents := value.get("agent_states"), dict):
        return value
    return {
        **value,
        "agent_states": {name: _told_once(one, _results_told_by(name, agents)) for name, one in agents.items()},
    }


def _told_once(agent: JsonValue, results: list[JsonValue]) -> JsonValue:
    if not isinstance(agent, dict):
        return agent
    match agent:
        case {"message_buffer": list(buffer), "agent_state": {"llm_context": {"messages": list(context)}}}:
            return {**agent, "message_buffer": buffer[_heard(buffer, _unanswered(context, results)) :]}
        case {"agent_state": dict(inner)}:  # a team within the team
            return {**agent, "agent_state": told_once(inner)}
        case _:
            return agent


def _results_told_by(name: str, agents: Mapping[str, JsonValue]) -> list[JsonValue]:
    """The results of an agent's tools in the history of its team, which holds those of finished turns only."""
    histories = [one.get("message_thread") for one in agents.values() if isinstance(one, dict)]
    return [
        message.get("content")
        for history in histories
        if isinstance(history, list)
        for message in history
        if isinstance(message, dict)
        and (message.get("type"), message.get("source")) == ("ToolCallExecutionEvent", name)
    ]


def _unanswered(context: Sequence[JsonValue], results: list[JsonValue]) -> list[JsonValue]:
    """The messages of users in a model's context that came after its last finished turn.

    A turn ends with an answer, or with the results of its tools: those look the same while the model still thinks
    about them, but are not among `results` then.
    """
    heard = list[JsonValue]()
    for one in context:
        match one:
            case {"type": "UserMessage", "content": content}:
                heard.append(content)
            case {"type": "AssistantMessage", "content": str()}:  # an answer; a call of tools is a list
                heard.clear()
            case {"type": "FunctionExecutionResultMessage", "content": content} if content in results:
                results.remove(content)  # once each: some models give every call the same id
                heard.clear()
            case _:
                pass
    return heard


def _heard(buffer: Sequence[JsonValue], heard: Sequence[JsonValue]) -> int:
    """How many messages at the beginning of the buffer are the last ones that were heard."""
    said = [one.get("content") for one in buffer if isinstance(one, dict)]
    return next((count for count in range(len(said), 0, -1) if said[:count] == heard[-count:]), 0)


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


async def _rescue(saver: StateSaver, key: str) -> None:
    try:
        await saver.save()
    except Exception as error:  # noqa: BLE001 -- the error that ended the run is the one to be raised
        log.warning("the state %r could not be saved (%s: %s)", key, type(error).__name__, error)
