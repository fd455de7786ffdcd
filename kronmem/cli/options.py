"""The options and arguments of the commands, each described once, and how their values are read."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypedDict, cast
from urllib.parse import quote

import typer

import kronmem
from kronmem.cli.connection import key_for

if TYPE_CHECKING:  # a help page needs no client
    from pydantic import JsonValue

    from kronmem.settings import Settings

COMPLETION = 2.0
"""Seconds that completing a name may take: a person is waiting at a prompt."""


def agent_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The agents with names that begin so, for the shell's completion; none when they cannot be read."""
    url = cast("str | None", ctx.params.get("url"))
    try:
        with kronmem.Client(url, api_key=key_for(url), outbox=False, timeout=COMPLETION) as client:
            return [one.name for one in client.agents() if one.name.startswith(incomplete)]
    except kronmem.KronmemError:
        return []


# ── whose memory, and where ──────────────────────────────────────────────────────────────────────────────────────

Agent: TypeAlias = Annotated[
    str,
    typer.Option("--agent", "-a", help="The agent_id.", envvar="KRONMEM_AGENT", autocompletion=agent_names),
]
AnyAgent: TypeAlias = Annotated[
    str | None, typer.Option("--agent", "-a", help="Only this agent.", autocompletion=agent_names)
]
Url: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="http(s)://service, sqlite:///file.db or postgresql://host/name. Else KRONMEM_URL, KRONVEX_API_KEY or "
        "the embedded file. Keys come from the environment."
    ),
]
Db: TypeAlias = Annotated[str | None, typer.Option(help="A path, sqlite:///file.db or postgresql://host/name.")]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

DemoAgent: TypeAlias = Annotated[
    str, typer.Option("--agent", "-a", help="The demo's agent. Memories that the demo did not write stay.")
]

# ── which memories ───────────────────────────────────────────────────────────────────────────────────────────────

MemoryId: TypeAlias = Annotated[str, typer.Argument(help="The id that recall and list show.")]
Query: TypeAlias = Annotated[str, typer.Argument(help="The question; - reads it from standard input.")]
Topic: TypeAlias = Annotated[str, typer.Argument(help="The prompt's subject; - reads it from standard input.")]
Type: TypeAlias = Annotated[str | None, typer.Option("--type", "-t", help="Only this type.")]
Session: TypeAlias = Annotated[str | None, typer.Option("--session", "-s", help="Only this session.")]
Tags: TypeAlias = Annotated[list[str] | None, typer.Option("--tag", help="A tag; repeatable, all have to match.")]
Since: TypeAlias = Annotated[str | None, typer.Option(help="Stored at this time or later, ISO 8601.")]
Until: TypeAlias = Annotated[str | None, typer.Option(help="Stored before this time, ISO 8601.")]
Before: TypeAlias = Annotated[str | None, typer.Option(help="Only memories stored before this time, ISO 8601.")]
Limit: TypeAlias = Annotated[int, typer.Option("--limit", "-n", help="How many at most.", min=1)]
AtMost: TypeAlias = Annotated[int | None, typer.Option("--limit", "-n", help="How many at most; else all.", min=1)]
Threshold: TypeAlias = Annotated[float | None, typer.Option(help="Leave out hits of lower similarity (0 to 1).")]
Explain: TypeAlias = Annotated[bool, typer.Option("--explain", help="Show the parts of each similarity.")]
History: TypeAlias = Annotated[bool, typer.Option("--history", help="Superseded memories too.")]
MaxChars: TypeAlias = Annotated[int | None, typer.Option(help="The longest the block may be.", min=1)]
Fill: TypeAlias = Annotated[bool, typer.Option(help="Fill up with the profile, or only what fits.")]

# ── parts of a memory ────────────────────────────────────────────────────────────────────────────────────────────

