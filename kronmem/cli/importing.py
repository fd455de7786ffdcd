"""`kronmem import`: an export into any service; stopped and run again, it goes on."""

from __future__ import annotations

import hashlib
import sys
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import groupby
from typing import Annotated

import typer

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
from kronmem.api.limits import MAX_TAGS
from kronmem.cli import connection, errors, import_file, options, printing
from kronmem.cli.export_format import AgentLine, MemoryLine, StateLine, agent_fields
from kronmem.cli.import_file import Export
from kronmem.core import inputs

AT_ONCE = 100
"""Memories in one request: the client's own batch, so that the progress shown is of what is stored."""
_NAMESPACE = uuid.UUID("5a6d3c1e-6d0f-5b60-9d0e-7a3f2f1c9b44")
"""Lines without an id get one made of their text, the same at every import."""

_REFUSALS = (InvalidInputError, InvalidRequestError, ConflictError)
"""The errors that are about one memory, not about the service."""

Source = Annotated[str, typer.Argument(help="A file as export writes it; - reads standard input.")]
Into = Annotated[
    str | None, typer.Option("--agent", "-a", help="Store everything under this agent, not under its own.")
]


@dataclass
class Tally:
    """The fate of the lines, counted."""

    imported: int = 0
    known: int = 0
    expired: int = 0
    refused: int = 0
    state: int = 0
    seen: dict[str, set[bytes]] = field(default_factory=dict[str, set[bytes]])

    def counts(self) -> dict[str, int]:
        """By the names that --json has."""
        found = {"imported": self.imported, "already_there": self.known, "expired": self.expired}
        return {**found, "refused": self.refused, "state": self.state}

    def words(self) -> str:
        """The same in a sentence."""
        others = {"already there": self.known, "expired": self.expired, "refused": self.refused}
        parts = [f"Imported {self.imported}" + (f" and {self.state} of state" if self.state else "")]
        return ", ".join([*parts, *(f"{count} {name}" for name, count in others.items() if count)]) + "."


def import_(source: Source = "-", agent: Into = None, url: options.Url = None, json: options.Json = False) -> None:
    """Store an export. May be stopped and run again: memories that exist already are not changed.

    Embedded and served, memories come back as they were, with times, counts and history. A service without those
    takes the current memories, oldest first, and dates them itself.
    """
    tally = Tally()
    with connection.connected(url) as client:
        export = _addressed(client, _read(source, agent))
        for problem in export.unreadable:
            printing.note(f"kronmem: {problem}")
        tally.refused = len(export.unreadable)
        with _stoppable(tally, len(export.memories)), _progress(len(export.memories)) as advance:
            _store(client, export.memories, tally, advance)
            for line in export.state:
                _keep_state(client, line, tally)
            _describe_all(client, export.agents, tally)
        printing.as_json(dict(tally.counts())) if json else printing.line(tally.words())
    if tally.refused:
        raise typer.Exit(1)


@contextmanager
def _stoppable(tally: Tally, total: int) -> Generator[None, None, None]:
    """Say how far it came when it fails or is interrupted, and that it can go on."""
    try:
        yield
    except (KronmemError, KeyboardInterrupt) as stopped:
        done = tally.imported + tally.known + tally.expired + tally.refused
        printing.note(f"Stopped after {done} of {total}; run the same command again to go on.")
        if isinstance(stopped, KeyboardInterrupt):
            raise typer.Exit(errors.INTERRUPTED) from None
        raise


def _read(source: str, agent: str | None) -> Export:
    try:
        with sys.stdin if source == "-" else open(source, encoding="utf-8") as file:
            return import_file.read(file, agent)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {source}: {error}") from None


