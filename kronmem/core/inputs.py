"""The checks of arguments before anything is sent; the bounds of a read, the options that shells share, `redact=`.

Every argument that reaches a service passes through here once. The rules are the strictest of the services we
talk to: an argument that is accepted embedded is accepted by Kronvex too, and none that makes it answer 500 leaves.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from typing import TypedDict, TypeVar, cast
from urllib.parse import quote

from pydantic import JsonValue

from kronmem.api import rules
from kronmem.errors import ConfigError, InvalidInputError
from kronmem.models import Fill, Hit, Memory

T = TypeVar("T")

log = logging.getLogger("kronmem")
_MOST_BITS = 14_000
"""Of a whole number: Python writes and reads at most 4,300 digits."""
_WORD = re.compile(r"\w+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def identifier(value: str, what: str) -> str:
    """Accept an id that can stand in a path, a header and a database alike."""
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError(f"{what} must be a string, not {_kind(value)}")
    if problem := rules.id_problem(value):
        first = ": a client's methods take the agent_id before the text" if what == "agent_id" and " " in value else ""
        raise InvalidInputError(f"{what} {problem}{first}")
    return value


_MEANT = {
    **dict.fromkeys(("add", "save", "write", "put", "insert", "add_memory"), "remember"),
    **dict.fromkeys(("search", "query", "ask", "find", "retrieve"), "recall"),
    **dict.fromkeys(("get_all", "list", "all", "get_memories"), "memories"),
    "delete": "forget",
    "remove": "forget",
    "delete_all": "clear",
    "reset": "clear",
    "aclose": "close",
}
"""Methods by the names that other libraries have for them."""


def no_attribute(owner: object, name: str) -> AttributeError:
    """The error about a name that a client or its memory of an agent has not, with the one that was meant."""
    hint = f": use .{_MEANT[name]}(…)" if name in _MEANT else ""
    if name == "update_context":  # AutoGen asks for it in the middle of a run
        hint = ": for AssistantAgent(memory=[…]) write KronMemory('my-agent') of kronmem.agentchat"
    return AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}{hint}")


def _kind(value: object, what: str = "") -> str:
    """The type of a wrong argument, and the mistake behind it where one is likely."""
    name = type(value).__name__
    if name in ("Memory", "Hit"):
        return f"{name}: use its {'.memory.id' if name == 'Hit' else '.id'} or .content"
    if name in ("AgentMemory", "AsyncAgentMemory"):
        return f"{name}, which knows its agent already: use its .agent_id"
    if isinstance(value, (bytes, int)):
        return f"{name}: use {'.decode()' if isinstance(value, bytes) else 'str(…)'}"
    if name in ("coroutine", "async_generator"):
        return f"{name}: is an `await` missing?"
    if name in ("Client", "AsyncClient"):
        return f"{name}: pass the name of an agent here, and the client as client=, or use client.agent('my-agent')"
    if isinstance(value, (dict, list)) and what == "content":
        return f"{name}: store it as text with json.dumps(…), or beside a text as metadata="
    return name


def segment(value: str, what: str) -> str:
    """Check an id and quote it for a path."""
    return quote(identifier(value, what), safe="")


def uuid(value: str) -> str:
    """Accept a UUID in its usual form; ids of memories are UUIDs at every service."""
    if not _UUID.fullmatch(identifier(value, "memory_id")):
        raise InvalidInputError("memory_id must be a UUID such as 0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d")
    return value.lower()


def excluded(values: Iterable[str]) -> tuple[str, ...]:
    """Accept the ids of memories that the caller has already: UUIDs, each once."""
    if values == ():
        return ()
    ids = tuple(dict.fromkeys(strings(values, "exclude", of="memory ids")))
    if len(ids) > rules.MAX_EXCLUDED:
        raise InvalidInputError(f"{len(ids)} ids were given to exclude; at most {rules.MAX_EXCLUDED} are allowed")
    for one in ids:
        if not isinstance(one, str) or not _UUID.fullmatch(one):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
            shown = repr(one) if isinstance(one, str) else _kind(one)  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
            raise InvalidInputError(f"exclude must hold ids of memories, which are UUIDs, not {shown[:80]}")
    return ids


def fill(value: Fill) -> Fill:
    """Accept the filling around the hits: none, all of it, or the standing notes."""
    if value not in (True, False, "profile"):
        raise InvalidInputError(f'fill must be True, False or "profile", not {value!r}')
    return value if value == "profile" else bool(value)


def checked_text(value: str, what: str, most: int = rules.MAX_CONTENT) -> str:
    """Accept text that every service can store."""
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError(f"{what} must be a string, not {_kind(value, what)}")
    if not value.strip():
        raise InvalidInputError(f"{what} must not be empty")
    if len(value) > most:
        raise InvalidInputError(f"{what} is {len(value)} characters long; at most {most} are allowed")
    if problem := rules.text_problem(value):
        raise InvalidInputError(f"{what} {problem}")
    return value


def content(value: str) -> str:
    """Accept the text of a memory. The name of a type is none: an argument before it was left out, or two swapped."""
    if checked_text(value, "content") in rules.MEMORY_TYPES:
        raise InvalidInputError(
            f"content is {value!r}, the name of a memory type: a client takes remember(agent_id, text, memory_type), "
            "client.agent(id) takes remember(text, memory_type)"
        )
    return value


def blank(value: object) -> bool:
    """Whether it is a text of nothing."""
    return isinstance(value, str) and not value.strip()


def session(value: str | None) -> str | None:
    """Accept a session id. An empty one is refused: Kronvex takes it for "every session"."""
    return None if value is None else identifier(value, "session_id")


def memory_type(value: str) -> str:
    """Accept any type name, known or not, that fits the service's column."""
    _note_typo(checked_text(value, "memory_type", rules.MAX_TYPE))
    return value


