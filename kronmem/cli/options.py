"""The options that commands share, each described once."""

from __future__ import annotations

from typing import Annotated, TypeAlias
from urllib.parse import quote

import typer

from kronmem import ConfigError, settings

Agent: TypeAlias = Annotated[str, typer.Option("--agent", "-a", help="Whose memory: the agent_id.", show_default=False)]
AnyAgent: TypeAlias = Annotated[str | None, typer.Option("--agent", "-a", help="Only this agent.", show_default=False)]
Url: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--url",
        help="Where memories live: http(s)://service or sqlite:///file.db. Without it as in Python: KRONMEM_URL, "
        "KRONVEX_API_KEY, else the embedded file. Keys come from the environment.",
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


def database(db: str) -> settings.Settings:
    """The value of `--db`: an url of a database, or a path."""
    found = settings.resolve(db if "://" in db else f"sqlite:///{quote(db)}", None)
    if not found.embedded:
        raise ConfigError("--db takes sqlite:///file.db, postgresql://host/name or a path")
    return found
