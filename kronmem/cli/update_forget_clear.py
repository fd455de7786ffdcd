"""The commands that change and delete memories: update, history, forget, clear, erase."""

from __future__ import annotations

from typing import Annotated

import typer

from kronmem import Client, NotFoundError
from kronmem.cli import connection, errors, options, printing

NewContent = Annotated[
    str | None, typer.Argument(help="The new text; - reads it from standard input.", show_default=False)
]
NewType = Annotated[str | None, typer.Option("--type", "-t", help="Its new type.", show_default=False)]
NewTags = Annotated[list[str] | None, typer.Option("--tag", help="Its tags from now on; repeatable.")]
NoTags = Annotated[bool, typer.Option("--no-tags", help="Remove its tags.")]
Pin = Annotated[bool | None, typer.Option("--pin/--unpin", help="Pin it, or no longer.", show_default=False)]
NewTtl = Annotated[int | None, typer.Option("--ttl-days", help="Days it lives from now on; 0: for ever.", min=0)]
Before = Annotated[str | None, typer.Option("--before", help="Only what was stored before this time, ISO 8601.")]


def update(
    memory_id: options.MemoryId,
    agent: options.Agent,
    content: NewContent = None,
    type: NewType = None,
    tag: NewTags = None,
    no_tags: NoTags = False,
    pin: Pin = None,
    ttl_days: NewTtl = None,
    metadata: options.Metadata = None,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Change a memory in place; its former text is kept as history."""
    with connection.connected(url) as client, _named(client, agent):
        changed = client.update(
            agent,
            memory_id,
            content=None if content is None else options.text(content),
            memory_type=type,
            tags=() if no_tags else tag,
            metadata=options.json_object(metadata),
            pinned=pin,
            ttl_days=ttl_days,
        )
        printing.as_json(printing.fields(changed)) if json else printing.memory(changed)


def history(
    memory_id: options.MemoryId, agent: options.Agent, url: options.Url = None, json: options.Json = False
) -> None:
    """Show a memory and the texts it took the place of, newest first."""
    with connection.connected(url) as client, _named(client, agent):
        for one in client.history(agent, memory_id):
            printing.as_json(printing.fields(one)) if json else printing.memory(one)


def forget(
    memory_id: options.MemoryId, agent: options.Agent, url: options.Url = None, json: options.Json = False
) -> None:
    """Delete one memory and its history."""
    with connection.connected(url) as client, _named(client, agent):
        client.forget(agent, memory_id)
        printing.as_json({"forgotten": memory_id}) if json else printing.line("Forgotten.")


def clear(
    agent: options.Agent,
    session: Annotated[str | None, typer.Option("--session", "-s", help="Only this session.")] = None,
    before: Before = None,
    yes: options.Yes = False,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Delete the memories of an agent, of one session, or from before a time; says how many before it asks."""
    with connection.connected(url) as client:
        if not yes:
            count = sum(1 for _ in client.memories(agent, session_id=session, until=before))
            options.confirmed(f"Delete {count} memories of {agent}{_limits(session, before)}?", yes)
        count = client.clear(agent, session_id=session, before=before)
        if not count:
            errors.nothing(client, agent, "There was nothing to delete.")
        printing.as_json({"deleted": count}) if json else printing.line(f"Deleted {count}.")


def _limits(session: str | None, before: str | None) -> str:
    return (f", session {session}" if session else "") + (f", stored before {before}" if before else "")


def erase(agent: options.Agent, yes: options.Yes = False, url: options.Url = None, json: options.Json = False) -> None:
    """Remove everything of an agent: memories, history, state, receipts and queued memories, from the files too.

    Exits with 1 when it is not complete: a reader kept the files from being cleaned, or the service cannot erase.
    """
    with connection.connected(url) as client:
        options.confirmed(f"Erase everything of {agent}? Nothing of it can be brought back.", yes)
        gone = client.erase(agent)
        if json:
            printing.as_json(gone.model_dump(mode="json"))
        else:
            parts = {"memories": gone.memories, "former texts": gone.history, "state": gone.state}
            parts |= {"receipts": gone.receipts, "queued": gone.queued}
            printing.line("Erased: " + ", ".join(f"{count} {name}" for name, count in parts.items()) + ".")
        if not any((gone.memories, gone.history, gone.state, gone.receipts, gone.queued)):
            errors.nothing(client, agent, "There was nothing to erase.")
    if not gone.complete:
        printing.note(
            "kronmem: not complete: old bytes may remain, because another process reads the file or the service "
            "cannot erase; run the command again when nobody reads."
        )
        raise typer.Exit(1)


class _named:
    """Say which agent was meant when there is none of the name that was typed."""

    def __init__(self, client: Client, agent: str) -> None:
        self._client, self._agent = client, agent

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, NotFoundError):
            errors.unknown(self._client, self._agent)
