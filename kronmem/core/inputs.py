"""The checks of arguments before anything is sent.

Every argument that reaches a service passes through here once. The rules are the strictest of the services we
talk to: an argument that is accepted embedded is accepted by Kronvex too, and none that makes it answer 500 leaves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import MAXYEAR, MINYEAR, datetime, timedelta, timezone
from typing import TypeVar, cast
from urllib.parse import quote

from pydantic import JsonValue

from kronmem.api import ids, limits
from kronmem.errors import ConfigError, InvalidInputError
from kronmem.models import Fill

T = TypeVar("T")

_MOST_BITS = 14_000
"""Of a whole number: Python writes and reads at most 4,300 digits."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def identifier(value: str, what: str) -> str:
    """Accept an id that can stand in a path, a header and a database alike."""
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError(f"{what} must be a string, not {_kind(value)}")
    if problem := ids.id_problem(value):
        raise InvalidInputError(f"{what} {problem}")
    return value


def _kind(value: object) -> str:
    """The type of a wrong argument, and the mistake behind it where one is likely."""
    name = type(value).__name__
    if name in ("coroutine", "async_generator"):
        return f"{name}: is an `await` missing?"
    if name in ("Client", "AsyncClient"):
        return f"{name}: pass the name of an agent here, and the client as client=, or use client.agent('my-agent')"
    if isinstance(value, (dict, list)):
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
    found = tuple(dict.fromkeys(strings(values, "exclude", of="memory ids")))
    if len(found) > limits.MAX_EXCLUDED:
        raise InvalidInputError(f"{len(found)} ids were given to exclude; at most {limits.MAX_EXCLUDED} are allowed")
    for one in found:
        if not isinstance(one, str) or not _UUID.fullmatch(one):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
            shown = repr(one) if isinstance(one, str) else _kind(one)  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
            raise InvalidInputError(f"exclude must hold ids of memories, which are UUIDs, not {shown[:80]}")
    return found


def fill(value: Fill) -> Fill:
    """Accept what stands around the hits: nothing, everything, or the standing notes."""
    if value not in (True, False, "profile"):
        raise InvalidInputError(f'fill must be True, False or "profile", not {value!r}')
    return value if value == "profile" else bool(value)


def text(value: str, what: str, most: int = limits.MAX_CONTENT) -> str:
    """Accept text that every service can store."""
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError(f"{what} must be a string, not {_kind(value)}")
    if not value.strip():
        raise InvalidInputError(f"{what} must not be empty")
    if len(value) > most:
        raise InvalidInputError(f"{what} is {len(value)} characters long; at most {most} are allowed")
    if problem := ids.text_problem(value):
        raise InvalidInputError(f"{what} {problem}")
    return value


def blank(value: object) -> bool:
    """Whether it is a text of nothing."""
    return isinstance(value, str) and not value.strip()


def session(value: str | None) -> str | None:
    """Accept a session id. An empty one is refused: Kronvex takes it for "every session"."""
    return None if value is None else identifier(value, "session_id")


def memory_type(value: str) -> str:
    """Accept any type name, known or not, that fits the service's column."""
    return text(value, "memory_type", limits.MAX_TYPE)


def optional_type(value: str | None) -> str | None:
    """Accept a type to filter by, or none."""
    return None if value is None else memory_type(value)


def tags(values: Iterable[str]) -> tuple[str, ...]:
    """Accept tags, each once, in the order given. A bare string is refused: it would become its letters."""
    if values == ():
        return ()
    if isinstance(values, (str, bytes)):
        raise InvalidInputError(f"tags must be a list of strings, not one string: tags=[{values!r}]")
    try:
        found = tuple(dict.fromkeys(text(tag, "a tag", limits.MAX_TAG) for tag in values))
    except TypeError:
        raise InvalidInputError("tags must be a list of strings") from None
    if len(found) > limits.MAX_TAGS:
        raise InvalidInputError(f"{len(found)} tags were given; at most {limits.MAX_TAGS} are allowed")
    return found