@lru_cache(maxsize=100)
def _note_typo(name: str) -> None:
    """Log once that a type looks like a misspelt one: own types are allowed, and found by their exact name only."""
    if name not in rules.MEMORY_TYPES and (near := get_close_matches(name, rules.MEMORY_TYPES, 1, 0.8)):
        log.warning("memory_type %r is a type of your own: did you mean %r?", name, near[0])


def optional_type(value: str | None) -> str | None:
    """Accept a type to filter by, or none."""
    return None if value is None else memory_type(value)


def checked_tags(values: Iterable[str]) -> tuple[str, ...]:
    """Accept tags, each once, in the order given. A bare string is refused: it would become its letters."""
    if values == ():
        return ()
    if isinstance(values, (str, bytes)):
        raise InvalidInputError(f"tags must be a list of strings, not one string: tags=[{values!r}]")
    try:
        tags = tuple(dict.fromkeys(checked_text(tag, "a tag", rules.MAX_TAG) for tag in values))
    except TypeError:
        raise InvalidInputError("tags must be a list of strings") from None
    if len(tags) > rules.MAX_TAGS:
        raise InvalidInputError(f"{len(tags)} tags were given; at most {rules.MAX_TAGS} are allowed")
    return tags


def strings(values: Iterable[T], what: str, of: str = "strings") -> list[T]:
    """Accept a list of texts or ids; one bare string is refused: it would become its letters."""
    if isinstance(values, (str, bytes)):
        raise InvalidInputError(f"{what} must be a list of {of}, not one string: put it into [ ]")
    try:
        items = iter(values)
    except TypeError:
        raise InvalidInputError(f"{what} must be a list of {of}, not {type(values).__name__}") from None
    return list(items)


def role(value: str | None) -> str | None:
    """Accept the speaker of a memory, or None."""
    if value is not None and value not in rules.ROLES:
        shown = repr(value) if isinstance(value, str) else _kind(value)  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError(f"role must be one of {', '.join(rules.ROLES)} or None, not {shown}")
    return value


def key(value: str | None) -> str | None:
    """Accept the key that a memory is about, or none."""
    return None if value is None else checked_text(value, "key", rules.MAX_KEY)


