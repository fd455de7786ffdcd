"""Key–value state at a BotWire service, where values are strings and names have few letters. Pure.

A long value is stored in parts, and names that BotWire would refuse are stored encoded.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from typing import TypeVar

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from kronmem.api import paths
from kronmem.api.validators import DeferredModel, Validator
from kronmem.core.calls import JSON, acknowledged
from kronmem.core.exchange import Flow, Link, exchange
from kronmem.core.wire import Call, Reply, parse_json
from kronmem.errors import InvalidInputError, NotFoundError, ReplyError

T = TypeVar("T")

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


_VALUE, _KEYS = Validator(_BotwireValue), Validator(_BotwireKeys)


def get(agent_id: str, key: str, link: Link, timeout: float) -> Flow[JsonValue]:
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
        text = yield from exchange(_call("GET", agent_id, _encode_key(key), _text), link, ends - link.now())
        if (split := _SPLIT.fullmatch(text)) is None:
            return text
        if text == before:
            raise ReplyError("parts of the value under this key are missing")
        try:
            return "".join((yield from _parts(agent_id, key, split[1], int(split[2]), link, ends)))
        except NotFoundError:
            before = text


def put(agent_id: str, key: str, text: str, link: Link, timeout: float) -> Flow[None]:
    """Store a JSON text. A long one goes in parts first, then the note of where they are: readers see old or new."""
    ends = link.now() + timeout
    old = yield from _find_parts(agent_id, key, link, ends)
    value = text
    if len(text) > MAX_VALUE:
        token = hashlib.sha256(text.encode()).hexdigest()[:8]
        pieces = [text[at : at + MAX_VALUE] for at in range(0, len(text), MAX_VALUE)]
        for number, piece in enumerate(pieces):
            yield from exchange(
                _call("PUT", agent_id, _part(key, token, number), acknowledged, piece), link, ends - link.now()
            )
        value = f"kronmem-parts:{token}:{len(pieces)}"
    yield from exchange(_call("PUT", agent_id, _encode_key(key), acknowledged, value), link, ends - link.now())
    if old is not None and old[0] != value:
        yield from _drop_parts(agent_id, key, old[1], old[2], link, ends)


def delete(agent_id: str, key: str, link: Link, timeout: float) -> Flow[None]:
    """Remove a key and the parts of its value; `NotFoundError` when there is none."""
    ends = link.now() + timeout
    old = yield from _find_parts(agent_id, key, link, ends)
    yield from exchange(_call("DELETE", agent_id, _encode_key(key), acknowledged), link, ends - link.now())
    if old is not None:
        yield from _drop_parts(agent_id, key, old[1], old[2], link, ends)


def keys(agent_id: str, link: Link, timeout: float) -> Flow[list[str]]:
    """All keys, sorted; `ReplyError` when the service may have left some out."""

    def parse(reply: Reply) -> list[str]:
        found = parse_json(_KEYS, reply).keys
        if len(found) >= MAX_KEYS:
            raise ReplyError(f"this service lists {MAX_KEYS} keys at most, and there may be more")
        return sorted(_decode_key(one.key) for one in found if not _PART.fullmatch(one.key))

    return (yield from exchange(_call("GET", agent_id, None, parse), link, timeout))


def _call(
    method: str, agent_id: str, key: str | None, parse: Callable[[Reply], T], value: str | None = None
) -> Call[T]:
    template = paths.BOTWIRE_NAMESPACE if key is None else paths.BOTWIRE_KEY
    path = paths.fill(template, namespace=_namespace(agent_id), key=key or "")
    query = (("limit", str(MAX_KEYS)),) if key is None else ()
    body = None if value is None else to_json({"value": value})
    return Call("botwire", method, path, parse, None, query, body, JSON if body else ())


def _text(reply: Reply) -> str:
    return parse_json(_VALUE, reply).value


def _part(key: str, token: str, number: int) -> str:
    return f"{_encode_key(key)}.part-{token}-{number}"


def _parts(agent_id: str, key: str, token: str, count: int, link: Link, ends: float) -> Flow[list[str]]:
    found: list[str] = []
    for number in range(count):
        found.append(
            (yield from exchange(_call("GET", agent_id, _part(key, token, number), _text), link, ends - link.now()))
        )
    return found


def _find_parts(agent_id: str, key: str, link: Link, ends: float) -> Flow[tuple[str, str, int] | None]:
    """Where the parts of the present value are, if it has any."""
    try:
        text = yield from exchange(_call("GET", agent_id, _encode_key(key), _text), link, ends - link.now())
    except NotFoundError as error:
        if error.message.startswith("Key not found"):
            return None
        raise
    split = _SPLIT.fullmatch(text)
    return (text, split[1], int(split[2])) if split else None


def _drop_parts(agent_id: str, key: str, token: str, count: int, link: Link, ends: float) -> Flow[None]:
    for number in range(count):
        gone = _call("DELETE", agent_id, _part(key, token, number), acknowledged)
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
    except ValueError:  # somebody else's
        return key
