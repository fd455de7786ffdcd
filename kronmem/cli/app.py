"""The commands, gathered."""

from __future__ import annotations

from typing import Annotated

import typer

from kronmem.cli import outbox, remember_recall_list, state, update_forget_clear
from kronmem.cli.autogen_versions import installed
from kronmem.cli.demo import demo
from kronmem.cli.doctor import doctor
from kronmem.cli.exporting import export
from kronmem.cli.importing import import_
from kronmem.cli.mcp import mcp
from kronmem.cli.serve import serve

app = typer.Typer(name="kronmem", no_args_is_help=True, pretty_exceptions_enable=False)
app.command()(remember_recall_list.remember)
app.command()(remember_recall_list.recall)
app.command("list")(remember_recall_list.list_)
app.command()(remember_recall_list.context)
app.command()(update_forget_clear.update)
app.command()(update_forget_clear.history)
app.command()(update_forget_clear.forget)
app.command()(update_forget_clear.clear)
app.command()(update_forget_clear.erase)
app.command()(remember_recall_list.agents)
app.command()(remember_recall_list.sessions)
app.add_typer(state.app, name="state")
app.add_typer(outbox.app, name="outbox")
app.command()(export)
app.command("import")(import_)
app.command()(serve)
app.command()(mcp)
app.command()(demo)
app.command()(doctor)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(installed("kronmem") or "0")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Durable memory for AutoGen agents: remember and recall, embedded, served or at Kronvex.

    Exit codes: 0 done, 1 the service said no or was away, 2 wrong use, 3 queued in the outbox and not stored yet.
    """
