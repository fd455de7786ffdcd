"""A file to import, read and checked as a whole before anything of it is stored; those of kronmem 0.1 as well."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from pydantic import ValidationError

from kronmem import InvalidInputError
from kronmem.cli.export_format import FORMAT, AgentLine, AnyLine, MemoryLine, StateLine, VersionLine, aware


@dataclass(frozen=True)
class Export:
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
    unreadable: list[str] = []
    promised = 0
    memories: list[MemoryLine] = []
    state: list[StateLine] = []
    agents: list[AgentLine] = []
    begun = ended = 0
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            line = _line(number, text)
        except ValidationError as error:
            unreadable.append(_problem(number, error))
            continue
        if isinstance(line, VersionLine):
            begun, ended = begun + (line.memories is None), ended + (line.memories is not None)
            promised += (line.memories or 0) + (line.state or 0)
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
    there = len(memories) + len(state)
    if begun == ended > 0 and not there <= promised <= there + len(unreadable):
        raise InvalidInputError(
            f"the last line promises {promised} memories and values of state, but {there} are there: lines were lost "
            "or added. Export it again; to import the lines that are there, remove the first one"
        )
    return Export(list(_oldest_first(memories)), state, agents, unreadable)


def _oldest_first(lines: list[MemoryLine]) -> Iterator[MemoryLine]:
    """Newer ones stay newer where they arrive. An export lists them newest first; a list without times is in order."""
    yield from (line for line in lines if line.created_at is None)
    timed = [(aware(line.created_at), line) for line in reversed(lines) if line.created_at is not None]
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
    line = _model(text).model_validate_json(text)
    line.number = number
    if isinstance(line, VersionLine) and line.kronmem_export > FORMAT:
        raise InvalidInputError(
            f"line {number}: this export is of format {line.kronmem_export}, written by a newer kronmem; "
            f"this one reads up to {FORMAT}: pip install -U kronmem"
        )
    return line


def _problem(number: int, error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"line {number} was not imported: {where}: {first['msg']}".replace(": :", ":")