def moment(value: datetime | str | None, what: str) -> datetime | None:
    """Accept a time as a datetime or in ISO 8601; without a zone it is local time."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(re.sub(r"[Zz]$", "+00:00", value.strip()))
        except ValueError:
            raise InvalidInputError(f"{what} must be a datetime or ISO 8601 such as 2026-11-16T12:00:00Z") from None
    if not isinstance(value, datetime):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError(f"{what} must be a datetime or an ISO 8601 string, not {type(value).__name__}")
    try:
        return aware(value)
    except (OverflowError, ValueError, OSError):
        raise InvalidInputError(f"{what} is out of range") from None


def aware(value: datetime) -> datetime:
    """The same time with a zone; one without is local.

    One that the clocks left out in spring is the moment at which they were put forward: all before it comes before.
    """
    utc = value.astimezone(UTC)
    if value.tzinfo is not None or utc.year in (MINYEAR, MAXYEAR) or _local(utc) == value.replace(fold=0):
        return utc
    early, late = utc - timedelta(days=1), utc + timedelta(days=1)
    while late - early > timedelta(milliseconds=1):
        middle = early + (late - early) / 2
        early, late = (middle, late) if _local(middle) < value else (early, middle)
    return late.replace(microsecond=0)  # clocks are put forward at a whole second


def _local(value: datetime) -> datetime:
    return value.astimezone().replace(tzinfo=None, fold=0)


def whole(value: int, what: str, least: int, most: int) -> int:
    """Accept a whole number within bounds; True and 3.0 are not numbers here."""
    if not isinstance(value, int) or isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        number = f": {what}={value}" if str(value).isdecimal() else ""
        raise InvalidInputError(f"{what} must be a whole number, not {type(value).__name__}{number}")
    if not least <= value <= most:
        raise InvalidInputError(f"{what} must be from {least} to {most}, not {value}")
    return value


def limit(value: int, most: int) -> int:
    """Accept a limit that the service can honour; a larger one is refused, not cut in silence."""
    if isinstance(value, str) and not value.isdecimal():  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError(
            "limit must be a whole number, not str: a client takes recall(agent_id, query, limit), client.agent(id) "
            "takes recall(query, limit); a type goes in as memory_type="
        )
    return whole(value, "limit", 1, most)


def threshold(value: float | None) -> float | None:
    """Accept a similarity from 0 to 1."""
    if value is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1:  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError("threshold must be a number from 0 to 1, such as 0.3")
    return float(value)


def ttl(days: int | None, seconds: int | None) -> dict[str, int]:
    """Accept a lifetime in days or seconds; both may be given, and seconds win, as at the service."""
    given: dict[str, int] = {}
    if days is not None:
        given["ttl_days"] = whole(days, "ttl_days", 1, rules.MAX_TTL_DAYS)
    if seconds is not None:
        given["ttl_seconds"] = whole(seconds, "ttl_seconds", rules.MIN_TTL_SECONDS, rules.MAX_TTL_SECONDS)
    return given


def metadata(value: Mapping[str, JsonValue] | None) -> dict[str, JsonValue]:
    """Copy the caller's metadata after checking that it is plain JSON of a sensible size."""
    if isinstance(value, Mapping):
        free_of_reserved(value)
    return {} if value is None else agent_metadata(value)


def free_of_reserved(value: Mapping[str, JsonValue]) -> None:
    """Refuse metadata under the key that is kronmem's own."""
    if rules.RESERVED in value:
        raise InvalidInputError(f"the metadata key {rules.RESERVED!r} is reserved")


