"""Checks of a pack's arguments, made at once: a hook that fails later has no caller to raise in."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kronmem.agent_memory import AgentMemory
from kronmem.api.rules import MAX_HITS
from kronmem.async_agent_memory import AsyncAgentMemory
from kronmem.core import inputs
from kronmem.errors import ConfigError, InvalidInputError
from kronmem.state import State

ReadFrom = Iterable[str | AgentMemory | AsyncAgentMemory]
"""Further agents to read from: their ids, or their memories."""
# With the longest name of a tool behind it, a prefix stays within the 64 characters that OpenAI allows.
_PREFIX = re.compile(r"[A-Za-z0-9_-]{0,40}")


def check_limits(limit: int, timeout: float, threshold: float | None = None) -> None:
    """Refuse limits that every later recall would refuse."""
    inputs.limit(limit, MAX_HITS)
    inputs.threshold(threshold)
    inputs.timeout(timeout)


def check_prefix(prefix: str) -> str:
    """Accept a prefix that the names of tools may begin with."""
    if not _PREFIX.fullmatch(prefix):
        raise InvalidInputError("prefix may hold letters, digits, _ and - (it becomes part of a tool's name)")
    if prefix and prefix[-1] not in "_-":
        raise InvalidInputError(
            f"prefix must end with _: {prefix + '_'!r}, or the tool is called {prefix + 'remember'!r}"
        )
    return prefix


def check_read_from(read_from: ReadFrom, store: object = None) -> tuple[str, ...]:
    """Accept further agents to read from, by their ids or as memories of `store`; each once."""
    if isinstance(read_from, (AgentMemory, AsyncAgentMemory)):
        raise InvalidInputError("read_from must be a list of agents, not one memory: put it into [ ]")
    given = inputs.strings(read_from, "read_from")
    return tuple(dict.fromkeys(inputs.identifier(_agent_of(one, store), "read_from") for one in given))


def _agent_of(one: str | AgentMemory | AsyncAgentMemory, store: object) -> str:
    if not isinstance(one, (AgentMemory, AsyncAgentMemory)):
        return one
    if not one.fixed or one.session_id is not None or one.client.store != store:
        raise ConfigError(
            "read_from takes agents of the same store, whole and by a fixed id: "
            f"client.agent('team') without a session_id, or 'team', not {one!r}"
        )
    return one.agent_id


def check_memory(memory: AgentMemory | AsyncAgentMemory, caller: str) -> None:
    """Refuse anything but the memory of one agent."""
    if not isinstance(memory, (AgentMemory, AsyncAgentMemory)):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        kind = type(memory).__name__
        raise ConfigError(f"{caller} needs the memory of one agent, client.agent('my-agent'), not {kind}")


def check_agent_id(agent_id: object) -> None:
    """Refuse the memory of an agent where its id belongs."""
    if isinstance(agent_id, (AgentMemory, AsyncAgentMemory)):
        raise ConfigError(
            "this takes the id of an agent, not its memory: KronMemory('my-agent', client=AsyncClient(…)), or url= for "
            "a client of its own"
        )


def check_blocking(memory: AgentMemory) -> AgentMemory:
    """Refuse the memory of an `AsyncClient`: a blocking hook cannot await its answers."""
    if not isinstance(memory, AgentMemory):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        kind = type(memory).__name__
        raise ConfigError(f"this needs an AgentMemory, Client(…).agent('my-agent'), not {kind}")
    return memory


def check_blocking_state(state: State) -> State:
    """Refuse the state of an `AsyncClient`, for the same reason."""
    if not isinstance(state, State):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise ConfigError(f"this needs a State, Client(…).state('my-agent'), not {type(state).__name__}")
    return state


def check_capture(memory: AgentMemory | AsyncAgentMemory) -> None:
    """Refuse capture where nothing could keep a message while the service is away."""
    if not memory.client.can_queue:
        raise ConfigError(
            "capture needs the outbox that outbox=False switched off: without it a message said during an outage would "
            "be lost. Leave outbox= out or name a file, or pass capture=False"
        )


def check_ttl_days(ttl_days: int | None) -> int | None:
    """Accept the lifetime of captured memories."""
    inputs.ttl(ttl_days, None)
    return ttl_days
