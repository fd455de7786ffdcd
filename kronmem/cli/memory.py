"""The commands that store, find, change and delete memories, and `kronmem state`, the key–value data of an agent."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import typer

from kronmem.cli import connection, options, printing

if TYPE_CHECKING:  # a help page needs no client
    from kronmem import Memory

state = typer.Typer(no_args_is_help=True, help="Read and change the state of an agent: JSON values by key.")


def remember(
    content: options.Content,
    agent: options.Agent,
    type: options.AsType = "fact",
    session: options.InSession = None,
    tag: options.WithTags = None,
    key: options.Key = None,
    supersedes: options.Supersedes = None,
    ttl_days: options.TtlDays = None,
    pinned: options.Pinned = False,
    role: options.Role = None,
    metadata: options.Metadata = None,
    id: options.OwnId = None,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Store a memory; the same text again is the same memory.

    Exit code 3 when it was queued in the outbox.
    """
    with connection.connected(url) as client:
        kept = client.remember(
            agent,
            options.text(content),
            type,
            session_id=session,
            tags=tag or (),
            ttl_days=ttl_days,
            pinned=pinned,
            metadata=options.json_object(metadata),
            memory_id=id,
            role=role,
            key=key,
            supersedes=supersedes,
        )
        if json:
            printing.as_json({**printing.fields(kept), "deduplicated": kept.deduplicated, "queued": kept.queued})
        else:
            printing.line(f"{_became(kept)} ({kept.id}).")
    if kept.queued:
        raise typer.Exit(connection.QUEUED)


def _became(kept: Memory) -> str:
    if kept.superseded_by:
        return f"Stored as history: {kept.superseded_by} was said later"
    word = "Queued until the service is back" if kept.queued else "Stored"
    return "Already known" if kept.deduplicated else word


