"""Key–value state of an agent: our own routes for it, or BotWire's where that is the service. Pure."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TypeVar

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from kronmem.api import paths, rules
from kronmem.api.replies import StateKeysReply
from kronmem.api.rules import DeferredModel, Validator
from kronmem.core import calls, inputs
from kronmem.core.calls import JSON, acknowledged
from kronmem.core.exchange import Flow, Link, Pause, exchange
from kronmem.core.policy import unheard
from kronmem.core.wire import Call, Repeat, Reply, parse_json
from kronmem.errors import (
    ConfigError,
    ConflictError,
    InvalidInputError,
    KronmemError,
    NotFoundError,
    ReplyError,
    ServerError,
    TransportError,
    UnsupportedError,
)

T = TypeVar("T")


class Missing(Exception):
    """There is nothing under this key."""


class _WireState(DeferredModel):
    """The part of a `StateReply` that is read; a service may leave the times out."""

    value: JsonValue
    updated_at: str | None = None


_VALUE, _KEYS = Validator(_WireState), Validator(StateKeysReply)


def get(agent_id: str, key: str, link: Link, timeout: float) -> Flow[JsonValue]:
    """The value under a key; `Missing` when there is none."""
    ours = _call("GET", agent_id, _path(key), lambda reply: parse_json(_VALUE, reply).value)
    return (yield from _either(ours, partial(botwire_get, agent_id, key, link), link, timeout))


def put(agent_id: str, key: str, value: JsonValue, link: Link, timeout: float) -> Flow[None]:
    """Store a value under a key."""
    checked = inputs.json_value(value, "the value", [rules.MAX_STATE])
    text = to_json(checked).decode()
    ours = _call("PUT", agent_id, _path(key), calls.acknowledged, body=b'{"value":' + text.encode() + b"}")
    return (yield from _either(ours, partial(botwire_put, agent_id, key, text, link), link, timeout))


def update(
    agent_id: str, key: str, function: Callable[[JsonValue], JsonValue], default: JsonValue, link: Link, timeout: float
) -> Flow[JsonValue]:
    """Read, change and write as one step: asked again with the new value when another writer was faster."""
    if not callable(function):
        raise InvalidInputError("state.update takes a function from the value to the new one; state.set takes a value")
    ends = link.now() + timeout
    while True:
        old = yield from _stamped(agent_id, key, link, ends - link.now())
        if old is not None and old.updated_at is None:
            raise ConfigError(_NO_UPDATE)
        new = function(default if old is None else old.value)
        new = inputs.json_value(new, "the value", [rules.MAX_STATE])
        if old is None and new is None:  # there is no value, and there shall be none
            return new
        try:
            yield from _swap(agent_id, key, old, new, link, ends)
            return new
        except ConflictError:
            yield Pause(0.005 * link.random())


def _swap(agent_id: str, key: str, old: _WireState | None, new: JsonValue, link: Link, ends: float) -> Flow[None]:
    """Write in place of the value that was read; `ConflictError` when another writer was faster.

    A write whose reply is lost may have been done: the value there decides whether it was, and never a second write,
    which would be refused because of the first. An equal value that another writer wrote at that moment counts as ours.
    """
    stamp = None if old is None else old.updated_at
    body = to_json({"value": new, "if_updated_at": stamp})
    write = replace(_call("PUT", agent_id, _path(key), calls.acknowledged, body=body), repeat=Repeat.UNLESS_LOST)
    lost: KronmemError | None = None
    for attempt in count(1):
        try:
            return (yield from exchange(write, link, ends - link.now()))
        except ConflictError:
            if lost is None:
                raise
        except (TransportError, ServerError) as error:
            if not unheard(error):
                raise
            lost = error
        try:
            there = yield from _stamped(agent_id, key, link, ends - link.now())
        except KronmemError:
            raise lost from None
        if (there and there.updated_at) != stamp:
            if (there and there.value) == new:
                return None
            raise lost
        if attempt == link.retry.attempts or not link.budget.spend():
            raise lost


def _stamped(agent_id: str, key: str, link: Link, timeout: float) -> Flow[_WireState | None]:
    try:
        return (yield from exchange(_call("GET", agent_id, _path(key), partial(parse_json, _VALUE)), link, timeout))
    except UnsupportedError:
        raise ConfigError(_NO_UPDATE) from None
    except NotFoundError as error:
        if error.message == "State not found":
            return None
        raise


_NO_UPDATE = "state.update needs a kronmem service: this one cannot compare and write in one step"


def delete(agent_id: str, key: str, link: Link, timeout: float) -> Flow[None]:
    """Remove a key; `Missing` when there is none."""
    ours = _call("DELETE", agent_id, _path(key), calls.acknowledged)
    return (yield from _either(ours, partial(botwire_delete, agent_id, key, link), link, timeout))


def keys(agent_id: str, link: Link, timeout: float) -> Flow[list[str]]:
    """All keys, sorted."""
    ours = _call("GET", agent_id, paths.STATE, lambda reply: sorted(parse_json(_KEYS, reply)["keys"]))
    return (yield from _either(ours, partial(botwire_keys, agent_id, link), link, timeout))


def _call(method: str, agent_id: str, path: str, parse: Callable[[Reply], T], body: bytes | None = None) -> Call[T]:
    agent = inputs.identifier(agent_id, "agent_id")
    return Call("state", method, path, parse, agent, (), body, calls.JSON if body else ())


def _either(ours: Call[T], theirs: Callable[[float], Flow[T]], link: Link, timeout: float) -> Flow[T]:
    """Ask in our own way; a service that has no such route is asked in BotWire's from then on."""
    ends = link.now() + timeout
    try:
        return (yield from exchange(ours, link, timeout))
    except NotFoundError as error:
        if error.message == "State not found":
            raise Missing from None
        raise
    except UnsupportedError:
        pass
    try:
        return (yield from theirs(ends - link.now()))
    except NotFoundError as error:
        if error.message.startswith("Key not found"):
            raise Missing from None
        raise ConfigError(
            "this service keeps no state: pass state_url= (a kronmem or BotWire service, or sqlite:///file.db)"
        ) from None


