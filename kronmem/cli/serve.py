"""`kronmem serve`: one memory for many machines."""

from __future__ import annotations

import logging
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, urlsplit

import typer

from kronmem import ConfigError, settings
from kronmem.cli import errors, options, printing
from kronmem.cli.secret_arguments import hide

Host = Annotated[str, typer.Option("--host", help="Address to listen on; beyond loopback only with a key.")]
Port = Annotated[int, typer.Option("--port", help="Port to listen on; 0 takes a free one.", min=0, max=65535)]
Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        "--url",
        help="The database: a path, sqlite:///file.db or postgresql://host/name. Else the embedded file.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        envvar="KRONMEM_SERVE_KEY",
        show_envvar=True,
        help="The key clients must send. It owns what an embedded client wrote to the same file. "
        "Better in the environment or in --keys-file: `ps` shows arguments.",
    ),
]
Named = Annotated[
    str | None,
    typer.Option(
        envvar="KRONMEM_SERVE_KEYS",
        show_envvar=True,
        help="name:key,name:key - every name has agents of its own. Better in the environment: `ps` shows arguments.",
    ),
]
KeysFile = Annotated[
    Path | None,
    typer.Option(
        "--keys-file",
        envvar="KRONMEM_SERVE_KEYS_FILE",
        show_envvar=True,
        help="A file with one key a line, as `key` or `name:key`; lines that begin with # are left out.",
    ),
]
AllowHost = Annotated[
    list[str] | None, typer.Option("--allow-host", help="A further name this server is addressed by. Repeatable.")
]
PageAgent = Annotated[
    str | None, typer.Option("--agent", "-a", help="Open the page at this agent; every agent is served.")
]
_INSTEAD = {
    "key": "KRONMEM_SERVE_KEY, --keys-file",
    "keys": "KRONMEM_SERVE_KEYS, --keys-file",
    "db": "PGPASSWORD, ~/.pgpass",
}
"""Options that may hold a secret, and where it is safe."""
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No access log on stderr.")]


class LogForm(str, Enum):
    """The form of the access log."""

    text = "text"
    json = "json"


AccessLog = Annotated[
    LogForm, typer.Option("--access-log", help="A line a request on stderr: text, or json with route and trace id.")
]
OpenMetrics = Annotated[
    bool, typer.Option("--open-metrics", help="Answer /metrics (Prometheus) without a key; it names no agent.")
]


def serve(
    context: typer.Context,
    host: Host = "127.0.0.1",
    port: Port = 7070,
    db: Db = None,
    key: Key = None,
    keys: Named = None,
    keys_file: KeysFile = None,
    allow_host: AllowHost = None,
    agent: PageAgent = None,
    access_log: AccessLog = LogForm.text,
    open_metrics: OpenMetrics = False,
    quiet: Quiet = False,
    json: options.Json = False,
) -> None:
    """Serve memory over HTTP: Kronvex', BotWire's and Memstore's contracts, and a page to look at memories.

    Stops on Ctrl-C or SIGTERM, with accepted writes finished. Put a TLS proxy in front of it for other machines.
    """
    with errors.told():
        _check_extra()
        from kronmem.server.api_keys import KeysFile, owners
        from kronmem.server.serve import run

        path, json_log = _path(db), access_log is LogForm.json
        _hide_arguments(context)
        _configure_logs(quiet, json_log)

        def ready(url: str) -> None:
            page = f"{url}/" + (f"#agent={quote(agent)}" if agent else "")
            said = f"kronmem serves {printing.shown(path)} at {page} (Ctrl-C stops it)"
            printing.as_json({"url": url, "page": page, "db": printing.shown(path)}) if json else printing.line(said)

        run(
            host,
            port,
            path,
            owners(key, keys) if keys_file is None else KeysFile(keys_file, key, keys),
            allow_hosts=allow_host or (),
            open_metrics=open_metrics,
            json_log=json_log,
            ready=ready,
        )


def _configure_logs(quiet: bool, json_log: bool) -> None:
    logging.basicConfig(level=logging.WARNING if quiet else logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    if json_log:  # a line is the whole object: nothing stands before it
        access = logging.getLogger("kronmem.access")
        access.propagate = False
        access.addHandler(logging.StreamHandler())


def _hide_arguments(context: typer.Context) -> None:
    """Warn about secrets on the command line, and take them out of the list of processes."""
    found: dict[str, str] = {}
    for name, instead in _INSTEAD.items():
        value, source = context.params.get(name), context.get_parameter_source(name)
        if value and source and source.name == "COMMANDLINE":
            secret = (urlsplit(str(value)).password or "") if name == "db" else str(value)
            found |= {secret: instead} if secret else {}
    if found:
        seen = "was seen" if hide(found) else "is seen"
        instead = " or ".join(found.values())
        printing.note(
            f"kronmem: a secret on the command line {seen} by all who run `ps` on this machine: use {instead}"
        )


def _check_extra() -> None:
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise ConfigError("serving needs its extra: pip install 'kronmem[server]'")


def _path(db: str | None) -> str:
    if db is None:
        return str(settings.default_file())
    found = options.database(db)
    return found.path or found.url
