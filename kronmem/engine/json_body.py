"""Reads the JSON of a request: bounded in what it costs, so that one body does not hold up all other threads."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue
from pydantic_core import from_json

from kronmem.errors import InvalidRequestError

MAX_VALUES = 1_000_000
"""Parsing holds the interpreter's lock: a million values take it for about a tenth of a second, the 6 million that fit
into the largest body for several."""
_SMALL = 1024 * 1024
"""In bytes: no body of this size holds too many values."""
_PIECE = 64 * 1024
"""Bytes counted at a time: other threads have their turn in between."""


def parse(body: bytes) -> JsonValue:
    """The value of a body; `InvalidRequestError` when it is no JSON of sensible depth, or of too many values."""
    if len(body) > _SMALL and holds_more(body, MAX_VALUES):
        raise InvalidRequestError(f"The body holds more than {MAX_VALUES} values", status=422)
    try:
        # Not json.loads: it takes a second for the floats of a large body, with the interpreter's lock held.
        value: JsonValue = from_json(body, allow_inf_nan=False)
    except ValueError as error:  # not JSON, not UTF-8, a lone surrogate, too deep, or a number of absurd length
        raise InvalidRequestError(f"The body is not JSON: {error}", status=422) from error
    return value


def holds_more(body: bytes, most: int) -> bool:
    """Whether more values may stand in a body of JSON; counting ends soon after there are too many."""
    found = 0
    for outside in _outside_strings(body):
        found += sum(map(outside.count, (b",", b"[", b"{")))
        if found > most:
            return True
    return False


def _outside_strings(body: bytes) -> Iterator[bytes]:
    """The body piece by piece, without its strings."""
    at, inside = 0, False
    while at < len(body):
        end = at + _PIECE
        while body[end - 1 : end] == b"\\":  # an escape is read in one piece
            end += 1
        parts = body[at:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        yield b"".join(parts[inside::2])
        inside ^= len(parts) % 2 == 0
        at = end