def _path(key: str) -> str:
    return paths.fill(paths.STATE_KEY, key=inputs.segment(key, "key"))


# Key–value state at a BotWire service, where values are strings and names have few letters. Pure.
#
# A long value is stored in parts, and names that BotWire would refuse are stored encoded.

MAX_VALUE = 100_000
"""The service refuses longer values, in characters."""
MAX_KEYS = 1000
"""The service lists at most so many keys of a namespace."""
_MAX_NAME = 100
"""The service takes keys of 128 characters; the rest is for the suffix of a part."""
_PLAIN_KEY = re.compile(rf"[A-Za-z0-9_.-]{{1,{_MAX_NAME}}}")
_PART = re.compile(r".+\.part-[0-9a-f]{8}-\d+")
_SPLIT = re.compile(r"kronmem-parts:([0-9a-f]{8}):(\d+)")


class _BotwireValue(DeferredModel):
    value: str


class _BotwireKey(DeferredModel):
    key: str


class _BotwireKeys(DeferredModel):
    keys: list[_BotwireKey]


_BOTWIRE_VALUE, _BOTWIRE_KEYS = Validator(_BotwireValue), Validator(_BotwireKeys)


def botwire_get(agent_id: str, key: str, link: Link, timeout: float) -> Flow[JsonValue]:
    """The value under a key; `NotFoundError` when there is none."""
    ends = link.now() + timeout
    text = yield from _joined(agent_id, key, link, ends)
    try:
        value: JsonValue = from_json(text)
    except ValueError:
        raise ReplyError("the value under this key was not written by kronmem") from None
    return value


def _joined(agent_id: str, key: str, link: Link, ends: float) -> Flow[str]:
    """The whole text under a key; another value may take its place, and its parts away, while they are read."""
    before = ""
    while True:
        text = yield from exchange(_botwire_call("GET", agent_id, _encode_key(key), _text), link, ends - link.now())
        if (split := _SPLIT.fullmatch(text)) is None:
            return text
        if text == before:
            raise ReplyError("parts of the value under this key are missing")
        try:
            return "".join((yield from _parts(agent_id, key, split[1], int(split[2]), link, ends)))
        except NotFoundError:
            before = text