def strings(values: Iterable[T], what: str, of: str = "strings") -> list[T]:
    """Accept a list of texts or ids; one bare string is refused: it would become its letters."""
    if isinstance(values, (str, bytes)):
        raise InvalidInputError(f"{what} must be a list of {of}, not one string: put it into [ ]")
    try:
        found = iter(values)
    except TypeError:
        raise InvalidInputError(f"{what} must be a list of {of}, not {type(values).__name__}") from None
    return list(found)


def role(value: str | None) -> str | None:
    """Accept who said a memory, or nobody."""
    if value is not None and value not in ids.ROLES:
        shown = repr(value) if isinstance(value, str) else _kind(value)  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError(f"role must be one of {', '.join(ids.ROLES)} or None, not {shown}")
    return value


def key(value: str | None) -> str | None:
    """Accept the key that a memory is about, or none."""
    return None if value is None else text(value, "key", limits.MAX_KEY)


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
    found = value.astimezone(timezone.utc)
    if value.tzinfo is not None or found.year in (MINYEAR, MAXYEAR) or _local(found) == value.replace(fold=0):
        return found
    early, late = found - timedelta(days=1), found + timedelta(days=1)
    while late - early > timedelta(milliseconds=1):
        middle = early + (late - early) / 2
        early, late = (middle, late) if _local(middle) < value else (early, middle)
    return late.replace(microsecond=0)  # clocks are put forward at a whole second


def _local(value: datetime) -> datetime:
    return value.astimezone().replace(tzinfo=None, fold=0)


def whole(value: int, what: str, least: int, most: int) -> int:
    """Accept a whole number within bounds; True and 3.0 are not numbers here."""
    if not isinstance(value, int) or isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError(f"{what} must be a whole number, not {type(value).__name__}")
    if not least <= value <= most:
        raise InvalidInputError(f"{what} must be from {least} to {most}, not {value}")
    return value


def limit(value: int, most: int) -> int:
    """Accept a limit that the service can honour; a larger one is refused, not cut in silence."""
    return whole(value, "limit", 1, most)


def threshold(value: float | None) -> float | None:
    """Accept a similarity from 0 to 1."""
    if value is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1:  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError("threshold must be a number from 0 to 1")
    return float(value)


def ttl(days: int | None, seconds: int | None) -> dict[str, int]:
    """Accept a lifetime in days or seconds; both may be given, and seconds win, as at the service."""
    given: dict[str, int] = {}
    if days is not None:
        given["ttl_days"] = whole(days, "ttl_days", 1, limits.MAX_TTL_DAYS)
    if seconds is not None:
        given["ttl_seconds"] = whole(seconds, "ttl_seconds", limits.MIN_TTL_SECONDS, limits.MAX_TTL_SECONDS)
    return given


def metadata(value: Mapping[str, JsonValue] | None) -> dict[str, JsonValue]:
    """Copy the caller's metadata after checking that it is plain JSON of a sensible size."""
    if isinstance(value, Mapping) and ids.RESERVED in value:
        raise InvalidInputError(f"the metadata key {ids.RESERVED!r} is reserved")
    return {} if value is None else agent_metadata(value)


def agent_metadata(value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The same for an agent's, in which what kronmem itself keeps is listed and may be given back."""
    if not isinstance(value, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError(f"metadata must be a mapping, not {type(value).__name__}")
    budget = [limits.MAX_METADATA]
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
        if problem := ids.text_problem(value):
            raise InvalidInputError(f"{what} {problem}")
        return value
    if isinstance(value, dict):
        return {_key(k, what, budget): json_value(v, what, budget, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        return [json_value(item, what, budget, depth + 1) for item in value]
    raise InvalidInputError(f"{what} must be plain JSON, not {type(value).__name__}")


def _key(key: str, what: str, budget: list[int]) -> str:
    if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError(f"{what} must have string keys, not {type(key).__name__}")
    json_value(key, what, budget)
    return key


def seconds(value: float, what: str) -> float:
    """Accept a time that may be over, but not one that nobody can tell."""
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
