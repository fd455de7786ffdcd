"""The arguments that a model passes to a tool, put right: a number as text, tags with commas, a list as JSON. Pure."""

from __future__ import annotations

import json
from typing import TypedDict

MAX_LIMIT = 20
"""The most hits that a service answers; a model that asks for more gets these."""
MAX_DAYS = 36_500
"""A date further back may lie before the calendar begins."""
EVERYTHING = frozenset(("", "*", "all", "any", "everything", "all memories", "all notes", "alles", "tout", "todo"))


class Extras(TypedDict):
    """The optional arguments of remember, as the client takes them."""

    tags: tuple[str, ...]
    ttl_days: int | None
    key: str | None


def as_text(value: object) -> str:
    if value is None:
        return ""  # which is refused in words
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def as_type(value: object) -> str:
    return (value.strip().lower() if isinstance(value, str) else "") or "fact"


def as_limit(value: object) -> int:
    return min(MAX_LIMIT, max(1, _number(value) or 5))


def as_days(value: object) -> int | None:
    """How many days back, at least one."""
    days = _number(value)
    return None if days is None else min(MAX_DAYS, max(1, days))


def asks_for_all(query: str) -> bool:
    """Whether a query asks for the memory as a whole: "*", "" and "everything"."""
    return query.strip(" .!?\"'").casefold() in EVERYTHING


def as_tags(value: object) -> tuple[str, ...]:
    """Models send a list, a JSON list as text, or words with commas."""
    if isinstance(value, str):
        value = _loaded(value)
    parts: list[object] = list(value) if isinstance(value, (list, tuple)) else [value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] -- from a model
    return tuple(tag for tag in (str(part).strip() for part in parts if part is not None) if tag)


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.split(",")


def as_extras(tags: object, ttl_days: object, key: object) -> Extras:
    days = _number(ttl_days)
    lifetime = None if not days or days < 1 else min(days, 3650)
    return {"tags": as_tags(tags), "ttl_days": lifetime, "key": None if key is None else as_text(key).strip() or None}


def _number(value: object) -> int | None:
    try:
        return None if value is None else int(float(str(value)))
    except (ValueError, OverflowError):
        return None