def _addressed(client: Client, export: Export) -> Export:
    """The lines with an id to store under: a name that cannot be typed stands for the agent that has it."""
    names = {one.agent for one in export.memories}
    names |= {one.agent_id for one in export.state} | {one.agent_id for one in export.agents}
    odd = set(filter(_cannot_be_typed, names))
    ids = {one.name: one.id for one in client.agents()} if odd else {}
    if missing := sorted(odd - ids.keys()):
        raise InvalidInputError(
            f"no agent {missing[0]!r} exists there, and none can be made of that name: pass --agent"
        )
    if not odd:
        return export
    memories = [one.model_copy(update={"agent_id": ids.get(one.agent, one.agent)}) for one in export.memories]
    state = [one.model_copy(update={"agent_id": ids.get(one.agent_id, one.agent_id)}) for one in export.state]
    agents = [one.model_copy(update={"agent_id": ids.get(one.agent_id, one.agent_id)}) for one in export.agents]
    return Export(memories, state, agents, export.unreadable)


def _cannot_be_typed(name: str) -> bool:
    try:
        inputs.identifier(name, "agent_id")
    except InvalidInputError:
        return True
    return False


def _store(client: Client, lines: list[MemoryLine], tally: Tally, advance: Callable[[int], None]) -> None:
    """Restore everything as it was; where the service cannot, remember the current memories."""
    now = datetime.now(timezone.utc)
    living = [line for line in lines if not line.expired(now)]
    tally.expired = len(lines) - len(living)
    advance(tally.expired)
    try:
        for agent, own in groupby(sorted(living, key=lambda line: line.agent), key=lambda line: line.agent):
            _restore(client, agent, list(own), now, tally, advance)
    except UnsupportedError:
        _remember_all(client, living, now, tally, advance)


def _restore(
    client: Client, agent: str, lines: list[MemoryLine], now: datetime, tally: Tally, advance: Callable[[int], None]
) -> None:
    for start in range(0, len(lines), AT_ONCE):
        part = lines[start : start + AT_ONCE]
        _restore_part(client, agent, part, now, tally)
        advance(len(part))


def _restore_part(client: Client, agent: str, part: list[MemoryLine], now: datetime, tally: Tally) -> None:
    """Restore lines; where one of them is refused, the others without it."""
    try:
        # Newest first, as an export lists them: `restore` puts them in order.
        new = client.restore(agent, [line.memory(_id(line) or _made(line), now) for line in reversed(part)])
    except _REFUSALS as error:
        if len(part) == 1:
            _refuse(part[0], str(error), tally)
            return
        middle = len(part) // 2
        for half in (part[:middle], part[middle:]):
            _restore_part(client, agent, half, now, tally)
    else:
        tally.imported += new
        tally.known += len(part) - new


def _made(line: MemoryLine) -> str:
    return str(uuid.uuid5(_NAMESPACE, "\0".join((line.agent, line.session_id or "", line.key or "", line.content))))


# ── services that date memories themselves and keep no history ───────────────────────────────────────────────────


def _remember_all(
    client: Client, lines: list[MemoryLine], now: datetime, tally: Tally, advance: Callable[[int], None]
) -> None:
    fresh: list[MemoryLine] = []
    for line in lines:
        if line.superseded_by is None and _is_new(client, line, tally):
            _count(client, line, now, tally, fresh)
        advance(1)
    _confirm(client, fresh, now)
    if former := sum(line.superseded_by is not None for line in lines):
        printing.note(f"kronmem: {former} former texts were not imported: this service keeps no history")
        tally.refused += former


def _refuse(line: MemoryLine | StateLine | AgentLine, reason: str, tally: Tally) -> None:
    what = "a memory" if isinstance(line, MemoryLine) else "the description"
    if isinstance(line, StateLine):
        what = f"the state {line.state_key!r}"
    printing.note(f"kronmem: line {line.number}: {what} of {line.agent_id} was not imported: {reason}")
    tally.refused += 1


