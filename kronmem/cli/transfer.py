"""The work of `kronmem export` and `kronmem import`: all of one agent or of all agents, as JSON Lines.

A file has a version line, a line per agent, memory and value of state, and an end line; one of kronmem 0.1 has memories
alone. It is read and checked as a whole before anything of it is stored; an import that is run again goes on.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TextIO

import typer
from pydantic import BaseModel, Field, JsonValue, ValidationError

from kronmem import (
    AgentInfo,
    Client,
    ConfigError,
    ConflictError,
    InvalidInputError,
    InvalidRequestError,
    KronmemError,
    Memory,
    StatusError,
    TransportError,
    UnsupportedError,
)
from kronmem.api.rules import MAX_TAGS, RESERVED
from kronmem.cli import connection, printing
from kronmem.core import inputs

FORMAT = 2
"""The number in the version line; the files of kronmem 0.1 had none."""
AT_ONCE = 100
"""Memories in one request: the client's own batch, so that the progress shown is of what is stored."""
NAMESPACE = uuid.UUID("5a6d3c1e-6d0f-5b60-9d0e-7a3f2f1c9b44")
"""Lines without an id get one made of their text, the same at every import."""
TIMES = ("created_at", "updated_at", "said_at", "expires_at")
REFUSALS = (InvalidInputError, InvalidRequestError, ConflictError)
"""The errors that are about one line, not about the service."""


class Line(BaseModel):
    """A line of any kind, and its number in the file that is imported."""

    number: int = Field(default=0, exclude=True)


class VersionLine(Line):
    """The first line of an export; the last one too, with the counts of the lines between them."""

    kronmem_export: int
    memories: int | None = None
    state: int | None = None


class AgentLine(Line):
    """An agent with its description; one without memories and state is there too."""

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
    agent_id: str = ""
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

    def seconds_left(self, now: datetime) -> float:
        """Of its life; of one that does not expire without end."""
        return math.inf if self.expires_at is None or self.pinned else (_aware(self.expires_at) - now).total_seconds()

    def own_id(self) -> str | None:
        """Its id, where that is one."""
        try:
            return str(uuid.UUID(self.id)) if self.id else None
        except ValueError:
            return None

    def memory(self, now: datetime) -> Memory:
        """The memory itself; one without a time is of now, one without an id has one made of its text."""
        parts = (self.agent_id, self.session_id or "", self.key or "", self.content)
        when = {name: _aware(time) for name in TIMES if (time := getattr(self, name)) is not None}
        given = {
            **self.model_dump(),
            "tags": self.tags[-MAX_TAGS:],
            "id": self.own_id() or str(uuid.uuid5(NAMESPACE, "\0".join(parts))),
        }
        return Memory.model_validate({**given, "created_at": now, **when})


Owned = AgentLine | StateLine | MemoryLine
MODELS: dict[str, type[VersionLine | Owned]] = {
    "content": MemoryLine,
    "state_key": StateLine,
    "agent_metadata": AgentLine,
    "kronmem_export": VersionLine,
}
"""By the names at the top of a line: a text, a value or metadata may hold any of them."""


def _aware(when: datetime) -> datetime:
    """A time without a zone is in UTC."""
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def _described(agent: AgentInfo) -> tuple[str | None, dict[str, JsonValue]]:
    """The description and the metadata of an agent; the object of kronmem's own at Kronvex is no part of it."""
    return agent.description, {name: value for name, value in agent.metadata.items() if name != RESERVED}


# ── export ───────────────────────────────────────────────────────────────────────────────────────────────────────


def write(agent: str | None, output: Path | None, url: str | None) -> None:
    """Write one agent, or all of them."""
    with connection.connected(url, patient=True) as client:
        agents = _chosen(client, agent)
        on_screen = output is None and sys.stdout.isatty()
        total = sum(one.memory_count for one in agents)
        with _written(output) as out, printing.progress("Exporting", total, hidden=on_screen) as advance:
            memories, state = _export(client, agents, out, advance)
    if output is not None:
        more = f" and {state} of state" if state else ""
        printing.note(f"Exported {memories}{more} to {output}.")


def _chosen(client: Client, agent: str | None) -> list[AgentInfo]:
    # By id and written by name: at Kronvex two agents may have one name, and a name may hold any character.
    agents = [one for one in client.agents() if agent in (None, one.name)]
    if agent is not None and not agents:
        inputs.identifier(agent, "agent_id")
        connection.nothing(client, agent, f"No agent {agent!r}.")
        raise typer.Exit(1)
    return agents


