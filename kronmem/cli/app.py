"""The commands, gathered."""

from __future__ import annotations

import typer

from kronmem.cli.serving import serve

app = typer.Typer(
    name="kronmem",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Durable memory for AutoGen agents: remember and recall, embedded, served or at Kronvex.",
)
app.command()(serve)


@app.callback()
def options() -> None:
    """Durable memory for AutoGen agents: remember and recall, embedded, served or at Kronvex."""