def agent_metadata(value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The same for an agent's, in which kronmem's own keys are listed and may be given back."""
    if not isinstance(value, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError(f'metadata must be a mapping such as {{"source": "chat"}}, not {type(value).__name__}')
    budget = [rules.MAX_METADATA]
    return cast("dict[str, JsonValue]", json_value(dict(value), "metadata", budget))


def json_value(value: JsonValue, what: str, budget: list[int], depth: int = 0) -> JsonValue:
    """Copy a JSON value, refusing values that JSON cannot carry exactly. `budget` counts characters down."""
    if depth > 64:
        raise InvalidInputError(f"{what} is nested too deeply")
    budget[0] -= len(value) if isinstance(value, str) else 1
    if budget[0] < 0:
        raise InvalidInputError(f"{what} is too large")
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise InvalidInputError(f"{what} holds a whole number that is too large")
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInputError(f"{what} must not contain NaN or infinity")
        return value
    if isinstance(value, str):
        if problem := rules.text_problem(value):
            raise InvalidInputError(f"{what} {problem}")
        return value
    if isinstance(value, dict):
        return {_key(k, what, budget): json_value(v, what, budget, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        return [json_value(item, what, budget, depth + 1) for item in value]
    raise InvalidInputError(f"{what} must be plain JSON, not {type(value).__name__}: make it text, as str(…) does")


def _key(key: str, what: str, budget: list[int]) -> str:
    if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError(f"{what} must have string keys, not {type(key).__name__}")
    json_value(key, what, budget)
    return key


def seconds(value: float, what: str) -> float:
    """Accept a time that may be over, but not one that cannot be represented."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value <= 86_400:  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError(f"{what} must be a number of seconds, at most a day")
    return float(value)


def timeout(value: float) -> float:
    """Accept a deadline in seconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 86_400:  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise ConfigError("timeout must be a number of seconds greater than 0")
    return float(value)


def concurrency(value: int) -> int:
    """Accept how many calls may be under way at once."""
    return whole(value, "concurrency", 1, 1000)


# The bounds of a read. Sent to services that filter, and held against every answer: not all of them do. Pure.


@dataclass(frozen=True)
class MemoryFilter:
    """Only memories that pass every bound are read. `since` is included, `until` is not."""

    memory_type: str | None = None
    session_id: str | None = None
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    @property
    def narrow(self) -> bool:
        """Is there anything to filter by?"""
        return self is not EVERYTHING and self != EVERYTHING

    def holds(self, one: Memory) -> bool:
        """Is this memory inside?"""
        return (
            (self.memory_type is None or one.memory_type == self.memory_type)
            and (self.session_id is None or one.session_id == self.session_id)
            and set(self.tags) <= set(one.tags)
            and self._is_time_inside(one.created_at)
        )

    def _is_time_inside(self, created_at: datetime | None) -> bool:
        if self.since is None and self.until is None:
            return True
        if created_at is None:
            return False
        at = aware(created_at)
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)


EVERYTHING = MemoryFilter()
"""The filter that every memory passes."""


def memory_filter(
    memory_type: str | None = None,
    session_id: str | None = None,
    tags: Iterable[str] = (),
    since: datetime | str | None = None,
    until: datetime | str | None = None,
) -> MemoryFilter:
    """Check the bounds of a read."""
    if memory_type is None and session_id is None and tags == () and since is None and until is None:
        return EVERYTHING
    return MemoryFilter(
        optional_type(memory_type),
        session(session_id),
        checked_tags(tags),
        moment(since, "since"),
        moment(until, "until"),
    )


def keep(hits: list[Hit], *, limit: int, within: MemoryFilter, threshold: float | None) -> list[Hit]:
    """Filter again: at Kronvex an entity match returns memories that ignore every filter."""
    if threshold is None and not within.narrow:
        return hits[:limit]
    kept = [
        hit
        for hit in hits
        if within.holds(hit.memory)
        and (threshold is None or hit.standing or hit.similarity >= threshold or _is_unscored(hit))
    ]
    return kept[:limit]


def without(found: list[Hit], exclude: Container[str]) -> list[Hit]:
    """Leave out the memories of these ids, and those that say the same in the same words."""
    known = {words(hit.memory.content) for hit in found if hit.memory.id.lower() in exclude}
    return [hit for hit in found if words(hit.memory.content) not in known] if known else found


def words(text: str) -> frozenset[str]:
    """The words of a text, without order, case and punctuation; the text itself if it has none."""
    return frozenset(_WORD.findall(text.casefold())) or frozenset([text])


def _is_unscored(hit: Hit) -> bool:
    return "similarity" not in hit.model_fields_set


# The keyword arguments that a client, its scopes and its wiring share: each is named here once.


class WriteOptions(TypedDict, total=False):
    """Everything that `remember` and its siblings take beside the text and its type."""

    session_id: str | None
    ttl_days: int | None
    ttl_seconds: int | None
    pinned: bool
    tags: Iterable[str]
    metadata: Mapping[str, JsonValue] | None
    role: str | None
    key: str | None


class ReadFilters(TypedDict, total=False):
    """The limits of a read: only memories that pass all of them are answered."""

    memory_type: str | None
    session_id: str | None
    tags: Iterable[str]
    since: datetime | str | None
    until: datetime | str | None


class RecallOptions(ReadFilters, total=False):
    """Everything that `recall` takes beside the query and the limit."""

    threshold: float | None
    count_access: bool
    exclude: Iterable[str]
    fill: Fill


class ChangeOptions(TypedDict):
    """Everything that `update` may change; None leaves as it is."""

    content: str | None
    memory_type: str | None
    tags: Iterable[str] | None
    metadata: Mapping[str, JsonValue] | None
    pinned: bool | None
    ttl_days: int | None


# The user's own `redact=` applied to a text, and its answer checked before anything is sent.

Redact = Callable[[str], str]


def redacted(redact: Redact, text: str) -> str:
    """The text that `redact` returned; `InvalidInputError` if it is no string or no service could store it."""
    clean = redact(checked_text(text, "text"))
    if not isinstance(clean, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- the callable is the user's
        raise InvalidInputError("redact= must return a string")
    if problem := rules.text_problem(clean):
        raise InvalidInputError(f"the text that redact= returned {problem}")
    return clean