def _count(client: Client, line: MemoryLine, now: datetime, tally: Tally, fresh: list[MemoryLine]) -> None:
    try:
        kept = _remember(client, line, now, _id(line))
    except (*_REFUSALS, UnsupportedError) as error:
        _refuse(line, str(error), tally)
        return
    if kept.queued:
        raise TransportError("the service stopped answering; the last memory waits in the outbox")
    fresh.append(line)
    tally.known += kept.deduplicated
    tally.imported += not kept.deduplicated


def _is_new(client: Client, line: MemoryLine, tally: Tally) -> bool:
    seen = tally.seen.get(line.agent)
    if seen is None:
        seen = tally.seen[line.agent] = _marks(client, line.agent)
    mark = _mark(line.session_id, line.content)
    if mark in seen:
        tally.known += 1
        return False
    seen.add(mark)
    return True


def _confirm(client: Client, lines: list[MemoryLine], now: datetime) -> None:
    """Store once more, under a new id, the memories that are not there after all.

    A service takes an id that it has already seen for a late repeat, and what was forgotten stays forgotten; whoever
    imports a backup wants it back.
    """
    for agent in dict.fromkeys(line.agent for line in lines):
        there = _marks(client, agent)
        for line in lines:
            if line.agent == agent and _mark(line.session_id, line.content) not in there:
                _remember(client, line, now, None)


def _remember(client: Client, line: MemoryLine, now: datetime, memory_id: str | None) -> Memory:
    try:
        return client.remember(
            line.agent,
            line.content,
            line.memory_type,
            session_id=line.session_id,
            ttl_seconds=line.seconds_left(now),
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
        return _remember(client, line, now, None)


def _marks(client: Client, agent: str) -> set[bytes]:
    return {_mark(memory.session_id, memory.content) for memory in client.memories(agent)}


def _mark(session_id: str | None, content: str) -> bytes:
    """The same for the same text in the same session, which is one memory at such a service."""
    return hashlib.blake2b(f"{session_id or ''}\0{content}".encode(), digest_size=16).digest()


def _id(line: MemoryLine) -> str | None:
    try:
        return str(uuid.UUID(line.id)) if line.id else None
    except ValueError:
        return None


# ── state ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _keep_state(client: Client, line: StateLine, tally: Tally) -> None:
    """Keep a value where there is none; another one that is there stays, and is reported."""
    try:
        values = client.state(line.agent_id)
        there = values.get(line.state_key)
        if there is None:
            values.set(line.state_key, line.value)
            tally.state += 1
        elif there != line.value:
            _refuse(line, "another value is there; `kronmem state delete` removes it", tally)
    except (ConfigError, *_REFUSALS) as error:
        _refuse(line, str(error), tally)


# ── agents ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _describe_all(client: Client, lines: list[AgentLine], tally: Tally) -> None:
    """Describe the agents, after their memories are there; a description that is there stays, another is reported."""
    there = {ref: one for one in reversed(client.agents()) for ref in (one.name, one.id)} if lines else {}
    for ref, own in groupby(sorted(lines, key=lambda line: line.agent_id), key=lambda line: line.agent_id):
        told = {line.model_dump_json(): line for line in own}
        first = next(iter(told.values()))
        if len(told) > 1:
            _refuse(first, f"{len(told)} agents become one, and their descriptions differ", tally)
        else:
            _describe(client, first, there.get(ref), tally)


def _describe(client: Client, line: AgentLine, there: AgentInfo | None, tally: Tally) -> None:
    known = agent_fields(there) if there else None
    given = (line.description, line.agent_metadata)
    if given in (known, (None, {})) and there:
        return
    if known not in (None, (None, {})):
        _refuse(line, "another one is there", tally)
        return
    try:
        client.describe(line.agent_id, description=line.description, metadata=line.agent_metadata or None)
    except (ConfigError, InvalidInputError, StatusError) as error:
        _refuse(line, str(error), tally)


@contextmanager
def _progress(total: int) -> Generator[Callable[[int], None], None, None]:
    """A bar on the terminal; nothing when nobody is looking."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("Importing", total=total)
        yield lambda count: bar.advance(task, count)
