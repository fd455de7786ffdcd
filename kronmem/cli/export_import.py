"""export and import: memories as JSON Lines, from anywhere to anywhere."""

from __future__ import annotations

import hashlib
import sys
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, TextIO

import typer
from pydantic import BaseModel, Field, JsonValue, ValidationError

from kronmem import Client, ConfigError, ConflictError, InvalidInputError, KronmemError, Memory, TransportError
from kronmem.cli import options, printing
from kronmem.core import inputs

Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file, not to standard output.")]
Source = Annotated[str, typer.Argument(help="A file as export writes it; - reads standard input.")]
Into = Annotated[
    str | None, typer.Option("--agent", "-a", help="Store everything under this agent, not under its own.")
]
Json = Annotated[bool, typer.Option("--json", help="JSON Lines, as always.")]


class Line(BaseModel):
    """One line of a file: a memory."""

    content: str
    id: str | None = None
    agent_id: str | None = None
    memory_type: str = "fact"
    session_id: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    pinned: bool = False
    role: str | None = None
    key: str | None = None
    superseded_by: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    expires_at: datetime | None = None

    def seconds_left(self, now: datetime) -> int | None:
        """Of its life; at least the minute that services want. None: it does not expire."""
        if self.expires_at is None or self.pinned:
            return None
        return max(int((_aware(self.expires_at) - now).total_seconds()), 60)

    def expired(self, now: datetime) -> bool:
        """Is it over, or was it superseded?"""
        return self.superseded_by is not None or (
            self.expires_at is not None and not self.pinned and _aware(self.expires_at) <= now
        )

    def mark(self) -> bytes:
        """The same for the same text in the same session, which is one memory everywhere."""
        return _mark(self.session_id, self.content)


@dataclass
class Tally:
    """The fate of the lines, counted."""

    imported: int = 0
    known: int = 0
    expired: int = 0
    refused: int = 0
    seen: dict[str, set[bytes]] = field(default_factory=dict[str, set[bytes]])


def export(agent: options.AnyAgent = None, output: Output = None, url: options.Url = None, json: Json = True) -> None:
    """Write memories as JSON Lines, newest first: of one agent, or of all of them."""
    with printing.connected(url) as client, _written(output) as out:
        # By id and written by name: at Kronvex two agents may have one name, and a name may hold any character.
        agents = [(agent, agent)] if agent else [(one.id, one.name) for one in client.agents()]
        count = 0
        for ref, name in agents:
            for memory in client.memories(ref):
                out.write(_packed(memory.model_copy(update={"agent_id": name})))
                count += 1
        if output is not None:
            printing.note(f"Exported {count} to {output}.")


def import_(source: Source = "-", agent: Into = None, url: options.Url = None, json: options.Json = False) -> None:
    """Store memories from JSON Lines. May be stopped and run again: memories already there are left alone.

    The oldest go first. Ids, types, sessions, tags, metadata, pins and expiry are kept; the service sets the time.
    """
    with printing.connected(url) as client:
        lines = _addressed(client, _read(source, agent))
        tally = Tally()
        try:
            with _progress(len(lines)) as advance:
                _store(client, lines, tally, advance)
        except KronmemError:
            printing.note(f"Stopped after {tally.imported}; run the same command again to go on.")
            raise
        _say(tally, json)
    if tally.refused:
        raise typer.Exit(1)


def _addressed(client: Client, lines: list[Line]) -> list[Line]:
    """The lines with an id to store under: a name that cannot be typed stands for the agent that has it."""
    odd = {str(line.agent_id) for line in lines if _cannot_be_typed(str(line.agent_id))}
    ids = {one.name: one.id for one in client.agents()} if odd else {}
    if missing := sorted(odd - ids.keys()):
        raise InvalidInputError(
            f"no agent {missing[0]!r} exists there, and none can be made of that name: pass --agent"
        )
    return [line.model_copy(update={"agent_id": ids.get(str(line.agent_id), line.agent_id)}) for line in lines]


def _cannot_be_typed(name: str) -> bool:
    try:
        inputs.identifier(name, "agent_id")
    except InvalidInputError:
        return True
    return False


def _store(client: Client, lines: list[Line], tally: Tally, advance: Callable[[], None]) -> None:
    now = datetime.now(timezone.utc)
    fresh: list[Line] = []
    for line in lines:
        if _is_new(client, line, now, tally):
            _count(client, line, now, tally, fresh)
        advance()
    _confirm(client, fresh, now)