Content: TypeAlias = Annotated[str, typer.Argument(help="The text; - reads it from standard input.")]
AsType: TypeAlias = Annotated[str, typer.Option("--type", "-t", help="preference, fact, decision, context, …")]
InSession: TypeAlias = Annotated[str | None, typer.Option("--session", "-s", help="The conversation it belongs to.")]
WithTags: TypeAlias = Annotated[list[str] | None, typer.Option("--tag", help="A label; repeatable.")]
Pinned: TypeAlias = Annotated[bool, typer.Option("--pinned", help="Never expires.")]
Key: TypeAlias = Annotated[str | None, typer.Option(help="The subject, such as home_city: replaces its former memory.")]
Supersedes: TypeAlias = Annotated[str | None, typer.Option(help="The id of the memory whose place it takes.")]
Role: TypeAlias = Annotated[str | None, typer.Option(help="Its speaker: user, assistant or tool.")]
OwnId: TypeAlias = Annotated[str | None, typer.Option("--id", help="Your UUID: the same call again is one memory.")]
TtlDays: TypeAlias = Annotated[int | None, typer.Option(help="Forget it by itself after so many days.")]
Metadata: TypeAlias = Annotated[str | None, typer.Option(help="A JSON object kept with it.")]

# ── changes of a memory ──────────────────────────────────────────────────────────────────────────────────────────

NewContent: TypeAlias = Annotated[str | None, typer.Argument(help="The new text; - reads it from standard input.")]
NewType: TypeAlias = Annotated[str | None, typer.Option("--type", "-t", help="Its new type.")]
NewTags: TypeAlias = Annotated[list[str] | None, typer.Option("--tag", help="Its tags from now on; repeatable.")]
NoTags: TypeAlias = Annotated[bool, typer.Option("--no-tags", help="Remove its tags.")]
Pin: TypeAlias = Annotated[bool | None, typer.Option("--pin/--unpin", help="Pin it, or no longer.")]
NewTtl: TypeAlias = Annotated[int | None, typer.Option("--ttl-days", help="Days from now on; 0: for ever.", min=0)]

# ── state, outbox, files ─────────────────────────────────────────────────────────────────────────────────────────

StateKey: TypeAlias = Annotated[str, typer.Argument(metavar="KEY", help="The key.")]
StateValue: TypeAlias = Annotated[str, typer.Argument(help="The value in JSON; - reads it from standard input.")]
Timeout: TypeAlias = Annotated[float, typer.Option(help="Seconds to go on for.", min=0.1)]
QueuedId: TypeAlias = Annotated[str, typer.Argument(help="The id that `outbox list` shows.")]
OtherUrl: TypeAlias = Annotated[str | None, typer.Option("--from", help="Take over what waits for this other url.")]
Output: TypeAlias = Annotated[Path | None, typer.Option("--output", "-o", help="A file; else standard output.")]
JsonLines: TypeAlias = Annotated[bool, typer.Option("--json", help="JSON Lines, as always.")]
Source: TypeAlias = Annotated[str, typer.Argument(help="A file as export writes it; - reads standard input.")]
Into: TypeAlias = Annotated[
    str | None, typer.Option("--agent", "-a", help="Store everything under this agent, not under its own.")
]


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


def database(db: str) -> Settings:
    """The value of `--db`: an url of a database, or a path."""
    from kronmem import settings

    found = settings.resolve(db if "://" in db else f"sqlite:///{quote(db)}", None)
    if not found.embedded:
        raise kronmem.ConfigError("--db takes sqlite:///file.db, postgresql://host/name or a path")
    return found


def text(given: str) -> str:
    """An argument, or standard input for `-`."""
    if given != "-":
        return given
    try:
        return sys.stdin.read().strip()
    except UnicodeDecodeError as error:
        raise kronmem.InvalidInputError(
            f"standard input is not {error.encoding}: convert it first, as with `iconv -f LATIN1 -t UTF-8`"
        ) from None


def json_value(given: str, what: str) -> JsonValue:
    """An argument in JSON."""
    try:
        return cast("JsonValue", jsonlib.loads(given))
    except ValueError as error:
        raise kronmem.InvalidInputError(
            f"{what} is not JSON ({error}); text needs quotes of its own: '\"text\"'"
        ) from None
    except RecursionError:
        raise kronmem.InvalidInputError(f"{what} is nested too deeply") from None


def json_object(given: str | None) -> dict[str, JsonValue] | None:
    """The value of `--metadata`."""
    if given is None:
        return None
    value = json_value(given, "--metadata")
    if not isinstance(value, dict):
        raise kronmem.InvalidInputError('--metadata must be a JSON object such as \'{"source": "chat"}\'')
    return value


def confirmed(question: str, yes: bool) -> None:
    """Ask before something is deleted; a program has to pass --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise kronmem.ConfigError("stdin is not a terminal; pass --yes")
    if not typer.confirm(question, err=True):
        raise typer.Exit(1)
