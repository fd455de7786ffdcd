"""The commands that store and read memories: remember, recall, list, context, agents, sessions."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from kronmem import Memory
from kronmem.cli import connection, errors, options, printing

Content = Annotated[str, typer.Argument(help="The text; - reads it from standard input.", show_default=False)]
Query = Annotated[str, typer.Argument(help="The question; - reads it from standard input.", show_default=False)]
AnyQuery = Annotated[str, typer.Argument(help="What the prompt is about; - reads it from standard input.")]
AsType = Annotated[str, typer.Option("--type", "-t", help="preference, fact, decision, context, temporary, …")]
InSession = Annotated[str | None, typer.Option("--session", "-s", help="The conversation it belongs to.")]
WithTags = Annotated[list[str] | None, typer.Option("--tag", help="A label; repeatable.")]
Pinned = Annotated[bool, typer.Option("--pinned", help="Never expires.")]
Key = Annotated[
    str | None, typer.Option("--key", help="The subject, such as home_city: takes the place of its former memory.")
]
Supersedes = Annotated[str | None, typer.Option("--supersedes", help="The id of the memory whose place it takes.")]
Role = Annotated[str | None, typer.Option("--role", help="Who said it: user, assistant or tool.")]
Id = Annotated[str | None, typer.Option("--id", help="A UUID of your own: the same call again is one memory.")]
Threshold = Annotated[float | None, typer.Option("--threshold", help="Leave out what is less similar (0 to 1).")]
AtMost = Annotated[int | None, typer.Option("--limit", "-n", help="How many at most; all without it.", min=1)]
Explain = Annotated[bool, typer.Option("--explain", help="Show the parts that each similarity is made of.")]
History = Annotated[bool, typer.Option("--history", help="Superseded memories too.")]
MaxChars = Annotated[int | None, typer.Option("--max-chars", help="The longest the block may be.", min=1)]
Fill = Annotated[bool, typer.Option("--fill/--no-fill", help="Fill up with the profile, or only what fits.")]


def remember(
    content: Content,
    agent: options.Agent,
    type: AsType = "fact",
    session: InSession = None,
    tag: WithTags = None,
    key: Key = None,
    supersedes: Supersedes = None,
    ttl_days: options.TtlDays = None,
    pinned: Pinned = False,
    role: Role = None,
    metadata: options.Metadata = None,
    id: Id = None,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Store one memory. The same text again is the same memory; exit code 3 when it was queued."""
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
        raise typer.Exit(errors.QUEUED)


def _became(kept: Memory) -> str:
    if kept.superseded_by:
        return f"Stored as history: {kept.superseded_by} was said later"
    word = "Queued until the service is back" if kept.queued else "Stored"
    return "Already known" if kept.deduplicated else word


def recall(
    query: Query,
    agent: options.Agent,
    limit: options.Limit = 5,
    type: options.Type = None,
    session: options.Session = None,
    tag: options.Tags = None,
    since: options.Since = None,
    until: options.Until = None,
    threshold: Threshold = None,
    explain: Explain = False,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Find the memories that answer a question, best first, with their similarity from 0 to 1."""
    with connection.connected(url) as client:
        chosen = options.filters(type, session, tag, since, until)
        hits = client.recall(agent, options.text(query), limit, threshold=threshold, **chosen)
        if not hits:
            errors.nothing(client, agent, "No relevant memories.")
        if json:
            printing.as_json([printing.hit_fields(hit, explain=explain) for hit in hits])
            return
        for hit in hits:
            printing.hit(hit, explain=explain)


def list_(
    agent: options.Agent,
    limit: AtMost = None,
    type: options.Type = None,
    session: options.Session = None,
    tag: options.Tags = None,
    since: options.Since = None,
    until: options.Until = None,
    history: History = False,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """List the memories of an agent, newest first; with --json as JSON Lines."""
    with connection.connected(url) as client:
        found = 0
        walk = client.memories(agent, history=history, **options.filters(type, session, tag, since, until))
        for one in islice(walk, limit):
            found += 1
            printing.as_json(printing.fields(one)) if json else printing.memory(one)
        if not found:
            errors.nothing(client, agent, "No memories.")


def context(
    agent: options.Agent,
    query: AnyQuery = "general context",
    limit: options.Limit = 8,
    type: options.Type = None,
    session: options.Session = None,
    tag: options.Tags = None,
    since: options.Since = None,
    until: options.Until = None,
    max_chars: MaxChars = None,
    fill: Fill = True,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Print the block of memories for a prompt, as inject_context makes it."""
    with connection.connected(url) as client:
        chosen = options.filters(type, session, tag, since, until)
        block = client.inject_context(agent, options.text(query), limit, max_chars=max_chars, fill=fill, **chosen)
        if not block:
            errors.nothing(client, agent, "No memories for a context.")
        if json:
            printing.as_json({"context": block})
        elif block:
            printing.line(block)


def agents(agent: options.AnyAgent = None, url: options.Url = None, json: options.Json = False) -> None:
    """List the agents and how many memories each has."""
    with connection.connected(url) as client:
        found = [one for one in client.agents() if agent in (None, one.name)]
        if not found:
            errors.nothing(client, agent, "No agents.")
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
            errors.nothing(client, agent, "No sessions.")
        if json:
            printing.as_json([{"session_id": one.session_id, "count": one.count} for one in found])
            return
        for one in found:
            printing.line(f"{one.count:>7}  {one.session_id}")