def recall(
    query: options.Query,
    agent: options.Agent,
    limit: options.Limit = 5,
    type: options.Type = None,
    session: options.Session = None,
    tag: options.Tags = None,
    since: options.Since = None,
    until: options.Until = None,
    threshold: options.Threshold = None,
    explain: options.Explain = False,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Find the memories that answer a question, best first.

    Each with its similarity from 0 to 1.
    """
    with connection.connected(url) as client:
        chosen = options.filters(type, session, tag, since, until)
        hits = client.recall(agent, options.text(query), limit, threshold=threshold, **chosen)
        if not hits:
            connection.nothing(client, agent, "No relevant memories.")
        if json:
            printing.as_json([printing.hit_fields(hit, explain=explain) for hit in hits])
            return
        for hit in hits:
            printing.hit(hit, explain=explain)


def list_(
    agent: options.Agent,
    limit: options.AtMost = None,
    type: options.Type = None,
    session: options.Session = None,
    tag: options.Tags = None,
    since: options.Since = None,
    until: options.Until = None,
    history: options.History = False,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """List the memories of an agent, newest first.

    With --json as JSON Lines.
    """
    with connection.connected(url) as client:
        found = 0
        walk = client.memories(agent, history=history, **options.filters(type, session, tag, since, until))
        for one in islice(walk, limit):
            found += 1
            printing.as_json(printing.fields(one)) if json else printing.memory(one)
        if not found:
            connection.nothing(client, agent, "No memories.")


def context(
    agent: options.Agent,
    query: options.Topic = "general context",
    limit: options.Limit = 8,
    type: options.Type = None,
    session: options.Session = None,
    tag: options.Tags = None,
    since: options.Since = None,
    until: options.Until = None,
    max_chars: options.MaxChars = None,
    fill: options.Fill = True,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Print the block of memories for a prompt."""
    with connection.connected(url) as client:
        chosen = options.filters(type, session, tag, since, until)
        block = client.inject_context(agent, options.text(query), limit, max_chars=max_chars, fill=fill, **chosen)
        if not block:
            connection.nothing(client, agent, "No memories for a context.")
        if json:
            printing.as_json({"context": block})
        elif block:
            printing.line(block)


def agents(agent: options.AnyAgent = None, url: options.Url = None, json: options.Json = False) -> None:
    """List the agents and how many memories each has."""
    with connection.connected(url) as client:
        found = [one for one in client.agents() if agent in (None, one.name)]
        if not found:
            connection.nothing(client, agent, "No agents.")
        if json:
            include = {"name", "id", "description", "created_at", "memory_count"}
            printing.as_json([one.model_dump(mode="json", include=include) for one in found])
            return
        for one in found:
            printing.line(f"{one.memory_count:>7}  {one.name}")


def sessions(agent: options.Agent, url: options.Url = None, json: options.Json = False) -> None:
    """List the sessions of an agent and how many memories each has."""
    with connection.connected(url) as client:
        found = client.sessions(agent)
        if not found:
            connection.nothing(client, agent, "No sessions.")
        if json:
            printing.as_json([{"session_id": one.session_id, "count": one.count} for one in found])
            return
        for one in found:
            printing.line(f"{one.count:>7}  {one.session_id}")


def update(
    memory_id: options.MemoryId,
    agent: options.Agent,
    content: options.NewContent = None,
    type: options.NewType = None,
    tag: options.NewTags = None,
    no_tags: options.NoTags = False,
    pin: options.Pin = None,
    ttl_days: options.NewTtl = None,
    metadata: options.Metadata = None,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Change a memory in place; its former text is kept as history."""
    with connection.connected(url) as client, connection.named(client, agent):
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
    with connection.connected(url) as client, connection.named(client, agent):
        for one in client.history(agent, memory_id):
            printing.as_json(printing.fields(one)) if json else printing.memory(one)


def forget(
    memory_id: options.MemoryId, agent: options.Agent, url: options.Url = None, json: options.Json = False
) -> None:
    """Delete one memory and its history."""
    with connection.connected(url) as client, connection.named(client, agent):
        client.forget(agent, memory_id)
        printing.as_json({"forgotten": memory_id}) if json else printing.line("Forgotten.")


def clear(
    agent: options.Agent,
    session: options.Session = None,
    before: options.Before = None,
    yes: options.Yes = False,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Delete the memories of an agent or of one session.

    It asks first, and names how many.
    """
    with connection.connected(url) as client:
        if not yes:
            count = sum(1 for _ in client.memories(agent, session_id=session, until=before))
            options.confirmed(f"Delete {count} memories of {agent}{_limits(session, before)}?", yes)
        with printing.progress("Deleting"):
            count = client.clear(agent, session_id=session, before=before)
        if not count:
            connection.nothing(client, agent, "There was nothing to delete.")
        printing.as_json({"deleted": count}) if json else printing.line(f"Deleted {count}.")


def _limits(session: str | None, before: str | None) -> str:
    return (f", session {session}" if session else "") + (f", stored before {before}" if before else "")


def erase(agent: options.Agent, yes: options.Yes = False, url: options.Url = None, json: options.Json = False) -> None:
    """Remove everything of an agent, from the files too.

    Memories, history, state, receipts and queued memories. Exits with 1 when it is not complete: a reader kept the
    files from being cleaned, or the service cannot erase.
    """
    with connection.connected(url) as client:
        options.confirmed(f"Erase everything of {agent}? Nothing of it can be brought back.", yes)
        with printing.progress("Erasing"):
            gone = client.erase(agent)
        if json:
            printing.as_json(gone.model_dump(mode="json"))
        else:
            parts = {"memories": gone.memories, "former texts": gone.history, "state": gone.state}
            parts |= {"receipts": gone.receipts, "queued": gone.queued}
            printing.line("Erased: " + ", ".join(f"{count} {name}" for name, count in parts.items()) + ".")
        if not any((gone.memories, gone.history, gone.state, gone.receipts, gone.queued)):
            connection.nothing(client, agent, "There was nothing to erase.")
    if not gone.complete:
        printing.note(
            "kronmem: not complete: old bytes may remain, because another process reads the file or the service "
            "cannot erase; run the command again when no process reads it."
        )
        raise typer.Exit(1)


# ── state ────────────────────────────────────────────────────────────────────────────────────────────────────────


@state.command()
def get(key: options.StateKey, agent: options.Agent, url: options.Url = None, json: options.Json = False) -> None:
    """Print the value under a key as JSON.

    Exit code 1 when there is none.
    """
    with connection.connected(url) as client:
        value = client.state(agent).get(key)
        if value is not None:
            printing.as_json(value)
            return
        connection.nothing(client, agent, f"Nothing is kept under {key!r}; `kronmem state keys` lists the keys.")
    raise typer.Exit(1)


@state.command("set")
def set_(
    key: options.StateKey,
    value: options.StateValue,
    agent: options.Agent,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Keep a JSON value under a key; null deletes the key."""
    with connection.connected(url) as client:
        client.state(agent).set(key, options.json_value(options.text(value), "the value"))
        printing.as_json({"stored": key}) if json else printing.line(f"Stored {key}.")


@state.command()
def delete(key: options.StateKey, agent: options.Agent, url: options.Url = None, json: options.Json = False) -> None:
    """Remove a key; removing one that is not there is no error."""
    with connection.connected(url) as client:
        client.state(agent).delete(key)
        printing.as_json({"deleted": key}) if json else printing.line(f"Deleted {key}.")


@state.command()
def keys(agent: options.Agent, url: options.Url = None, json: options.Json = False) -> None:
    """List the keys, sorted."""
    with connection.connected(url) as client:
        found = client.state(agent).keys()
        if not found:
            connection.nothing(client, agent, "No state.")
        if json:
            printing.as_json(list(found))
            return
        for key in found:
            printing.line(key)
