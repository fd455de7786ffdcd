"""`kronmem export`: everything of one agent or of all, as JSON Lines."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, TextIO

import typer

from kronmem import AgentInfo, Client, ConfigError, InvalidInputError
from kronmem.cli import connection, errors, export_format, options, printing
from kronmem.core import inputs

Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file, not to standard output.")]
Json = Annotated[bool, typer.Option("--json", help="JSON Lines, as always.")]


def export(agent: options.AnyAgent = None, output: Output = None, url: options.Url = None, json: Json = True) -> None:
    """Write memories with their history, state and descriptions as JSON Lines: of one agent, or of all of them.

    A file is complete or not there: it is written beside its place, readable by you alone, and renamed at the end.
    Exits with 1, and writes nothing, when there is no such agent.
    """
    with connection.connected(url) as client:
        agents = _chosen(client, agent)
        with _written(output) as out:
            memories, state = _export(client, agents, out)
    if output is not None:
        more = f" and {state} of state" if state else ""
        printing.note(f"Exported {memories}{more} to {output}.")


def _chosen(client: Client, agent: str | None) -> list[AgentInfo]:
    # By id and written by name: at Kronvex two agents may have one name, and a name may hold any character.
    agents = [one for one in client.agents() if agent in (None, one.name)]
    if agent is not None and not agents:
        inputs.identifier(agent, "agent_id")
        if not errors.unknown(client, agent):
            printing.note(f"No agent {agent!r}.")
        raise typer.Exit(1)
    return agents


def _export(client: Client, agents: list[AgentInfo], out: TextIO) -> tuple[int, int]:
    """Write everything; how many memories and values of state it was."""
    memories = state = 0
    out.write(export_format.version_line())
    for one in agents:
        out.write(export_format.agent_line(one))
        for memory in client.memories(one.id, history=True):
            out.write(export_format.memory_line(memory, one.name))
            memories += 1
        for text in _state(client, one.id, one.name):
            out.write(text)
            state += 1
    out.write(export_format.end_line(memories, state))
    return memories, state


def _state(client: Client, ref: str, name: str) -> Iterator[str]:
    try:
        values = client.state(ref)
        keys = values.keys()
    except (ConfigError, InvalidInputError):  # a service that keeps none, or an agent whose id is no path
        return
    for key in keys:
        if (value := values.get(key)) is not None:
            yield export_format.state_line(name, key, value)


@contextmanager
def _written(output: Path | None) -> Generator[TextIO, None, None]:
    """Standard output, a pipe or a device; or a file that takes its place only when all of it is on disk."""
    if output is None or str(output) == "/dev/stdout":
        yield sys.stdout
    elif os.path.exists(output) and not os.path.isfile(output):  # renaming over it would remove it
        try:
            with open(output, "w", encoding="utf-8") as file:
                yield file
        except OSError as error:
            raise ConfigError(f"cannot write {output}: {error.strerror}") from None
    else:
        with _replaced(Path(os.path.realpath(output))) as file:  # the file that a link leads to; the link stays
            yield file


@contextmanager
def _replaced(output: Path) -> Generator[TextIO, None, None]:
    try:
        # mkstemp makes it for the owner alone, whatever the umask; in the same directory, so that renaming is atomic.
        descriptor, beside = tempfile.mkstemp(prefix=f".{output.name}.", suffix=".part", dir=output.parent)
    except OSError as error:
        raise ConfigError(f"cannot write {output}: {error.strerror}") from None
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, output)
    except OSError as error:
        raise ConfigError(f"cannot write {output}: {error.strerror}; the former file is as it was") from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside)