def _count(client: Client, line: Line, now: datetime, tally: Tally, fresh: list[Line]) -> None:
    try:
        kept = _remember(client, line, now, _id(line.id))
    except ConflictError as error:
        printing.note(f"kronmem: a memory of {line.agent_id} was not imported: {error}")
        tally.refused += 1
        return
    if kept.queued:
        raise TransportError("the service stopped answering; the last memory waits in the outbox")
    fresh.append(line)
    tally.known += kept.deduplicated
    tally.imported += not kept.deduplicated


def _is_new(client: Client, line: Line, now: datetime, tally: Tally) -> bool:
    if line.expired(now):
        tally.expired += 1
        return False
    seen = tally.seen.get(str(line.agent_id))
    if seen is None:
        seen = tally.seen[str(line.agent_id)] = _marks(client, str(line.agent_id))
    if line.mark() in seen:
        tally.known += 1
        return False
    seen.add(line.mark())
    return True


def _confirm(client: Client, lines: list[Line], now: datetime) -> None:
    """A service takes an id that it has already seen for a late repeat, and a forgotten memory stays forgotten.

    An import is meant to bring it back: a memory that is not there after all is stored once more under a new id.
    """
    for agent in dict.fromkeys(str(line.agent_id) for line in lines):
        there = _marks(client, agent)
        for line in lines:
            if line.agent_id == agent and line.mark() not in there:
                _remember(client, line, now, None)


def _remember(client: Client, line: Line, now: datetime, memory_id: str | None) -> Memory:
    try:
        return client.remember(
            str(line.agent_id),
            line.content,
            line.memory_type,
            session_id=line.session_id,
            ttl_seconds=line.seconds_left(now),
            pinned=line.pinned,
            tags=line.tags,
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
    return hashlib.blake2b(f"{session_id or ''}\0{content}".encode(), digest_size=16).digest()


def _id(given: str | None) -> str | None:
    try:
        return str(uuid.UUID(given)) if given else None
    except ValueError:
        return None


def _aware(when: datetime) -> datetime:
    return when if when.tzinfo else when.replace(tzinfo=timezone.utc)


def _packed(memory: Memory) -> str:
    return memory.model_dump_json(include=set(printing.FIELDS)) + "\n"


def _read(source: str, agent: str | None) -> list[Line]:
    try:
        with sys.stdin if source == "-" else open(source, encoding="utf-8") as file:
            lines = [_line(number, text, agent) for number, text in enumerate(file, 1) if text.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {source}: {error}") from None
    return list(_oldest_first(lines))


def _oldest_first(lines: Iterable[Line]) -> Iterator[Line]:
    """Newer memories stay newer where they arrive; lines without a time keep their place before all others."""
    never = datetime(1, 1, 1, tzinfo=timezone.utc)
    yield from sorted(lines, key=lambda line: _aware(line.created_at) if line.created_at else never)


def _line(number: int, text: str, agent: str | None) -> Line:
    try:
        line = Line.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInputError(f"line {number}: {where}: {first['msg']}".replace(": :", ":")) from None
    if not (agent or line.agent_id):
        raise InvalidInputError(f"line {number} names no agent: pass --agent")
    return line.model_copy(update={"agent_id": agent or line.agent_id})


@contextmanager
def _written(output: Path | None) -> Generator[TextIO, None, None]:
    if output is None:
        yield sys.stdout
        return
    try:
        with open(output, "w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise ConfigError(f"cannot write {output}: {error.strerror}") from None


@contextmanager
def _progress(total: int) -> Generator[Callable[[], None], None, None]:
    """A bar on the terminal; nothing when nobody is looking."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("Importing", total=total)
        yield lambda: bar.advance(task)


def _say(tally: Tally, json: bool) -> None:
    if json:
        counts = {"imported": tally.imported, "already_there": tally.known, "expired": tally.expired}
        printing.as_json({**counts, "refused": tally.refused})
        return
    others = [
        f"{tally.known} already there" if tally.known else "",
        f"{tally.expired} expired" if tally.expired else "",
        f"{tally.refused} refused" if tally.refused else "",
    ]
    printing.line(", ".join([f"Imported {tally.imported}", *(part for part in others if part)]) + ".")
