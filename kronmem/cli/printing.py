"""The output of the command."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer

if TYPE_CHECKING:  # a help page needs no client
    from pydantic import JsonValue

    from kronmem import Hit, Memory

# A terminal would obey them; a memory may hold whatever a visitor typed.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def line(text: str, *, dim: bool = False) -> None:
    """One line for people."""
    typer.secho(_CONTROL.sub("�", text), dim=dim)


def as_json(value: JsonValue) -> None:
    """One line for programs."""
    typer.echo(json.dumps(value, ensure_ascii=False))


def note(text: str) -> None:
    """A line on stderr, which is not the answer."""
    typer.echo(_CONTROL.sub("�", text), err=True)


@contextmanager
def progress(
    label: str, total: int | None = None, *, hidden: bool = False
) -> Generator[Callable[[int], None], None, None]:
    """A bar on a terminal, gone at the end: rate and time left, or the time gone by where no total is known."""
    if hidden or not sys.stderr.isatty():
        yield lambda _count: None
        return
    from rich import progress as parts  # takes as long to load as a short command takes
    from rich.console import Console
    from rich.text import Text

    class Rate(parts.ProgressColumn):
        """Made when it is shown: the speed is a sum over the last thousand steps."""

        def render(self, task: parts.Task) -> Text:
            return Text(f"{task.speed:,.0f}/s" if task.speed else "")

    columns = (parts.MofNCompleteColumn(), Rate(), parts.TimeRemainingColumn())
    known = columns if total is not None else (parts.TimeElapsedColumn(),)
    words = parts.TextColumn("{task.description}")
    with parts.Progress(words, parts.BarColumn(), *known, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda count: bar.advance(task, count)


def shown(url: str) -> str:
    """An address without its secrets: user, password and query. A path stays as it is."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    secretive = host or parts.scheme.startswith("postgres")  # a socket's url has no host, but may have a password
    return f"{parts.scheme}://{host}{parts.path}" if secretive else url


def fields(memory: Memory) -> dict[str, JsonValue]:
    """A memory in JSON."""
    return memory.model_dump(mode="json", include=kept(memory))


def kept(memory: Memory) -> set[str]:
    """The fields that `import` needs to make a memory again: not how it is being delivered."""
    return set(type(memory).model_fields) - {"deduplicated", "may_replace", "queued"}


def hit_fields(found: Hit, *, explain: bool) -> dict[str, JsonValue]:
    """A hit in JSON: the memory, its scores and its excerpt."""
    scores = found.model_dump(mode="json", include={"similarity", "confidence", "excerpt"})
    parts = {"explanation": found.explanation.model_dump(mode="json") if found.explanation else None}
    return {**fields(found.memory), **scores, **(parts if explain else {})}


def hit(found: Hit, *, explain: bool) -> None:
    """A hit: its similarity, the passage that answers, and the memory's metadata."""
    memory(found.memory, found.similarity, found.excerpt)
    if explain:
        line(" " * 8 + _explained(found), dim=True)


def _explained(found: Hit) -> str:
    if (parts := found.explanation) is None:
        return "the service does not show how it scores"
    return f"{found.similarity} = (words {parts.words} + meaning {parts.meaning}) × speaker {parts.speaker}"


def memory(one: Memory, score: float | None = None, excerpt: str = "") -> None:
    """A memory in two lines: its text and its metadata."""
    lead = "" if score is None else f"{score:.2f}  "
    line(lead + (excerpt or one.content))
    parts = [one.memory_type, age(one.created_at), "pinned" if one.pinned else "", expiry(one.expires_at)]
    parts += [f"session {one.session_id}" if one.session_id else "", " ".join(f"#{tag}" for tag in one.tags)]
    parts += [f"key {one.key}" if one.key else "", one.role or "", "superseded" if one.superseded_by else ""]
    line(" " * len(lead) + "  " + " · ".join(part for part in [*parts, one.id] if part), dim=True)


def age(created: datetime | None) -> str:
    """How long ago."""
    if created is None:
        return ""
    words = _span((_now() - _aware(created)).total_seconds())
    return f"{words} ago" if words else "just now"


def expiry(expires: datetime | None) -> str:
    """In how long."""
    if expires is None:
        return ""
    words = _span((_aware(expires) - _now()).total_seconds())
    return f"expires in {words or 'less than a minute'}"


def _span(seconds: float) -> str:
    for name, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {name}{'s' if count > 1 else ''}"
    return ""


def _now() -> datetime:
    return datetime.now(UTC)


def _aware(when: datetime) -> datetime:
    return when if when.tzinfo else when.replace(tzinfo=UTC)