def botwire_put(agent_id: str, key: str, text: str, link: Link, timeout: float) -> Flow[None]:
    """Store a JSON text. A long one goes in parts first, then the note of where they are: readers see old or new."""
    ends = link.now() + timeout
    old = yield from _find_parts(agent_id, key, link, ends)
    value = text
    if len(text) > MAX_VALUE:
        token = hashlib.sha256(text.encode()).hexdigest()[:8]
        pieces = [text[at : at + MAX_VALUE] for at in range(0, len(text), MAX_VALUE)]
        for number, piece in enumerate(pieces):
            yield from exchange(
                _botwire_call("PUT", agent_id, _part(key, token, number), acknowledged, piece), link, ends - link.now()
            )
        value = f"kronmem-parts:{token}:{len(pieces)}"
    yield from exchange(_botwire_call("PUT", agent_id, _encode_key(key), acknowledged, value), link, ends - link.now())
    if old is not None and old[0] != value:
        yield from _drop_parts(agent_id, key, old[1], old[2], link, ends)


def botwire_delete(agent_id: str, key: str, link: Link, timeout: float) -> Flow[None]:
    """Remove a key and the parts of its value; `NotFoundError` when there is none."""
    ends = link.now() + timeout
    old = yield from _find_parts(agent_id, key, link, ends)
    yield from exchange(_botwire_call("DELETE", agent_id, _encode_key(key), acknowledged), link, ends - link.now())
    if old is not None:
        yield from _drop_parts(agent_id, key, old[1], old[2], link, ends)


def botwire_keys(agent_id: str, link: Link, timeout: float) -> Flow[list[str]]:
    """All keys, sorted; `ReplyError` when the service may have left some out."""

    def parse(reply: Reply) -> list[str]:
        keys = parse_json(_BOTWIRE_KEYS, reply).keys
        if len(keys) >= MAX_KEYS:
            raise ReplyError(f"this service lists {MAX_KEYS} keys at most, and there may be more")
        return sorted(_decode_key(one.key) for one in keys if not _PART.fullmatch(one.key))

    return (yield from exchange(_botwire_call("GET", agent_id, None, parse), link, timeout))


def _botwire_call(
    method: str, agent_id: str, key: str | None, parse: Callable[[Reply], T], value: str | None = None
) -> Call[T]:
    template = paths.BOTWIRE_NAMESPACE if key is None else paths.BOTWIRE_KEY
    path = paths.fill(template, namespace=_namespace(agent_id), key=key or "")
    query = (("limit", str(MAX_KEYS)),) if key is None else ()
    body = None if value is None else to_json({"value": value})
    return Call("botwire", method, path, parse, None, query, body, JSON if body else ())


def _text(reply: Reply) -> str:
    return parse_json(_BOTWIRE_VALUE, reply).value


def _part(key: str, token: str, number: int) -> str:
    return f"{_encode_key(key)}.part-{token}-{number}"


def _parts(agent_id: str, key: str, token: str, count: int, link: Link, ends: float) -> Flow[list[str]]:
    parts: list[str] = []
    for number in range(count):
        parts.append(
            (
                yield from exchange(
                    _botwire_call("GET", agent_id, _part(key, token, number), _text), link, ends - link.now()
                )
            )
        )
    return parts


def _find_parts(agent_id: str, key: str, link: Link, ends: float) -> Flow[tuple[str, str, int] | None]:
    """Where the parts of the present value are, if it has any."""
    try:
        text = yield from exchange(_botwire_call("GET", agent_id, _encode_key(key), _text), link, ends - link.now())
    except NotFoundError as error:
        if error.message.startswith("Key not found"):
            return None
        raise
    split = _SPLIT.fullmatch(text)
    return (text, split[1], int(split[2])) if split else None


def _drop_parts(agent_id: str, key: str, token: str, count: int, link: Link, ends: float) -> Flow[None]:
    for number in range(count):
        gone = _botwire_call("DELETE", agent_id, _part(key, token, number), acknowledged)
        try:
            yield from exchange(gone, link, ends - link.now())
        except NotFoundError:
            continue


def _namespace(agent_id: str) -> str:
    if re.fullmatch(r"(?!h-)[A-Za-z0-9_-]{1,64}", agent_id):
        return agent_id
    return "h-" + hashlib.sha256(agent_id.encode()).hexdigest()[:40]


def _encode_key(key: str) -> str:
    if _PLAIN_KEY.fullmatch(key) and not key.startswith("k64-") and not _PART.fullmatch(key):
        return key
    packed = "k64-" + base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")
    if len(packed) > _MAX_NAME:
        raise InvalidInputError("the key is too long for a BotWire service")
    return packed


def _decode_key(key: str) -> str:
    if not key.startswith("k64-"):
        return key
    try:
        return base64.urlsafe_b64decode(key[4:] + "=" * (-len(key) % 4)).decode()
    except ValueError:  # another program's
        return key
