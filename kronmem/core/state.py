"""Key–value state of an agent: our own route for it, and BotWire's where that is what answers. Pure."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from pydantic import BaseModel, JsonValue, TypeAdapter
from pydantic_core import from_json, to_json

from kronmem.core import calls, inputs
from kronmem.core.exchange import Flow, Link, exchange
from kronmem.core.wire import Call, Reply, parse_json
from kronmem.errors import ConfigError, InvalidInputError, NotFoundError, ReplyError, StatusError

T = TypeVar("T")

MAX_VALUE = 8_000_000
_BOTWIRE_VALUE = 100_000
_BOTWIRE_KEYS = 1000
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_PART = re.compile(r".+\.part-[0-9a-f]{8}-\d+")
_SPLIT = re.compile(r"kronmem-parts:([0-9a-f]{8}):(\d+)")


class Missing(Exception):
    """There is nothing under this key."""


class _Value(BaseModel):
    value: JsonValue


class _Keys(BaseModel):
    keys: list[str]


class _BotValue(BaseModel):
    value: str


class _BotKey(BaseModel):
    key: str


class _BotKeys(BaseModel):
    keys: list[_BotKey]


_VALUE, _KEYS = TypeAdapter(_Value), TypeAdapter(_Keys)
_BOT_VALUE, _BOT_KEYS = TypeAdapter(_BotValue), TypeAdapter(_BotKeys)


def get(agent_id: str, key: str, link: Link, timeout: float) -> Flow[JsonValue]:
    """The value under a key; `Missing` when there is none."""
    ours = _call("GET", agent_id, key, lambda reply: parse_json(_VALUE, reply).value)
    return (yield from _either(ours, partial(_bot_get, agent_id, key, link, timeout), link, timeout))


def put(agent_id: str, key: str, value: JsonValue, link: Link, timeout: float) -> Flow[None]:
    """Store a value under a key."""
    checked = inputs.json_value(value, "the value", [MAX_VALUE])
    text = to_json(checked).decode()
    ours = _call("PUT", agent_id, key, _done, body=b'{"value":' + text.encode() + b"}")
    return (yield from _either(ours, partial(_bot_put, agent_id, key, text, link, timeout), link, timeout))


def delete(agent_id: str, key: str, link: Link, timeout: float) -> Flow[None]:
    """Remove a key; `Missing` when there is none."""
    ours = _call("DELETE", agent_id, key, _done)
    return (yield from _either(ours, partial(_bot_delete, agent_id, key, link, timeout), link, timeout))


def keys(agent_id: str, link: Link, timeout: float) -> Flow[list[str]]:
    """All keys, sorted."""
    ours = _call("GET", agent_id, None, lambda reply: sorted(parse_json(_KEYS, reply).keys))
    return (yield from _either(ours, partial(_bot_keys, agent_id, link, timeout), link, timeout))


def _call(
    method: str, agent_id: str, key: str | None, parse: Callable[[Reply], T], body: bytes | None = None
) -> Call[T]:
    path = "" if key is None else f"/{inputs.segment(key, 'key')}"
    agent = inputs.identifier(agent_id, "agent_id")
    return Call("state", method, f"{calls.AGENT}/state{path}", parse, agent, (), body, calls.JSON if body else ())


def _done(_: Reply) -> None:
    return None


def _either(ours: Call[T], theirs: Callable[[], Flow[T]], link: Link, timeout: float) -> Flow[T]:
    """Ask in our own way; a service that has no such route is asked in BotWire's from then on."""
    if "state" not in link.lacks:
        try:
            return (yield from exchange(ours, link, timeout))
        except StatusError as error:
            if error.status == 404 and error.message == "State not found":
                raise Missing from None
            if error.status not in (404, 405):
                raise
            link.lacks.add("state")
    try:
        return (yield from theirs())
    except NotFoundError as error:
        if error.message.startswith("Key not found"):
            raise Missing from None
        raise ConfigError(
            "this service keeps no state: pass state_url= (a kronmem or BotWire service, or sqlite:///file.db)"
        ) from None


# ── BotWire: values are strings of at most 100,000 characters, names have few letters ────────────────────────────


def _namespace(agent_id: str) -> str:
    if re.fullmatch(r"(?!h-)[A-Za-z0-9_-]{1,64}", agent_id):
        return agent_id
    return "h-" + hashlib.sha256(agent_id.encode()).hexdigest()[:40]


