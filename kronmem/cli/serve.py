"""`kronmem serve` and `kronmem mcp`: one memory for many machines, or for one MCP client."""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, TypeAlias
from urllib.parse import quote, urlsplit

import typer

import kronmem
from kronmem.cli import connection, options, printing

Host: TypeAlias = Annotated[str, typer.Option(help="Address to listen on; beyond loopback only with a key.")]
Port: TypeAlias = Annotated[int, typer.Option(help="0 takes a free one.", min=0, max=65535)]
Db: TypeAlias = Annotated[
    str | None, typer.Option("--db", "--url", help="A path, sqlite:///file.db or postgresql://host/name.")
]
Key: TypeAlias = Annotated[
    str | None,
    typer.Option(
        envvar="KRONMEM_SERVE_KEY", help="The key of clients; it owns what embedded clients wrote to the same file."
    ),
]
Keys: TypeAlias = Annotated[
    str | None,
    typer.Option(envvar="KRONMEM_SERVE_KEYS", help="name:key,name:key: every name has agents of its own."),
]
KeysFile: TypeAlias = Annotated[
    Path | None, typer.Option(envvar="KRONMEM_SERVE_KEYS_FILE", help="A file with `key` or `name:key` a line.")
]
AllowHost: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="A further name this server is addressed by; repeatable.")
]
PageAgent: TypeAlias = Annotated[str | None, typer.Option("--agent", "-a", help="Open the page at this agent.")]
OpenMetrics: TypeAlias = Annotated[
    bool, typer.Option("--open-metrics", help="Answer /metrics (Prometheus) without a key.")
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="No access log.")]
SAFER = {
    "key": "KRONMEM_SERVE_KEY, --keys-file",
    "keys": "KRONMEM_SERVE_KEYS, --keys-file",
    "db": "PGPASSWORD, ~/.pgpass",
}
"""Options that may hold a secret, and where it is safe."""


class LogForm(StrEnum):
    """The form of the access log."""

    text = "text"
    json = "json"


AccessLog: TypeAlias = Annotated[LogForm, typer.Option(help="A line a request on stderr.")]


def serve(
    context: typer.Context,
    host: Host = "127.0.0.1",
    port: Port = 7070,
    db: Db = None,
    key: Key = None,
    keys: Keys = None,
    keys_file: KeysFile = None,
    allow_host: AllowHost = None,
    agent: PageAgent = None,
    access_log: AccessLog = LogForm.text,
    open_metrics: OpenMetrics = False,
    quiet: Quiet = False,
    json: options.Json = False,
) -> None:
    """Serve memory over HTTP, with a page to look at memories.

    Speaks the contracts of Kronvex, BotWire and Memstore, and MCP at /mcp. Stops on Ctrl-C or SIGTERM, with accepted
    writes finished. `ps` shows arguments: keys are safer in the environment or in --keys-file. Put a TLS proxy in front
    of it for other machines.
    """
    with connection.reported():
        _need("server", "serving", "starlette", "uvicorn")
        from kronmem.server.api_keys import KeysFile as WatchedKeys
        from kronmem.server.api_keys import owners
        from kronmem.server.serve import run

        path, json_log = _path(db), access_log is LogForm.json
        _warn_of_secrets(context)
        _configure_logs(quiet, json_log)

        def ready(url: str) -> None:
            page = f"{url}/" + (f"#agent={quote(agent)}" if agent else "")
            words = f"kronmem serves {printing.shown(path)} at {page} (Ctrl-C stops it)"
            printing.as_json({"url": url, "page": page, "db": printing.shown(path)}) if json else printing.line(words)

        run(
            host,
            port,
            path,
            owners(key, keys) if keys_file is None else WatchedKeys(keys_file, key, keys),
            allow_hosts=allow_host or (),
            open_metrics=open_metrics,
            json_log=json_log,
            ready=ready,
        )


def mcp(agent: options.Agent, url: options.Url = None) -> None:
    """Serve the memory of one agent to an MCP client over stdio.

    Claude Code, Cursor, AutoGen, Agent Framework or AG2 starts this command and speaks to it over stdin and stdout; it
    ends when stdin does. For many agents and machines, `kronmem serve` answers MCP over HTTP at /mcp.
    """
    with connection.reported():
        _need("mcp", "MCP", "mcp")
        import anyio

        from kronmem.mcp import serve_stdio

        async def serve() -> None:
            async with kronmem.AsyncClient(url, api_key=connection.key_for(url)) as client:
                await serve_stdio(client, agent)

        anyio.run(serve)


def _need(extra: str, purpose: str, *modules: str) -> None:
    if any(find_spec(name) is None for name in modules):
        raise kronmem.ConfigError(f"{purpose} needs its extra: pip install 'kronmem[{extra}]'")


def _configure_logs(quiet: bool, json_log: bool) -> None:
    import logging

    logging.basicConfig(level=logging.WARNING if quiet else logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    if json_log:  # a line is the whole object: nothing stands before it
        access = logging.getLogger("kronmem.access")
        access.propagate = False
        access.addHandler(logging.StreamHandler())


def _warn_of_secrets(context: typer.Context) -> None:
    found: list[str] = []
    for name, safer in SAFER.items():
        value, source = context.params.get(name), context.get_parameter_source(name)
        if value and source and source.name == "COMMANDLINE" and (name != "db" or urlsplit(str(value)).password):
            found.append(safer)
    if found:
        printing.note(
            "kronmem: a secret on the command line is seen by all who run `ps` on this machine: use "
            + " or ".join(found)
        )


def _path(db: str | None) -> str:
    if db is None:
        from kronmem import settings

        return str(settings.default_file())
    found = options.database(db)
    if found.path and Path(found.path).is_dir():  # it would start, and fail at every request
        raise kronmem.ConfigError(f"{found.path} is a directory: --db {Path(found.path) / 'memory.db'}")
    return found.path or found.url
