"""The options and arguments that commands share, each described once, and how their values are read."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Sequence
from typing import Annotated, TypeAlias, TypedDict, cast
from urllib.parse import quote

import typer
from pydantic import JsonValue

from kronmem import Client, ConfigError, InvalidInputError, KronmemError, settings
from kronmem.cli.api_keys import key_for

LOOK = 2.0
"""Seconds that completing a name may take: a person is waiting at a prompt."""


def agent_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The agents whose names begin so, for the shell's completion; none when they cannot be read."""
    url = cast("str | None", ctx.params.get("url"))
    try:
        with Client(url, api_key=key_for(url), outbox=False, timeout=LOOK) as client:
            return [one.name for one in client.agents() if one.name.startswith(incomplete)]
    except KronmemError:
        return []


Agent: TypeAlias = Annotated[
    str,
    typer.Option("--agent", "-a", help="Whose memory: the agent_id.", show_default=False, autocompletion=agent_names),
]
AnyAgent: TypeAlias = Annotated[
    str | None,
    typer.Option("--agent", "-a", help="Only this agent.", show_default=False, autocompletion=agent_names),
]
Url: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--url",
        help="Where memories live: http(s)://service, sqlite:///file.db or postgresql://host/name. Without it as in "
        "Python: KRONMEM_URL, KRONVEX_API_KEY, else the embedded file. Keys come from the environment.",
        show_default=False,
    ),
]
Db: TypeAlias = Annotated[
    str | None,
    typer.Option("--db", help="The database: a path, sqlite:///file.db or postgresql://host/name.", show_default=False),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Type: TypeAlias = Annotated[str | None, typer.Option("--type", "-t", help="Only this type.", show_default=False)]
Session: TypeAlias = Annotated[
    str | None, typer.Option("--session", "-s", help="Only this session.", show_default=False)
]
Tags: TypeAlias = Annotated[
    list[str] | None, typer.Option("--tag", help="A tag; repeatable, all have to match.", show_default=False)
]
Since: TypeAlias = Annotated[
    str | None,
    typer.Option("--since", help="Stored at this time or later, ISO 8601; local time without a zone."),
]
Until: TypeAlias = Annotated[str | None, typer.Option("--until", help="Stored before this time, ISO 8601.")]
Limit: TypeAlias = Annotated[int, typer.Option("--limit", "-n", help="How many at most.", min=1)]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
MemoryId: TypeAlias = Annotated[str, typer.Argument(help="The id that recall and list show.", show_default=False)]
TtlDays: TypeAlias = Annotated[int | None, typer.Option("--ttl-days", help="Forget it by itself after so many days.")]
Metadata: TypeAlias = Annotated[str | None, typer.Option("--metadata", help="A JSON object kept with it.")]


class Filters(TypedDict):
    """Which memories recall, list and context look at, as a client's methods take it."""

    memory_type: str | None
    session_id: str | None
    tags: Sequence[str]
    since: str | None
    until: str | None


def filters(
    type: str | None, session: str | None, tag: list[str] | None, since: str | None, until: str | None
) -> Filters:
    """The values of `--type`, `--session`, `--tag`, `--since` and `--until`."""
    return {"memory_type": type, "session_id": session, "tags": tag or (), "since": since, "until": until}


def database(db: str) -> settings.Settings:
    """The value of `--db`: an url of a database, or a path."""
    found = settings.resolve(db if "://" in db else f"sqlite:///{quote(db)}", None)
    if not found.embedded:
        raise ConfigError("--db takes sqlite:///file.db, postgresql://host/name or a path")
    return found


def text(given: str) -> str:
    """An argument, or standard input for `-`."""
    if given != "-":
        return given
    try:
        return sys.stdin.read().strip()
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"standard input is not {error.encoding}: convert it first, as with `iconv -f LATIN1 -t UTF-8`"
        ) from None


def json_value(given: str, what: str) -> JsonValue:
    """An argument in JSON."""
    try:
        return cast("JsonValue", jsonlib.loads(given))
    except ValueError as error:
        raise InvalidInputError(f"{what} is not JSON ({error}); text needs quotes of its own: '\"text\"'") from None
    except RecursionError:
        raise InvalidInputError(f"{what} is nested too deeply") from None


def json_object(given: str | None) -> dict[str, JsonValue] | None:
    """The value of `--metadata`."""
    if given is None:
        return None
    value = json_value(given, "--metadata")
    if not isinstance(value, dict):
        raise InvalidInputError('--metadata must be a JSON object such as \'{"source": "chat"}\'')
    return value


def confirmed(question: str, yes: bool) -> None:
    """Ask before something is deleted; a program has to say --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("stdin is not a terminal; pass --yes")
    if not typer.confirm(question, err=True):
        raise typer.Exit(1)
