"""The user's own `redact=` applied to a text, and its answer checked before anything is sent."""

from __future__ import annotations

from collections.abc import Callable

from kronmem.api import ids
from kronmem.core import inputs
from kronmem.errors import InvalidInputError

Redact = Callable[[str], str]


def redacted(redact: Redact, text: str) -> str:
    """The text that `redact` returned; `InvalidInputError` if it is no string or no service could store it."""
    clean = redact(inputs.text(text, "text"))
    if not isinstance(clean, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- the callable is the user's
        raise InvalidInputError("redact= must return a string")
    if problem := ids.text_problem(clean):
        raise InvalidInputError(f"the text that redact= returned {problem}")
    return clean
