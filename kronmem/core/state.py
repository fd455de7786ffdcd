"""Key–value state of an agent: our own routes for it, or BotWire's where that is the service. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TypeVar

from pydantic import JsonValue
from pydantic_core import to_json

from kronmem.api import limits, paths
from kronmem.api.replies import StateKeysReply
from kronmem.api.validators import DeferredModel, Validator
from kronmem.core import botwire, calls, inputs
from kronmem.core.exchange import Flow, Link, Pause, exchange
from kronmem.core.retries import unheard
from kronmem.core.wire import Call, Repeat, Reply, parse_json
from kronmem.errors import (
    ConfigError,
    ConflictError,
    InvalidInputError,
    KronmemError,
    NotFoundError,
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
    return (yield from _either(ours, partial(botwire.get, agent_id, key, link), link, timeout))


def put(agent_id: str, key: str, value: JsonValue, link: Link, timeout: float) -> Flow[None]:
    """Store a value under a key."""
    checked = inputs.json_value(value, "the value", [limits.MAX_STATE])
    text = to_json(checked).decode()
    ours = _call("PUT", agent_id, _path(key), calls.acknowledged, body=b'{"value":' + text.encode() + b"}")
    return (yield from _either(ours, partial(botwire.put, agent_id, key, text, link), link, timeout))


def update(
    agent_id: str, key: str, function: Callable[[JsonValue], JsonValue], default: JsonValue, link: Link, timeout: float
) -> Flow[JsonValue]:
    """Read, change and write as one step: asked again with the new value when somebody else was faster."""
    if not callable(function):
        raise InvalidInputError("state.update takes a function from the value to the new one; state.set takes a value")
    ends = link.now() + timeout
    while True:
        old = yield from _stamped(agent_id, key, link, ends - link.now())
        if old is not None and old.updated_at is None:
            raise ConfigError(_NO_UPDATE)
        new = function(default if old is None else old.value)
        new = inputs.json_value(new, "the value", [limits.MAX_STATE])
        if old is None and new is None:  # there is no value, and there shall be none
            return new
        try:
            yield from _swap(agent_id, key, old, new, link, ends)
            return new
        except ConflictError:
            yield Pause(0.005 * link.random())


def _swap(agent_id: str, key: str, old: _WireState | None, new: JsonValue, link: Link, ends: float) -> Flow[None]:
    """Write in place of the value that was read; `ConflictError` when somebody else was faster.

    A write whose reply is lost may have been done: whether it was, the value there tells, and never a second write,
    which would be refused because of the first. An equal value that somebody else wrote at that moment counts as ours.
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
    return (yield from _either(ours, partial(botwire.delete, agent_id, key, link), link, timeout))


def keys(agent_id: str, link: Link, timeout: float) -> Flow[list[str]]:
    """All keys, sorted."""
    ours = _call("GET", agent_id, paths.STATE, lambda reply: sorted(parse_json(_KEYS, reply)["keys"]))
    return (yield from _either(ours, partial(botwire.keys, agent_id, link), link, timeout))


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
