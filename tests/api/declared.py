"""Holds an answer to its declared reply: exactly the fields, at every depth."""

from __future__ import annotations

from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import JsonValue, TypeAdapter
from typing_extensions import get_type_hints, is_typeddict


def check_reply(kind: Any, value: Any, where: str = "reply") -> set[str]:
    """Assert that the value has exactly the declared fields; return the names of the replies that were seen in it."""
    if is_typeddict(kind):
        assert kind.__required_keys__ <= value.keys() <= kind.__annotations__.keys(), where
        types = get_type_hints(kind)
        inner = (check_reply(types[name], one, f"{where}.{name}") for name, one in value.items())
        return {kind.__name__}.union(*inner)
    if value is not None and is_typeddict(declared := next(iter(get_args(kind)), None)) and NoneType in get_args(kind):
        return check_reply(declared, value, where)
    if get_origin(kind) is list and is_typeddict(get_args(kind)[0]):
        return set().union(*(check_reply(get_args(kind)[0], one, f"{where}[{at}]") for at, one in enumerate(value)))
    if kind is not JsonValue and kind is not NoneType:
        TypeAdapter(kind).validate_python(value, strict=True)
    return set()
