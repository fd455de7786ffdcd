"""Text and JSON of messages in a form that every store takes. Pure.

A message may hold anything: a file that a tool read, half a character of a model. One that no store took would stand
in the way of all that is saved after it.
"""

from __future__ import annotations

import math
import re

from pydantic import JsonValue

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""NUL, and halves of a surrogate pair."""


def storable(value: JsonValue) -> JsonValue:
    """The value with U+FFFD in place of characters, and null in place of numbers, that no store takes."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_text(name): storable(inner) for name, inner in value.items()}
    return [storable(inner) for inner in value] if isinstance(value, list) else value


def _text(value: str) -> str:
    return UNSTORABLE.sub("\ufffd", value)
