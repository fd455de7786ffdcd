"""The commands, gathered. The modules of a command are imported when it runs: a help page loads no client."""

from __future__ import annotations

from typing import Annotated

import typer

from kronmem import cli
from kronmem.cli import memory, options, outbox, serve

app = typer.Typer(
    name="kronmem",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # frames take a third of a page, and half the time
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(memory.remember)
app.command()(memory.recall)
app.command("list")(memory.list_)
app.command()(memory.context)
app.command()(memory.update)
app.command()(memory.history)
app.command()(memory.forget)
app.command()(memory.clear)
app.command()(memory.erase)
app.command()(memory.agents)
app.command()(memory.sessions)
app.add_typer(memory.state, name="state")
app.add_typer(outbox.app, name="outbox")


@app.command()
def export(
    agent: options.AnyAgent = None,
    output: options.Output = None,
    url: options.Url = None,
    json: options.JsonLines = True,
) -> None:
    """Write one agent, or all of them, as JSON Lines.

    Memories with their history, state and descriptions. A file is complete or not there: it is written beside its
    place, readable by you alone, and renamed at the end. Exits with 1, and writes nothing, when there is no such agent.
    """
    from kronmem.cli import transfer

    transfer.write(agent, output, url)


@app.command("import")
def import_(
    source: options.Source = "-", agent: options.Into = None, url: options.Url = None, json: options.Json = False
) -> None:
    """Store an export; stopped and run again, it goes on.

    Memories that exist already are not changed. Embedded and served, memories come back as they were, with times,
    counts and history. A service without those takes the current memories, oldest first, and dates them itself.
    """
    from kronmem.cli import transfer

    transfer.store(source, agent, url, json)


app.command()(serve.serve)
app.command()(serve.mcp)


@app.command()
def demo(agent: options.DemoAgent = "kronmem-demo", url: options.Url = None, json: options.Json = False) -> None:
    """Watch an AutoGen team remember across two processes.

    Offline, in seconds, with a scripted model.
    """
    from kronmem.cli import demo

    demo.run(agent, url, json)


@app.command()
def doctor(
    agent: options.AnyAgent = None, url: options.Url = None, db: options.Db = None, json: options.Json = False
) -> None:
    """Check settings, AutoGen, and the service or database.

    With --db it looks at a database before a server is started on it. Makes no table, stores nothing.
    Exits with 1 when something is broken. Keys and passwords are never shown.
    """
    from kronmem.cli import doctor

    doctor.run(agent, url, db, json)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(cli.version())
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Durable memory for AutoGen agents: remember and recall, embedded, served or at Kronvex.

    Exit codes: 0 done, 1 the service refused or was away, 2 wrong use, 3 queued in the outbox and not stored yet.
    """
