"""Checks that complain in the words of the recorded server; no HTTP here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

Loc = tuple[Any, ...]
Check = Callable[[Any, Loc], Any]
REQUIRED: Any = object()


class Invalid(Exception):
    """One or more validation items."""

    def __init__(self, items: list[dict[str, Any]]) -> None:
        super().__init__(items)
        self.items = items


def bad(kind: str, loc: Loc, msg: str, value: Any, **ctx: Any) -> Invalid:
    """One validation item."""
    item = {"type": kind, "loc": list(loc), "msg": msg, "input": value}
    return Invalid([{**item, "ctx": ctx} if ctx else item])


def text(shortest: int = 0, longest: int | None = None) -> Check:
    """A string within its lengths."""

    def check(value: Any, loc: Loc) -> str:
        if not isinstance(value, str):
            raise bad("string_type", loc, "Input should be a valid string", value)
        if len(value) < shortest:
            message = f"String should have at least {plural(shortest, 'character')}"
            raise bad("string_too_short", loc, message, value, min_length=shortest)
        if longest is not None and len(value) > longest:
            message = f"String should have at most {plural(longest, 'character')}"
            raise bad("string_too_long", loc, message, value, max_length=longest)
        return value

    return check


def plural(count: int, noun: str) -> str:
    """A count and its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def whole(least: int, most: int | None = None) -> Check:
    """An integer, or what can pass for one."""

    def check(value: Any, loc: Loc) -> int:
        if isinstance(value, float) and not value.is_integer():
            message = "Input should be a valid integer, got a number with a fractional part"
            raise bad("int_from_float", loc, message, value)
        return bounded(value, _number(int, value, loc, "int", "integer"), loc, least, most)

    return check


def number(least: float, most: float) -> Check:
    """A float, or what can pass for one."""

    def check(value: Any, loc: Loc) -> float:
        return bounded(value, _number(float, value, loc, "float", "number"), loc, least, most)

    return check


def _number(kind: type, value: Any, loc: Loc, code: str, noun: str) -> Any:
    if not isinstance(value, (int, float, str)):
        raise bad(f"{code}_type", loc, f"Input should be a valid {noun}", value)
    try:
        return kind(value)
    except ValueError:
        message = f"Input should be a valid {noun}, unable to parse string as {'an' if kind is int else 'a'} {noun}"
        raise bad(f"{code}_parsing", loc, message, value) from None


def bounded(given: Any, value: Any, loc: Loc, least: Any, most: Any) -> Any:
    """A number within its bounds."""
    if value < least:
        raise bad("greater_than_equal", loc, f"Input should be greater than or equal to {least:g}", given, ge=least)
    if most is not None and value > most:
        raise bad("less_than_equal", loc, f"Input should be less than or equal to {most:g}", given, le=most)
    return value


def flag(value: Any, loc: Loc) -> bool:
    """A boolean, or what can pass for one."""
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    if not isinstance(value, (bool, int, float, str)):
        raise bad("bool_type", loc, "Input should be a valid boolean", value)
    if str(value).lower() not in words:
        raise bad("bool_parsing", loc, "Input should be a valid boolean, unable to interpret input", value)
    return words[str(value).lower()]


def mapping(value: Any, loc: Loc) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise bad("dict_type", loc, "Input should be a valid dictionary", value)
    return value


def one_of(*names: str) -> Check:
    """One of these words, exactly."""
    expected = ", ".join(f"'{name}'" for name in names[:-1]) + f" or '{names[-1]}'"

    def check(value: Any, loc: Loc) -> str:
        if value not in names:
            raise bad("literal_error", loc, f"Input should be {expected}", value, expected=expected)
        return str(value)

    return check


def pattern(regex: str) -> Check:
    """A string that matches."""

    def check(value: Any, loc: Loc) -> str:
        if not re.search(regex, value):
            message = f"String should match pattern '{regex}'"
            raise bad("string_pattern_mismatch", loc, message, value, pattern=regex)
        return str(value)

    return check


def optional(inner: Check) -> Check:
    """The same, or null."""
    return lambda value, loc: None if value is None else inner(value, loc)


def items(inner: Check, least: int = 0, most: int | None = None) -> Check:
    """A JSON array within its lengths, each item checked."""

    def check(value: Any, loc: Loc) -> list[Any]:
        if not isinstance(value, list):
            raise bad("list_type", loc, "Input should be a valid list", value)
        if len(value) < least:
            raise _length("too_short", f"at least {plural(least, 'item')}", loc, value, min_length=least)
        if most is not None and len(value) > most:
            raise _length("too_long", f"at most {plural(most, 'item')}", loc, value, max_length=most)
        return collect((index, inner, item) for index, item in enumerate(value))(loc)

    return check


def _length(kind: str, wanted: str, loc: Loc, value: list[Any], **limit: int) -> Invalid:
    message = f"List should have {wanted} after validation, not {len(value)}"
    return bad(kind, loc, message, value, field_type="List", **limit, actual_length=len(value))


def collect(checks: Any) -> Callable[[Loc], list[Any]]:
    """Run every check and complain about all that failed at once."""

    def run(loc: Loc) -> list[Any]:
        values, wrong = [], []
        for name, check, value in checks:
            try:
                values.append(check(value, (*loc, name)))
            except Invalid as invalid:
                wrong += invalid.items
        if wrong:
            raise Invalid(wrong)
        return values

    return run


def model(fields: Mapping[str, tuple[Check, Any]]) -> Check:
    """A JSON object with these fields (check, default); others are ignored."""

    def check(value: Any, loc: Loc) -> dict[str, Any]:
        if not isinstance(value, dict):
            message = "Input should be a valid dictionary or object to extract fields from"
            raise bad("model_attributes_type", loc, message, value)
        given = ((name, _or_default(name, rule, value), value.get(name)) for name, rule in fields.items())
        return dict(zip(fields, collect(given)(loc), strict=True))

    return check


def _or_default(name: str, rule: tuple[Check, Any], whole_value: dict[str, Any]) -> Check:
    inner, default = rule
    if name in whole_value:
        return inner
    if default is not REQUIRED:
        return lambda _value, _loc: default

    def missing(_value: Any, loc: Loc) -> Any:
        raise bad("missing", loc, "Field required", whole_value)

    return missing


def identifier(value: Any, loc: Loc) -> str:
    """A UUID with or without its dashes, in braces or as a URN, as its canonical text."""
    given, value = value, re.sub(r"^(?:\{(.*)\}|urn:uuid:(.*))$", r"\1\2", value)
    if given != value and not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value):
        value = given
    stray = re.search(r"[^0-9a-fA-F-]", value)
    if stray:
        raise _not_uuid(f"invalid character: found `{stray.group()}` at {stray.start()}", value, loc)
    digits = value.replace("-", "").lower()
    canonical = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    if len(digits) != 32 or value.lower() not in (digits, canonical):
        raise _not_uuid(f"invalid length: expected length 32 for simple format, found {len(value)}", value, loc)
    return canonical


def _not_uuid(error: str, value: str, loc: Loc) -> Invalid:
    return bad("uuid_parsing", loc, f"Input should be a valid UUID, {error}", value, error=error)


def parse(content: bytes, content_type: str) -> Any:
    """The value of a body: parsed when it says it is JSON, else its text."""
    if not content:
        raise bad("missing", ("body",), "Field required", None)
    if content_type and content_type.partition(";")[0].strip() != "application/json":
        return content.decode("utf-8", "replace")
    try:
        return json.loads(content.decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        raise bad("json_invalid", ("body", error.pos), "JSON decode error", {}, error=error.msg) from None