def _export(client: Client, agents: list[AgentInfo], out: TextIO, advance: Callable[[int], None]) -> tuple[int, int]:
    """Write everything; how many memories and values of state it was."""
    memories = state = 0
    out.write(VersionLine(kronmem_export=FORMAT).model_dump_json(exclude_none=True) + "\n")
    for one in agents:
        text, metadata = _described(one)
        out.write(AgentLine(agent_id=one.name, description=text, agent_metadata=metadata).model_dump_json() + "\n")
        for memory in client.memories(one.id, history=True):
            named = memory.model_copy(update={"agent_id": one.name})
            out.write(named.model_dump_json(include=printing.kept(memory)) + "\n")
            memories += 1
            advance(1)
        for key, value in _state(client, one.id):
            out.write(StateLine(agent_id=one.name, state_key=key, value=value).model_dump_json() + "\n")
            state += 1
    out.write(VersionLine(kronmem_export=FORMAT, memories=memories, state=state).model_dump_json() + "\n")
    return memories, state


def _state(client: Client, ref: str) -> Iterator[tuple[str, JsonValue]]:
    try:
        values = client.state(ref)
        keys = values.keys()
    except (ConfigError, InvalidInputError):  # a service that keeps none, or an agent whose id is no path
        return
    for key in keys:
        if (value := values.get(key)) is not None:
            yield key, value


@contextmanager
def _written(output: Path | None) -> Generator[TextIO, None, None]:
    """Standard output, a pipe or a device; or a file that takes its place only when all of it is on disk."""
    if output is None or str(output) == "/dev/stdout":
        yield sys.stdout
        return
    place = Path(os.path.realpath(output))  # the file that a link leads to; the link stays
    odd = place.exists() and not place.is_file()  # renaming over it would remove it
    beside = ""
    try:
        # mkstemp makes it for the owner alone, whatever the umask; in the same directory, so that renaming is atomic.
        made, beside = (-1, "") if odd else tempfile.mkstemp(prefix=f".{place.name}.", suffix=".part", dir=place.parent)
        with open(output if odd else made, "w", encoding="utf-8") as file:
            yield file
            if not odd:
                file.flush()
                os.fsync(file.fileno())
        if not odd:
            os.replace(beside, place)
    except OSError as error:
        former = "" if odd or not beside else "; the former file is as it was"
        raise ConfigError(f"cannot write {output}: {error.strerror}{former}") from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside)


# ── import: reading ──────────────────────────────────────────────────────────────────────────────────────────────


class Export(NamedTuple):
    """A file, read and checked: the memories oldest first."""

    memories: list[MemoryLine]
    state: list[StateLine]
    agents: list[AgentLine]
    unreadable: list[str]
    """The number and the problem of each line that cannot be read."""


