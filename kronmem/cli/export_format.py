"""The format of an export: JSON Lines, a version line, a line per agent, memory and value of state, and an end line."""

from __future__ import annotations

from datetime import datetime, timezone

from pydantic import BaseModel, Field, JsonValue

from kronmem import AgentInfo, Memory
from kronmem.api.ids import RESERVED
from kronmem.cli import printing

FORMAT = 2
"""The number in the version line; the files of kronmem 0.1 had none."""


class Line(BaseModel):
    """A line of any kind, and its number in the file that is imported."""

    number: int = Field(default=0, exclude=True)


class VersionLine(Line):
    """The first line of an export; the last one too, with the counts of the lines between them."""

    kronmem_export: int
    memories: int | None = None
    state: int | None = None


class AgentLine(Line):
    """An agent, with what is said of it; one without memories and state is there too."""

    agent_id: str
    description: str | None = None
    agent_metadata: dict[str, JsonValue]


class StateLine(Line):
    """A value of an agent's state."""

    agent_id: str
    state_key: str
    value: JsonValue


class MemoryLine(Line):
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
        """The agent it belongs to; `import_file.read` has seen to it that there is one."""
        return self.agent_id or ""

    def seconds_left(self, now: datetime) -> int | None:
        """Of its life; at least the minute that services want. None: it does not expire."""
        if self.expires_at is None or self.pinned:
            return None
        return max(int((aware(self.expires_at) - now).total_seconds()), 60)

    def expired(self, now: datetime) -> bool:
        """Is its lifetime over?"""
        return self.expires_at is not None and not self.pinned and aware(self.expires_at) <= now

    def memory(self, memory_id: str, now: datetime) -> Memory:
        """The memory itself; one without a time is of now."""
        when = {name: aware(time) for name in _TIMES if (time := getattr(self, name)) is not None}
        return Memory.model_validate({**self.model_dump(), "id": memory_id, "created_at": now, **when})


AnyLine = VersionLine | AgentLine | StateLine | MemoryLine


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


_TIMES = ("created_at", "updated_at", "said_at", "expires_at")


def aware(when: datetime) -> datetime:
    """A time without a zone is in UTC."""
    return when if when.tzinfo else when.replace(tzinfo=timezone.utc)
