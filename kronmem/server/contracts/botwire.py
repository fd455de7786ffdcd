"""BotWire's contract over the state of an agent: a namespace is an agent_id, a value that is no string is its JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import Annotated
from urllib.parse import unquote

from pydantic import BaseModel, Field, StrictStr, ValidationError
from typing_extensions import TypedDict

from kronmem.api import paths, routes
from kronmem.api.replies import StateReply
from kronmem.api.requests import EmptyRequest
from kronmem.api.routes import Match, Route
from kronmem.core.wire import Reply, Request
from kronmem.engine.service import Service, validation_problems
from kronmem.errors import InvalidRequestError, NotFoundError, StatusError
from kronmem.server import api_keys as keys
from kronmem.server.contracts.contract import Contract, Own, detail, json_reply

MAX_VALUE = 100_000
"""The vendor's bound, in characters."""
MAX_BODY = 2 * 1024 * 1024
"""In bytes: the largest value, each of its characters escaped in twelve."""

_PATTERNS = {"namespace": "^[A-Za-z0-9_-]{1,64}$", "key": r"^(?!\.{1,2}$)[A-Za-z0-9_.-]{1,128}$"}
_NAMESPACE, _KEY = re.compile(_PATTERNS["namespace"]), re.compile(_PATTERNS["key"])


class BotwirePut(BaseModel):
    """A value to keep."""

    value: StrictStr


class BotwireList(BaseModel):
    """How many keys to list, the newest first."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class BotwireValueReply(TypedDict):
    """A value; times in seconds since 1970."""

    namespace: str
    key: str
    value: str
    created_at: float
    updated_at: float


class BotwireStoredReply(TypedDict):
    """That a value is kept, and how many characters it has."""

    namespace: str
    key: str
    stored: bool
    bytes: int


class BotwireDeletedReply(TypedDict):
    """That a value is gone."""

    deleted: bool
    namespace: str
    key: str


class BotwireKeyReply(TypedDict):
    """A key, the size of its value, and when it was written."""

    key: str
    bytes: int
    updated_at: float


class BotwireKeysReply(TypedDict):
    """The keys of a namespace, the newest first."""

    namespace: str
    count: int
    keys: list[BotwireKeyReply]


_LIST = Route("GET", paths.BOTWIRE_NAMESPACE, BotwireList, BotwireKeysReply)
_GET = Route("GET", paths.BOTWIRE_KEY, EmptyRequest, BotwireValueReply)
_PUT = Route("PUT", paths.BOTWIRE_KEY, BotwirePut, BotwireStoredReply)
_DELETE = Route("DELETE", paths.BOTWIRE_KEY, EmptyRequest, BotwireDeletedReply)


def answer(service: Service, match: Match, request: Request, owner: str) -> Reply:
    """Answer one request as BotWire would."""
    try:
        return json_reply(200, _answer(Own(service, owner, request.timeout), match, request))
    except ValidationError as error:
        place = "query" if match.route.method == "GET" else "body"
        return json_reply(422, {"detail": validation_problems(error, place)})
    except StatusError as error:
        message = "The memory service failed" if error.status >= 500 else error.message
        return json_reply(error.status, {"detail": message})


def _answer(own: Own, match: Match, request: Request) -> object:
    names = _names(match)
    state = _Namespace(own, names["namespace"])
    try:
        if match.route is _LIST:
            return state.list(BotwireList.model_validate(dict(request.query)).limit)
        if match.route is _PUT:
            return state.put(names["key"], BotwirePut.model_validate_json(request.body or b"null").value)
        return state.delete(names["key"]) if match.route is _DELETE else state.get(names["key"])
    except NotFoundError:
        raise StatusError(f"Key not found: {names['namespace']}/{names.get('key')}", status=404) from None
    except InvalidRequestError:
        raise StatusError("Invalid key or value.", status=400) from None


def _names(match: Match) -> dict[str, str]:
    try:
        names = {name: unquote(segment, errors="strict") for name, segment in match.segments.items()}
    except UnicodeDecodeError:
        raise StatusError("Not Found", status=404) from None
    if not _NAMESPACE.fullmatch(names["namespace"]):
        raise StatusError("Invalid namespace. Use 1-64 alphanumeric/underscore/dash chars.", status=400)
    if not _KEY.fullmatch(names.get("key", "-")):
        raise StatusError("Invalid key. Use 1-128 alphanumeric/underscore/dash/dot chars.", status=400)
    return names


class _Namespace:
    """The state of one agent. Its names need no quoting: they passed the patterns above."""

    def __init__(self, own: Own, name: str) -> None:
        self._own, self._name = own, name

    def put(self, key: str, value: str) -> BotwireStoredReply:
        if len(value) > MAX_VALUE:
            raise StatusError("Value too large. Max 100KB.", status=400)
        self._own.call(routes.SET_STATE, {"value": value}, agent=self._name, key=key)
        return {"namespace": self._name, "key": key, "stored": True, "bytes": len(value)}

    def get(self, key: str) -> BotwireValueReply:
        stored = self._stored(key)
        times = _seconds(stored["created_at"]), _seconds(stored["updated_at"])
        return {
            "namespace": self._name,
            "key": key,
            "value": _text(stored),
            "created_at": times[0],
            "updated_at": times[1],
        }

    def delete(self, key: str) -> BotwireDeletedReply:
        self._own.call(routes.DELETE_STATE, {}, agent=self._name, key=key)
        return {"deleted": True, "namespace": self._name, "key": key}

    def list(self, limit: int) -> BotwireKeysReply:
        entries = list(islice(self._entries(), limit))
        return {"namespace": self._name, "count": len(entries), "keys": entries}

    def _entries(self) -> Iterator[BotwireKeyReply]:
        """Every key that BotWire can name, the newest first. A value is read when its key is asked for."""
        listed = self._own.call(routes.LIST_STATE_KEYS, {"sort": "recent"}, agent=self._name)
        for key in filter(_KEY.fullmatch, listed["keys"]):
            with suppress(NotFoundError):  # deleted since
                stored = self._stored(key)
                yield {"key": key, "bytes": len(_text(stored)), "updated_at": _seconds(stored["updated_at"])}

    def _stored(self, key: str) -> StateReply:
        return self._own.call(routes.GET_STATE, {}, agent=self._name, key=key)


def _text(stored: StateReply) -> str:
    value = stored["value"]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()


BOTWIRE = Contract("BotWire", (_LIST, _GET, _PUT, _DELETE), answer, keys.basic, detail, MAX_BODY, _PATTERNS)