def _written(key: str) -> str:
    if _PLAIN_KEY.fullmatch(key) and not key.startswith("k64-") and not _PART.fullmatch(key):
        return key
    packed = "k64-" + base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")
    if len(packed) > 100:
        raise InvalidInputError("the key is too long for a BotWire service")
    return packed


def _read(key: str) -> str:
    if not key.startswith("k64-"):
        return key
    return base64.urlsafe_b64decode(key[4:] + "=" * (-len(key) % 4)).decode()


def _bot(method: str, agent_id: str, key: str | None, parse: Callable[[Reply], T], value: str | None = None) -> Call[T]:
    path = f"/memory/{_namespace(agent_id)}" + ("" if key is None else f"/{key}")
    query = (("limit", str(_BOTWIRE_KEYS)),) if key is None else ()
    body = None if value is None else to_json({"value": value})
    return Call("state", method, path, parse, None, query, body, calls.JSON if body else ())


def _text(reply: Reply) -> str:
    return parse_json(_BOT_VALUE, reply).value


def _bot_get(agent_id: str, key: str, link: Link, timeout: float) -> Flow[JsonValue]:
    text = yield from exchange(_bot("GET", agent_id, _written(key), _text), link, timeout)
    if split := _SPLIT.fullmatch(text):
        text = "".join((yield from _parts(agent_id, key, split[1], int(split[2]), link, timeout)))
    try:
        value: JsonValue = from_json(text)
    except ValueError:
        raise ReplyError("the value under this key was not written by kronmem") from None
    return value


def _part(key: str, token: str, number: int) -> str:
    return f"{_written(key)}.part-{token}-{number}"


def _parts(agent_id: str, key: str, token: str, count: int, link: Link, timeout: float) -> Flow[list[str]]:
    found: list[str] = []
    for number in range(count):
        found.append((yield from exchange(_bot("GET", agent_id, _part(key, token, number), _text), link, timeout)))
    return found


def _bot_put(agent_id: str, key: str, text: str, link: Link, timeout: float) -> Flow[None]:
    """A long value goes in parts first, then the note of where they are: a reader sees the old value or the new one."""
    old = yield from _bot_split(agent_id, key, link, timeout)
    value = text
    if len(text) > _BOTWIRE_VALUE:
        token = hashlib.sha256(text.encode()).hexdigest()[:8]
        pieces = [text[at : at + _BOTWIRE_VALUE] for at in range(0, len(text), _BOTWIRE_VALUE)]
        for number, piece in enumerate(pieces):
            yield from exchange(_bot("PUT", agent_id, _part(key, token, number), _done, piece), link, timeout)
        value = f"kronmem-parts:{token}:{len(pieces)}"
    yield from exchange(_bot("PUT", agent_id, _written(key), _done, value), link, timeout)
    if old is not None and old[0] != value:
        yield from _bot_drop(agent_id, key, old[1], old[2], link, timeout)


def _bot_delete(agent_id: str, key: str, link: Link, timeout: float) -> Flow[None]:
    old = yield from _bot_split(agent_id, key, link, timeout)
    yield from exchange(_bot("DELETE", agent_id, _written(key), _done), link, timeout)
    if old is not None:
        yield from _bot_drop(agent_id, key, old[1], old[2], link, timeout)


def _bot_split(agent_id: str, key: str, link: Link, timeout: float) -> Flow[tuple[str, str, int] | None]:
    """Where the parts of the present value are, if it has any."""
    try:
        text = yield from exchange(_bot("GET", agent_id, _written(key), _text), link, timeout)
    except NotFoundError as error:
        if error.message.startswith("Key not found"):
            return None
        raise
    split = _SPLIT.fullmatch(text)
    return (text, split[1], int(split[2])) if split else None


def _bot_drop(agent_id: str, key: str, token: str, count: int, link: Link, timeout: float) -> Flow[None]:
    for number in range(count):
        gone = _bot("DELETE", agent_id, _part(key, token, number), _done)
        try:
            yield from exchange(gone, link, timeout)
        except NotFoundError:
            continue


def _bot_keys(agent_id: str, link: Link, timeout: float) -> Flow[list[str]]:
    def parse(reply: Reply) -> list[str]:
        found = parse_json(_BOT_KEYS, reply).keys
        if len(found) >= _BOTWIRE_KEYS:
            raise ReplyError(f"this service lists {_BOTWIRE_KEYS} keys at most, and there may be more")
        return sorted(_read(one.key) for one in found if not _PART.fullmatch(one.key))

    return (yield from exchange(_bot("GET", agent_id, None, parse), link, timeout))
