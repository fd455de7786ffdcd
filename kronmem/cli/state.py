"""`kronmem state`: the key–value data of an agent."""

from __future__ import annotations

from typing import Annotated

import typer

from kronmem.cli import connection, errors, options, printing

app = typer.Typer(no_args_is_help=True, help="Read and change the state of an agent: JSON values by key.")

Key = Annotated[str, typer.Argument(help="The key.", show_default=False)]
Value = Annotated[str, typer.Argument(help="The value in JSON; - reads it from standard input.", show_default=False)]


@app.command()
def get(key: Key, agent: options.Agent, url: options.Url = None, json: options.Json = False) -> None:
    """Print the value under a key as JSON; exit code 1 when there is none."""
    with connection.connected(url) as client:
        value = client.state(agent).get(key)
        if value is not None:
            printing.as_json(value)
            return
        errors.nothing(client, agent, f"Nothing is kept under {key!r}; `kronmem state keys` lists the keys.")
    raise typer.Exit(1)


@app.command("set")
def set_(key: Key, value: Value, agent: options.Agent, url: options.Url = None, json: options.Json = False) -> None:
    """Keep a JSON value under a key, in place of the former one; null deletes the key."""
    with connection.connected(url) as client:
        client.state(agent).set(key, options.json_value(options.text(value), "the value"))
        printing.as_json({"stored": key}) if json else printing.line(f"Stored {key}.")


@app.command()
def delete(key: Key, agent: options.Agent, url: options.Url = None, json: options.Json = False) -> None:
    """Remove a key; removing one that is not there is no error."""
    with connection.connected(url) as client:
        client.state(agent).delete(key)
        printing.as_json({"deleted": key}) if json else printing.line(f"Deleted {key}.")


@app.command()
def keys(agent: options.Agent, url: options.Url = None, json: options.Json = False) -> None:
    """List the keys, sorted."""
    with connection.connected(url) as client:
        found = client.state(agent).keys()
        if not found:
            errors.nothing(client, agent, "No state.")
        if json:
            printing.as_json(list(found))
            return
        for key in found:
            printing.line(key)