def read(texts: Iterable[str], agent: str | None) -> Export:
    """Read and check a whole file before anything of it is stored; `agent` takes the place of those it names.

    Lines that cannot be read are left out and listed.
    """
    export, begun, promised = Export([], [], [], []), 0, -1
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            line = _line(number, text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            problem = f"line {number} was not imported: {where}: {first['msg']}"
            export.unreadable.append(problem.replace(": :", ":"))
            continue
        if isinstance(line, VersionLine):
            begun += 1 if line.memories is None else -1
            if line.memories is not None:
                promised = max(promised, 0) + line.memories + (line.state or 0)
            continue
        line.agent_id = agent or line.agent_id
        if not line.agent_id:
            raise InvalidInputError(f"line {number} names no agent: pass --agent")
        if isinstance(line, MemoryLine):
            export.memories.append(line)
        else:
            export.state.append(line) if isinstance(line, StateLine) else export.agents.append(line)
    if begun > 0:
        raise InvalidInputError(
            "the export was cut off: its last line is missing, so memories may be, too. Export it again; to import "
            "the lines that are there, remove the first one"
        )
    there = len(export.memories) + len(export.state)
    if begun == 0 and promised >= 0 and not there <= promised <= there + len(export.unreadable):
        raise InvalidInputError(
            f"the last line promises {promised} memories and values of state, but {there} are there: lines were lost "
            "or added. Export it again; to import the lines that are there, remove the first one"
        )
    # Newer ones stay newer where they arrive. An export lists them newest first; a list without times is in order.
    timed = [(_aware(line.created_at), line) for line in reversed(export.memories) if line.created_at is not None]
    export.memories[:] = [line for line in export.memories if line.created_at is None]
    export.memories.extend(line for _, line in sorted(timed, key=lambda pair: pair[0]))
    return export


def _line(number: int, text: str) -> VersionLine | Owned:
    try:
        given: object = json.loads(text)
        model = next((MODELS[name] for name in MODELS if isinstance(given, dict) and name in given), MemoryLine)
    except (ValueError, RecursionError):
        model = MemoryLine  # whose error names the place
    line = model.model_validate_json(text)
    line.number = number
    if isinstance(line, VersionLine) and line.kronmem_export > FORMAT:
        raise InvalidInputError(
            f"line {number}: this export is of format {line.kronmem_export}, written by a newer kronmem; "
            f"this one reads up to {FORMAT}: pip install -U kronmem"
        )
    return line


def _address(client: Client, export: Export) -> None:
    """Give the lines an id to store under: a name that cannot be typed stands for the agent that has it."""
    lines: list[Owned] = [*export.memories, *export.state, *export.agents]
    if not (odd := set(filter(_cannot_be_typed, {line.agent_id for line in lines}))):
        return
    ids = {one.name: one.id for one in client.agents()}
    if missing := sorted(odd - ids.keys()):
        raise InvalidInputError(
            f"no agent {missing[0]!r} exists there, and none can be made of that name: pass --agent"
        )
    for line in lines:
        line.agent_id = ids[line.agent_id] if line.agent_id in odd else line.agent_id


def _cannot_be_typed(name: str) -> bool:
    try:
        inputs.identifier(name, "agent_id")
    except InvalidInputError:
        return True
    return False


# ── import: storing ──────────────────────────────────────────────────────────────────────────────────────────────


def store(source: str, agent: str | None, url: str | None, as_json: bool) -> None:
    """Store an export."""
    with connection.connected(url, patient=True) as client:
        try:
            with sys.stdin if source == "-" else open(source, encoding="utf-8") as file:
                export = read(file, agent)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read {source}: {error}") from None
        _address(client, export)
        with printing.progress("Importing", len(export.memories)) as advance:
            work = Import(client, advance)
            with work.stoppable(len(export.memories)):
                work.store(export)
        printing.as_json({**work.counts}) if as_json else printing.line(work.words())
    if work.counts["refused"]:
        raise typer.Exit(1)


class Import:
    """Stores the lines of a file, and counts the outcomes."""

    def __init__(self, client: Client, advance: Callable[[int], None]) -> None:
        self._client, self._advance, self._now = client, advance, datetime.now(UTC)
        self.counts: dict[str, int] = dict.fromkeys(("imported", "already_there", "expired", "refused", "state"), 0)
        self._seen: dict[str, set[tuple[str | None, str]]] = {}

    def words(self) -> str:
        """The counts in a sentence."""
        state = f" and {self.counts['state']} of state" if self.counts["state"] else ""
        others = [name for name in ("already_there", "expired", "refused") if self.counts[name]]
        parts = [f"{self.counts[name]} {name.replace('_', ' ')}" for name in others]
        return ", ".join([f"Imported {self.counts['imported']}{state}", *parts]) + "."

    @contextmanager
    def stoppable(self, total: int) -> Generator[None, None, None]:
        """Note how far it came when it fails or is interrupted, and that it can go on."""
        try:
            yield
        except (KronmemError, KeyboardInterrupt) as stopped:
            done = sum(self.counts.values()) - self.counts["state"]
            printing.note(f"Stopped after {done} of {total}; run the same command again to go on.")
            if isinstance(stopped, KeyboardInterrupt):
                raise typer.Exit(connection.INTERRUPTED) from None
            raise

    def store(self, export: Export) -> None:
        """Restore everything as it was; where the service cannot, remember the current memories."""
        for problem in export.unreadable:
            printing.note(f"kronmem: {problem}")
        self.counts["refused"] = len(export.unreadable)
        living = [line for line in export.memories if line.seconds_left(self._now) > 0]
        self.counts["expired"] = len(export.memories) - len(living)
        self._advance(self.counts["expired"])
        try:
            for agent, own in groupby(sorted(living, key=lambda line: line.agent_id), key=lambda line: line.agent_id):
                self._restore(agent, list(own))
        except UnsupportedError:
            self._remember_all(living)
        for line in export.state:
            self._keep_state(line)
        self._describe_all(export.agents)

    def _restore(self, agent: str, lines: list[MemoryLine]) -> None:
        for start in range(0, len(lines), AT_ONCE):
            part = lines[start : start + AT_ONCE]
            self._restore_part(agent, part)
            self._advance(len(part))

    def _restore_part(self, agent: str, part: list[MemoryLine]) -> None:
        """Restore lines; where one of them is refused, the others without it."""
        try:
            # Newest first, as an export lists them: `restore` puts them in order.
            new = self._client.restore(agent, [line.memory(self._now) for line in reversed(part)])
        except REFUSALS as error:
            if len(part) == 1:
                self._refuse(part[0], "a memory", error)
                return
            middle = len(part) // 2
            for half in (part[:middle], part[middle:]):
                self._restore_part(agent, half)
        else:
            self.counts["imported"] += new
            self.counts["already_there"] += len(part) - new

    def _refuse(self, line: Owned, what: str, reason: object) -> None:
        printing.note(f"kronmem: line {line.number}: {what} of {line.agent_id} was not imported: {reason}")
        self.counts["refused"] += 1

    # ── services that date memories themselves and keep no history ───────────────────────────────────────────────

    def _remember_all(self, lines: list[MemoryLine]) -> None:
        fresh: list[MemoryLine] = []
        for line in lines:
            if line.superseded_by is None and self._is_new(line):
                self._count(line, fresh)
            self._advance(1)
        self._confirm(fresh)
        if former := sum(line.superseded_by is not None for line in lines):
            printing.note(f"kronmem: {former} former texts were not imported: this service keeps no history")
            self.counts["refused"] += former

    def _is_new(self, line: MemoryLine) -> bool:
        if (seen := self._seen.get(line.agent_id)) is None:
            seen = self._seen[line.agent_id] = self._stored(line.agent_id)
        mark = (line.session_id, line.content)
        self.counts["already_there"] += mark in seen
        new = mark not in seen
        seen.add(mark)
        return new

    def _count(self, line: MemoryLine, fresh: list[MemoryLine]) -> None:
        try:
            kept = self._remember(line, line.own_id())
        except (*REFUSALS, UnsupportedError) as error:
            self._refuse(line, "a memory", error)
            return
        if kept.queued:
            raise TransportError("the service stopped answering; the last memory waits in the outbox")
        fresh.append(line)
        self.counts["already_there" if kept.deduplicated else "imported"] += 1

    def _confirm(self, lines: list[MemoryLine]) -> None:
        """Store once more, under a new id, the memories that are not there after all.

        A service takes an id that it has already seen for a late repeat, and a forgotten memory stays forgotten; an
        import of a backup is to bring it back.
        """
        for agent in dict.fromkeys(line.agent_id for line in lines):
            there = self._stored(agent)
            for line in lines:
                if line.agent_id == agent and (line.session_id, line.content) not in there:
                    self._remember(line, None)

    def _remember(self, line: MemoryLine, memory_id: str | None) -> Memory:
        left = line.seconds_left(self._now)
        try:
            return self._client.remember(
                line.agent_id,
                line.content,
                line.memory_type,
                session_id=line.session_id,
                ttl_seconds=None if left == math.inf else max(int(left), 60),  # the minute that services want
                pinned=line.pinned,
                tags=line.tags[-MAX_TAGS:],
                metadata=line.metadata,
                memory_id=memory_id,
                role=line.role,
                key=line.key,
            )
        except ConflictError:
            if memory_id is None:
                raise
            return self._remember(line, None)

    def _stored(self, agent: str) -> set[tuple[str | None, str]]:
        """The same text in the same session is one memory at such a service."""
        return {(memory.session_id, memory.content) for memory in self._client.memories(agent)}

    # ── state and descriptions: where there is one already, it stays, and a different one is reported ────────────

    def _keep_state(self, line: StateLine) -> None:
        words = f"the state {line.state_key!r}"
        try:
            values = self._client.state(line.agent_id)
            there = values.get(line.state_key)
            if there is None:
                values.set(line.state_key, line.value)
                self.counts["state"] += 1
            elif there != line.value:
                self._refuse(line, words, "another value is there; `kronmem state delete` removes it")
        except (ConfigError, *REFUSALS) as error:
            self._refuse(line, words, error)

    def _describe_all(self, lines: list[AgentLine]) -> None:
        there = {ref: one for one in reversed(self._client.agents()) for ref in (one.name, one.id)} if lines else {}
        for ref, own in groupby(sorted(lines, key=lambda line: line.agent_id), key=lambda line: line.agent_id):
            different = {line.model_dump_json(): line for line in own}
            if len(different) > 1:
                reason = f"{len(different)} agents become one, and their descriptions differ"
                self._refuse(next(iter(different.values())), "the description", reason)
            else:
                self._describe(next(iter(different.values())), there.get(ref))

    def _describe(self, line: AgentLine, there: AgentInfo | None) -> None:
        known, given = _described(there) if there else None, (line.description, line.agent_metadata)
        if given in (known, (None, {})) and there:
            return
        if known not in (None, (None, {})):
            self._refuse(line, "the description", "another one is there")
            return
        try:
            self._client.describe(line.agent_id, description=line.description, metadata=line.agent_metadata or None)
        except (ConfigError, InvalidInputError, StatusError) as error:
            self._refuse(line, "the description", error)
