"""The commands, gathered. The modules of a command are imported when it runs: a help page loads no client."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kronmem import cli
from kronmem.cli import memory, options, outbox, serve

_MEMORY = "{a memory's fields"
PAGES = {
    "remember": ('"Deploys happen on Tuesdays" -a team -t decision', _MEMORY + ", deduplicated, queued}"),
    "recall": ('"when do we deploy?" -a team', f"[{_MEMORY}, similarity, confidence, excerpt}}]"),
    "list": ("-a team --since 2026-11-01", _MEMORY + "} a line"),
    "context": ('"a reply about deploys" -a team', "{context}"),
    "update": ('ID "Deploys happen on Mondays" -a team', _MEMORY + "}"),
    "history": ("ID -a team", _MEMORY + "} a line"),
    "forget": ("ID -a team", "{forgotten}"),
    "clear": ("-a team --before 2026-11-01", "{deleted}"),
    "erase": ("-a team --yes", "{memories, history, state, receipts, queued, complete}"),
    "agents": ("", "[{name, id, description, created_at, memory_count}]"),
    "sessions": ("-a team", "[{session_id, count}]"),
    "state get": ("cursor -a team", "the value, also without --json"),
    "state set": ("cursor '{\"page\": 2}' -a team", "{stored}"),
    "state delete": ("cursor -a team", "{deleted}"),
    "state keys": ("-a team", "[the keys]"),
    "outbox list": ("--url http://127.0.0.1:7070", "{kind, id, agent_id, content, queued_at, …} a line"),
    "outbox flush": ("--timeout 60", "{delivered, left, refused, newly_refused}"),
    "outbox drop": ("ID --yes", "{dropped}"),
    "outbox retry": ("", "{queued}"),
    "outbox adopt": ("--from http://127.0.0.1:7070", "{adopted}"),
    "export": ("-a team -o team.jsonl", "JSON Lines, also without --json"),
    "import": ("team.jsonl", "{imported, already_there, expired, refused, state}"),
    "serve": ("--db memory.db --port 7070", "{url, page, db}"),
    "mcp": ("-a team", ""),
    "demo": ("", "{process, who, what, words} a line"),
    "doctor": ("", "{ok, checks: [{check, ok, detail}]}"),
}
"""An example of each command, and the shape of its answer with --json: the end of its help page."""
MEANT = {
    **dict.fromkeys(("add", "save", "store"), "remember"),
    **dict.fromkeys(("search", "query", "ask", "find", "get"), "recall"),
    **dict.fromkeys(("delete", "remove", "rm"), "forget"),
    "help": "--help",
}
"""Commands by the names that other programs have for them."""
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]  # typer has no public name for it


class Commands(TyperGroup):
    """The commands; the error about a wrong use names the right one."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Read the options that stand before the command."""
        with advised():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with advised():
            return super().invoke(ctx)


@contextmanager
def advised() -> Generator[None, None, None]:
    """Put the right use behind an error about a wrong one."""
    try:
        yield
    except _UsageError as error:
        error.message = f"{error}{_advice(str(error))}"  # type: ignore[attr-defined] # what typer prints
        raise


def _advice(problem: str) -> str:
    if found := re.search(r"^No such command '(.*)'\.( Did|$)", problem):
        return f" Did you mean 'kronmem {MEANT[found[1]]}'?" if found[1] in MEANT else ""
    if problem.startswith("Got unexpected extra"):
        return ". A text of several words needs quotes, and the name of an agent --agent before it."
    return ". Options stand behind the command: kronmem list --agent team" if problem.endswith(": --agent") else ""


def _finish(group: str, commands: typer.Typer) -> None:
    """Put the example and the shape at the end of the help pages."""
    for one in commands.registered_commands:
        name = group + str(one.name or getattr(one.callback, "__name__", ""))
        example, shape = PAGES[name]
        one.epilog = f"\b\nExample: kronmem {name} {example}" + (f"\n--json:  {shape}" if shape else "")


app = typer.Typer(
    name="kronmem",
    cls=Commands,
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


_finish("", app)
_finish("state ", memory.state)
_finish("outbox ", outbox.app)
