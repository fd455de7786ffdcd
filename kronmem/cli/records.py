"""The lines of an export: a version line, a line per agent, memory and value of state, and an end line.

JSON Lines. Files that kronmem 0.1 wrote have memories only and are read as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import cast

from pydantic import BaseModel, Field, JsonValue, ValidationError

from kronmem import AgentInfo, InvalidInputError, Memory
from kronmem.api.ids import RESERVED
from kronmem.cli import printing

FORMAT = 2
"""The number in the version line; the files of kronmem 0.1 had none."""


class VersionLine(BaseModel):
    """The first line of an export; the last one too, with the counts of the lines between them."""

    kronmem_export: int
    memories: int | None = None
    state: int | None = None


class AgentLine(BaseModel):
    """An agent, with what is said of it; one without memories and state is there too."""

    agent_id: str
    description: str | None = None
    agent_metadata: dict[str, JsonValue]


class StateLine(BaseModel):
    """A value of an agent's state."""

    agent_id: str
    state_key: str
    value: JsonValue


class MemoryLine(BaseModel):
    """A memory."""

    content: str
    id: str | None = None
    agent_id: str | None = None
    memory_type: str = "fact"
    session_id: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    pinned: bool = False
    access_count: int = 0
    role: str | None = None
    key: str | None = None
    superseded_by: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    said_at: datetime | None = None
    expires_at: datetime | None = None

    @property
    def agent(self) -> str:
        """The agent it belongs to; `read` has seen to it that there is one."""
        return self.agent_id or ""

    def seconds_left(self, now: datetime) -> int | None:
        """Of its life; at least the minute that services want. None: it does not expire."""
        if self.expires_at is None or self.pinned:
            return None
        return max(int((_aware(self.expires_at) - now).total_seconds()), 60)

    def expired(self, now: datetime) -> bool:
        """Is its lifetime over?"""
        return self.expires_at is not None and not self.pinned and _aware(self.expires_at) <= now

    def memory(self, memory_id: str, now: datetime) -> Memory:
        """The memory itself; one without a time is of now."""
        when = {name: _aware(time) for name in _TIMES if (time := getattr(self, name)) is not None}
        return Memory.model_validate({**self.model_dump(), "id": memory_id, "created_at": now, **when})


AnyLine = VersionLine | AgentLine | StateLine | MemoryLine


@dataclass(frozen=True)
class Export:
    """A file, read and checked: the memories oldest first."""

    memories: list[MemoryLine]
    state: list[StateLine]
    agents: list[AgentLine]


def version_line() -> str:
    """The first line."""
    return VersionLine(kronmem_export=FORMAT).model_dump_json(exclude_none=True) + "\n"


def end_line(memories: int, state: int) -> str:
    """The last line: without it the export was cut off."""
    return VersionLine(kronmem_export=FORMAT, memories=memories, state=state).model_dump_json() + "\n"


def memory_line(memory: Memory, agent: str) -> str:
    """A memory under the name of its agent."""
    return memory.model_copy(update={"agent_id": agent}).model_dump_json(include=set(printing.FIELDS)) + "\n"


def agent_fields(agent: AgentInfo) -> tuple[str | None, dict[str, JsonValue]]:
    """The description and the metadata of an agent; the object of kronmem's own at Kronvex is no part of it."""
    return agent.description, {name: value for name, value in agent.metadata.items() if name != RESERVED}


def agent_line(agent: AgentInfo) -> str:
    """An agent."""
    text, metadata = agent_fields(agent)
    return AgentLine(agent_id=agent.name, description=text, agent_metadata=metadata).model_dump_json() + "\n"


def state_line(agent: str, key: str, value: JsonValue) -> str:
    """A value of an agent's state."""
    return StateLine(agent_id=agent, state_key=key, value=value).model_dump_json() + "\n"


def read(texts: Iterable[str], agent: str | None) -> Export:
    """Read and check a whole file before anything of it is stored; `agent` takes the place of those it names."""
    memories: list[MemoryLine] = []
    state: list[StateLine] = []
    agents: list[AgentLine] = []
    begun = ended = 0
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        line = _line(number, text)
        if isinstance(line, VersionLine):
            begun, ended = begun + (line.memories is None), ended + (line.memories is not None)
        elif isinstance(line, StateLine):
            state.append(line.model_copy(update={"agent_id": agent or line.agent_id}))
        elif isinstance(line, AgentLine):
            agents.append(line.model_copy(update={"agent_id": agent or line.agent_id}))
        elif agent or line.agent_id:
            memories.append(line.model_copy(update={"agent_id": agent or line.agent_id}))
        else:
            raise InvalidInputError(f"line {number} names no agent: pass --agent")
    if begun > ended:
        raise InvalidInputError(
            "the export was cut off: its last line is missing, so memories may be, too. Export it again; to import "
            "the lines that are there, remove the first one"
        )
    return Export(list(_oldest_first(memories)), state, agents)


def _oldest_first(lines: list[MemoryLine]) -> Iterator[MemoryLine]:
    """Newer ones stay newer where they arrive. An export lists them newest first; a list without times is in order."""
    yield from (line for line in lines if line.created_at is None)
    timed = [(_aware(line.created_at), line) for line in reversed(lines) if line.created_at is not None]
    yield from (line for _, line in sorted(timed, key=lambda pair: pair[0]))


def _model(text: str) -> type[AnyLine]:
    """By the names at the top of the line: a text, a value or metadata may hold any of them."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return MemoryLine  # which says so
    given = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    marks: dict[str, type[AnyLine]]
    marks = {"content": MemoryLine, "state_key": StateLine, "agent_metadata": AgentLine, "kronmem_export": VersionLine}
    return next((model for name, model in marks.items() if name in given), MemoryLine)


def _line(number: int, text: str) -> AnyLine:
    model = _model(text)
    try:
        line = model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInputError(f"line {number}: {where}: {first['msg']}".replace(": :", ":")) from None
    if isinstance(line, VersionLine) and line.kronmem_export > FORMAT:
        raise InvalidInputError(
            f"line {number}: this export is of format {line.kronmem_export}, written by a newer kronmem; "
            f"this one reads up to {FORMAT}: pip install -U kronmem"
        )
    return line


_TIMES = ("created_at", "updated_at", "said_at", "expires_at")


def _aware(when: datetime) -> datetime:
    return when if when.tzinfo else when.replace(tzinfo=timezone.utc)
