"""`kronmem outbox`: the memories that wait on this machine for a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import typer

import kronmem
from kronmem.cli import connection, options, printing

if TYPE_CHECKING:  # a help page needs no client
    from pydantic import JsonValue

Row: TypeAlias = "kronmem.QueuedMemory | kronmem.DeadLetter"

app = typer.Typer(no_args_is_help=True, help="Look at and deliver the memories that wait for a service.")


@app.command("list")
def list_(agent: options.AnyAgent = None, url: options.Url = None, json: options.Json = False) -> None:
    """List the memories that wait for this service, or were refused.

    Those that wait under another key too; with --json as JSON Lines.
    """
    with connection.connected(url) as client:
        kinds: dict[str, list[Row]] = {
            "waiting": list(client.outbox.list()),
            "refused": list(client.outbox.dead()),
            "other key": list(client.outbox.stranded()),
        }
        rows = [(kind, row) for kind, found in kinds.items() for row in found if agent in (None, row.agent_id)]
        for kind, row in rows:
            printing.as_json(_fields(kind, row)) if json else _print(kind, row)
        elsewhere = waiting() if client.in_process else client.outbox.elsewhere()
        for other, count in elsewhere.items():
            printing.note(f"{count} wait for {printing.shown(other)}: `kronmem outbox list --url {other}` lists them.")
        if not rows and not elsewhere:
            printing.note("Nothing waits.")


def waiting() -> dict[str, int]:
    """How many memories wait in the default file, by the url of their service; asks no service."""
    from kronmem import settings

    path = settings.home() / "outbox.db"
    if not path.exists():
        return {}
    from kronmem.outbox.file import Lane
    from kronmem.outbox.queue import OutboxFile

    file = OutboxFile(str(path))
    try:
        return file.elsewhere(Lane("", ""))
    finally:
        file.close()


def _fields(kind: str, row: Row) -> dict[str, JsonValue]:
    return {"kind": kind, **row.model_dump(mode="json", exclude={"raw"})}


def _print(kind: str, row: Row) -> None:
    printing.line(row.content)
    parts = [kind, row.agent_id, printing.age(row.queued_at), row.error, row.id]
    printing.line("  " + " · ".join(part for part in parts if part), dim=True)


@app.command()
def flush(timeout: options.Timeout = 30.0, url: options.Url = None, json: options.Json = False) -> None:
    """Deliver now the memories that wait for this service.

    Exit code 1 when some are refused, 3 when some are left. It ends at once, with the cause, when nothing answers.
    """
    with connection.connected(url) as client:
        before, known = client.outbox.pending(), {row.id for row in client.outbox.dead()}
        with printing.progress("Delivering"):
            left = client.outbox.flush(timeout) if not before or _answers(client, url) else before
        dead = client.outbox.dead()
        new = [row for row in dead if row.id not in known]
        if json:
            named: list[JsonValue] = [_fields("refused", row) for row in new]
            delivered = max(before - left - len(new), 0)
            printing.as_json({"delivered": delivered, "left": left, "refused": len(dead), "newly_refused": named})
        else:
            words = f"{left} of {before} left" if left else f"Delivered {max(before - len(new), 0)}"
            refused = f"; {len(dead)} refused, {len(new)} of them now: `kronmem outbox list` says why" if dead else ""
            printing.line(f"{words}{refused}.")
            for row in new:
                _print("refused", row)
    if new or left:
        raise typer.Exit(1 if new else connection.QUEUED)


def _answers(client: kronmem.Client, url: str | None) -> bool:
    """Whether the service can take anything now; a note has the cause when it cannot."""
    try:
        client.agents()
    except (kronmem.TransportError, kronmem.AuthError) as error:
        connection.note_error(error, url)
        return False
    except kronmem.KronmemError:  # it answers; delivery waits as long as it asks for
        return True
    return True


@app.command()
def drop(id: options.QueuedId, yes: options.Yes = False, url: options.Url = None, json: options.Json = False) -> None:
    """Remove one memory from the outbox for good; it is delivered nowhere."""
    with connection.connected(url) as client:
        options.confirmed(f"Drop {id}? It is stored nowhere else.", yes)
        dropped = client.outbox.drop(id)
        if dropped:
            printing.as_json({"dropped": id}) if json else printing.line("Dropped.")
            return
        printing.note(f"kronmem: no memory {id!r} waits for this service: `kronmem outbox list` shows the ids")
    raise typer.Exit(1)


@app.command()
def retry(url: options.Url = None, json: options.Json = False) -> None:
    """Queue refused memories once more; deliver it with `outbox flush`."""
    with connection.connected(url) as client:
        count = client.outbox.retry_dead()
        printing.as_json({"queued": count}) if json else printing.line(f"Queued {count} again.")


@app.command()
def adopt(from_: options.OtherUrl = None, url: options.Url = None, json: options.Json = False) -> None:
    """Send with the present key memories queued under another one, or for another url."""
    with connection.connected(url) as client:
        if client.in_process:
            raise kronmem.ConfigError("an embedded database has no outbox to send from: pass --url http(s)://service")
        count = client.outbox.adopt(from_)
        printing.as_json({"adopted": count}) if json else printing.line(f"Adopted {count}.")
