"""The commands for memories: remember, recall, list, forget, clear, agents."""

from __future__ import annotations

import json as jsonlib
import sys
from typing import Annotated, cast

import typer
from pydantic import JsonValue

from kronmem import ConfigError, InvalidInputError
from kronmem.cli import options, printing

Content = Annotated[str, typer.Argument(help="The text; - reads it from standard input.", show_default=False)]
Query = Annotated[str, typer.Argument(help="The question; - reads it from standard input.", show_default=False)]
MemoryId = Annotated[str, typer.Argument(help="The id that recall and list show.", show_default=False)]
AsType = Annotated[str, typer.Option("--type", "-t", help="preference, fact, decision, context, temporary, …")]
InSession = Annotated[str | None, typer.Option("--session", "-s", help="The conversation it belongs to.")]
WithTags = Annotated[list[str] | None, typer.Option("--tag", help="A label; repeatable.")]
TtlDays = Annotated[int | None, typer.Option("--ttl-days", help="Forget it by itself after so many days.")]
Pinned = Annotated[bool, typer.Option("--pinned", help="Never expires.")]
Metadata = Annotated[str | None, typer.Option("--metadata", help="A JSON object kept with it.")]
Limit = Annotated[int, typer.Option("--limit", "-n", help="How many at most.", min=1)]
Threshold = Annotated[float | None, typer.Option("--threshold", help="Leave out what is less similar (0 to 1).")]
Explain = Annotated[bool, typer.Option("--explain", help="Show the parts that each similarity is made of.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def remember(
    content: Content,
    agent: options.Agent,
    type: AsType = "fact",
    session: InSession = None,
    tag: WithTags = None,
    ttl_days: TtlDays = None,
    pinned: Pinned = False,
    metadata: Metadata = None,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Store one memory. The same text again is the same memory."""
    with printing.connected(url) as client:
        kept = client.remember(
            agent,
            _text(content),
            type,
            session_id=session,
            tags=tag or (),
            ttl_days=ttl_days,
            pinned=pinned,
            metadata=_object(metadata),
        )
        if json:
            printing.as_json({**printing.fields(kept), "deduplicated": kept.deduplicated, "queued": kept.queued})
        else:
            word = "Queued until the service is back" if kept.queued else "Stored"
            printing.line(f"{'Already known' if kept.deduplicated else word} ({kept.id}).")


def recall(
    query: Query,
    agent: options.Agent,
    limit: Limit = 5,
    type: options.Type = None,
    session: options.Session = None,
    tag: options.Tags = None,
    threshold: Threshold = None,
    explain: Explain = False,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Find the memories that answer a question, the most similar first."""
    with printing.connected(url) as client:
        hits = client.recall(
            agent, _text(query), limit, memory_type=type, session_id=session, tags=tag or (), threshold=threshold
        )
        if json:
            printing.as_json([printing.hit_fields(hit, explain=explain) for hit in hits])
            return
        for hit in hits:
            printing.hit(hit, explain=explain)
        if not hits:
            printing.note("No relevant memories.")


def list_(
    agent: options.Agent,
    type: options.Type = None,
    session: options.Session = None,
    tag: options.Tags = None,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """List all memories of an agent, newest first; with --json as JSON Lines."""
    with printing.connected(url) as client:
        found = False
        for one in client.memories(agent, memory_type=type, session_id=session, tags=tag or ()):
            found = True
            printing.as_json(printing.fields(one)) if json else printing.memory(one)
        if not found and not json:
            printing.note("No memories.")


def forget(memory_id: MemoryId, agent: options.Agent, url: options.Url = None, json: options.Json = False) -> None:
    """Delete one memory."""
    with printing.connected(url) as client:
        client.forget(agent, memory_id)
        printing.as_json({"forgotten": memory_id}) if json else printing.line("Forgotten.")


def clear(
    agent: options.Agent,
    session: Annotated[str | None, typer.Option("--session", "-s", help="Only this session.")] = None,
    yes: Yes = False,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Delete all memories of an agent, or of one session."""
    with printing.connected(url) as client:
        if not yes and not _agreed(f"Delete all memories of {agent}{f', session {session}' if session else ''}?"):
            raise typer.Exit(1)
        count = client.clear(agent, session_id=session)
        printing.as_json({"deleted": count}) if json else printing.line(f"Deleted {count}.")


def agents(agent: options.AnyAgent = None, url: options.Url = None, json: options.Json = False) -> None:
    """List the agents and how many memories each has."""
    with printing.connected(url) as client:
        found = [one for one in client.agents() if agent in (None, one.name)]
        if json:
            include = {"name", "id", "description", "created_at", "memory_count"}
            printing.as_json([one.model_dump(mode="json", include=include) for one in found])
            return
        for one in found:
            printing.line(f"{one.memory_count:>7}  {one.name}")
        if not found:
            printing.note("No agents.")


def _text(given: str) -> str:
    return sys.stdin.read().strip() if given == "-" else given


def _object(given: str | None) -> dict[str, JsonValue] | None:
    if given is None:
        return None
    try:
        value: object = jsonlib.loads(given)
    except ValueError:
        raise InvalidInputError("--metadata is not JSON") from None
    if not isinstance(value, dict):
        raise InvalidInputError("--metadata must be a JSON object")
    return cast("dict[str, JsonValue]", value)


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise ConfigError("nobody is there to ask: say --yes")
    return typer.confirm(question, err=True)
