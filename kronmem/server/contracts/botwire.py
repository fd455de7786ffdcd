"""BotWire's contract over the state of an agent: a namespace is an agent_id, a value that is no string is its JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, NoReturn
from urllib.parse import quote, unquote

from pydantic import BaseModel, Field, JsonValue, StrictStr, TypeAdapter, ValidationError

from kronmem.core.wire import Reply, Request
from kronmem.engine.service import Service
from kronmem.errors import StatusError, status_class
from kronmem.server import keys
from kronmem.server.contracts.contract import Contract, Entry, problems, said

MAX_VALUE = 100_000

_NAMESPACE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class Put(BaseModel):
    """A value to keep."""

    value: StrictStr


class Listing(BaseModel):
    """How many keys to list, the newest first."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class Nothing(BaseModel):
    """A request whose path says it all."""


class _Kept(BaseModel):
    value: JsonValue
    created_at: datetime
    updated_at: datetime

    def text(self) -> str:
        return self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False)


class _Names(BaseModel):
    keys: list[str]


_KEPT, _NAMES = TypeAdapter(_Kept), TypeAdapter(_Names)


def answer(service: Service, request: Request, owner: str) -> Reply:
    """Answer one request as BotWire would."""
    try:
        return said(200, _answer(_State(service, owner, request), request))
    except ValidationError as error:
        return said(422, {"detail": problems(error, "query" if request.method == "GET" else "body")})
    except StatusError as error:
        return said(error.status, {"detail": error.message})


def _answer(state: _State, request: Request) -> JsonValue:
    if state.key is None:
        return state.list(Listing.model_validate(dict(request.query)).limit)
    if request.method == "PUT":
        return state.put(Put.model_validate_json(request.body or b"null").value)
    return state.delete() if request.method == "DELETE" else state.get()


class _State:
    """One namespace, and one key of it, as the service keeps them."""

    def __init__(self, service: Service, owner: str, request: Request) -> None:
        self._service, self._owner, self._timeout = service, owner, request.timeout
        self.namespace, self.key = _names(request.path)

    def put(self, value: str) -> JsonValue:
        if len(value) > MAX_VALUE:
            raise StatusError("Value too large. Max 100KB.", status=400)
        self._ask("PUT", self.key, json.dumps({"value": value}).encode())
        return {"namespace": self.namespace, "key": self.key, "stored": True, "bytes": len(value)}

    def get(self) -> JsonValue:
        kept = _KEPT.validate_json(self._ask("GET", self.key).body)
        times: dict[str, JsonValue] = {
            "created_at": kept.created_at.timestamp(),
            "updated_at": kept.updated_at.timestamp(),
        }
        return {"namespace": self.namespace, "key": self.key, "value": kept.text(), **times}

    def delete(self) -> JsonValue:
        self._ask("DELETE", self.key)
        return {"deleted": True, "namespace": self.namespace, "key": self.key}

    def list(self, limit: int) -> JsonValue:
        found = sorted(self._entries(), key=lambda entry: entry[0], reverse=True)[:limit]
        rows: list[JsonValue] = [{"key": key, "bytes": size, "updated_at": at} for at, key, size in found]
        return {"namespace": self.namespace, "count": len(rows), "keys": rows}

    def _entries(self) -> Iterator[tuple[float, str, int]]:
        """When each key was last written, the key and its size; what BotWire could not name is left out."""
        for key in _NAMES.validate_json(self._ask("GET", None).body).keys:
            if not _KEY.fullmatch(key):
                continue
            try:
                kept = _KEPT.validate_json(self._ask("GET", key).body)
            except StatusError:  # deleted since
                continue
            yield kept.updated_at.timestamp(), key, len(kept.text())

    def _ask(self, method: str, key: str | None, body: bytes | None = None) -> Reply:
        path = f"/api/v1/agents/{quote(self.namespace, safe='')}/state" + (f"/{quote(key, safe='')}" if key else "")
        reply = self._service.handle(Request(method, path, (), body, (), self._timeout), self._owner)
        if reply.status >= 400:
            self._refuse(reply, key)
        return reply

    def _refuse(self, reply: Reply, key: str | None) -> NoReturn:
        if reply.status == 404:
            raise StatusError(f"Key not found: {self.namespace}/{key}", status=404)
        if reply.status == 422:
            raise StatusError("Invalid key or value.", status=400)
        raise status_class(reply.status)("The memory service failed", status=reply.status)


def _names(path: str) -> tuple[str, str | None]:
    try:
        _, _, namespace, *rest = [unquote(part, errors="strict") for part in path.split("/")]
    except UnicodeDecodeError:
        raise StatusError("Not Found", status=404) from None
    if not _NAMESPACE.fullmatch(namespace):
        raise StatusError("Invalid namespace. Use 1-64 alphanumeric/underscore/dash chars.", status=400)
    if rest and (not _KEY.fullmatch(rest[0]) or rest[0] in (".", "..")):
        raise StatusError("Invalid key. Use 1-128 alphanumeric/underscore/dash/dot chars.", status=400)
    return namespace, rest[0] if rest else None


_ROWS = (
    Entry("GET", "/memory/{namespace}", Listing),
    Entry("GET", "/memory/{namespace}/{key}", Nothing),
    Entry("PUT", "/memory/{namespace}/{key}", Put),
    Entry("DELETE", "/memory/{namespace}/{key}", Nothing),
)
BOTWIRE = Contract("BotWire", _ROWS, answer, keys.basic, lambda _status, words: {"detail": words})
