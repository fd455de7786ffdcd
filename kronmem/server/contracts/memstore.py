"""Memstore's contract over the memories of the agent `memstore`; its `tags` and `limit` are honoured here."""

from __future__ import annotations

import json
from typing import Annotated, NoReturn
from urllib.parse import unquote

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from kronmem.core.wire import Reply, Request
from kronmem.engine.service import Service
from kronmem.errors import StatusError
from kronmem.server import keys
from kronmem.server.contracts.contract import Contract, Entry, said

AGENT = "/api/v1/agents/memstore"
MAX_CONTENT = 10_000


def _split(value: object) -> object:
    """Tags in a query come repeated or with commas."""
    parts = [value] if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        return value
    words = [word for part in parts for word in str(part).split(",")]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] -- as it came from the web
    return tuple(word.strip() for word in words if word.strip())


def _some(value: object) -> object:
    """Memstore took 0 and nothing for the same."""
    return value or None


class _Read(BaseModel):
    # Its old server took a number for a session.
    model_config = ConfigDict(coerce_numbers_to_str=True, extra="ignore")


Tags = Annotated[tuple[str, ...], BeforeValidator(_split)]
Tag = Annotated[str, Field(min_length=1, max_length=255)]
Session = Annotated[str, Field(min_length=1, max_length=255)]


class Remember(_Read):
    """A memory to store; `ttl` in seconds."""

    content: Annotated[str, Field(min_length=1, strict=True)]
    session: Session | None = None
    metadata: dict[str, JsonValue] | None = None
    ttl: Annotated[Annotated[int, Field(ge=60, le=315_360_000)] | None, BeforeValidator(_some)] = None
    tags: Annotated[list[Tag], Field(max_length=100)] | None = None


class Recall(_Read):
    """A question, in the query string."""

    q: Annotated[str, Field(min_length=1)]
    limit: Annotated[int, Field(ge=1, le=100)] | None = None
    top_k: Annotated[int, Field(ge=1, le=100)] | None = None
    session: Session | None = None
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    tags: Tags = ()


class Listing(_Read):
    """Which part of the list, in the query string."""

    session: Session | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 50
    offset: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0


class Nothing(_Read):
    """A request whose path says it all."""


class _Memory(BaseModel):
    id: str
    content: str
    session_id: str | None
    metadata: dict[str, JsonValue]
    tags: list[str]
    created_at: str
    expires_at: str | None
    score: float | None = None

    def said(self, **more: JsonValue) -> dict[str, JsonValue]:
        tags = list[JsonValue](self.tags)
        own: dict[str, JsonValue] = {"session": self.session_id, "metadata": self.metadata, "tags": tags}
        return {"id": self.id, "content": self.content, **own, **more, "created_at": self.created_at}


class _Memories(BaseModel):
    memories: list[_Memory]
    total: int = 0


_ONE, _MANY = TypeAdapter(_Memory), TypeAdapter(_Memories)
_MISSING = {
    "content": ("invalid_content", "content is required and must be a string."),
    "q": ("missing_query", "q (query) parameter is required."),
}


def answer(service: Service, request: Request, owner: str) -> Reply:
    """Answer one request as Memstore would."""
    desk = _Desk(service, request, owner)
    try:
        return said(201 if request.path.endswith("/remember") else 200, desk.answer())
    except ValidationError as error:
        return said(400, _unfit(error))
    except StatusError as error:
        return said(error.status, refusal(error.status, error.message))


def refusal(status: int, words: str) -> JsonValue:
    """How Memstore says no: a code for programs and a sentence for people."""
    codes = {400: "invalid_request", 401: "invalid_api_key", 404: "not_found", 413: "too_large", 422: "invalid_request"}
    if status == 401 and words.startswith("Missing"):
        return {"error": "missing_api_key", "message": "Authorization header required: Bearer <api_key>"}
    return {"error": codes.get(status, "server_error" if status >= 500 else "refused"), "message": words}


def _unfit(error: ValidationError) -> JsonValue:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field = str(first["loc"][0]) if first["loc"] else "content"
    code, words = _MISSING.get(field, (f"invalid_{field}", f"{field}: {first['msg']}"))
    return {"error": code, "message": words}


class _Desk:
    """One request, translated."""

    def __init__(self, service: Service, request: Request, owner: str) -> None:
        self._service, self._request, self._owner = service, request, owner

    def answer(self) -> JsonValue:
        """What the last word of the path asks for."""
        words = self._request.path.split("/")
        if words[3] == "remember":
            return self._remember(Remember.model_validate_json(self._request.body or b"null"))
        if words[3] == "recall":
            return self._recall(Recall.model_validate(self._query()))
        if words[3] == "list":
            return self._list(Listing.model_validate(self._query()))
        return self._forget(words[4])

    def _query(self) -> dict[str, JsonValue]:
        tags: list[JsonValue] = [value for name, value in self._request.query if name == "tags"]
        return {**dict(self._request.query), "tags": tags}

    def _remember(self, asked: Remember) -> JsonValue:
        if len(asked.content) > MAX_CONTENT:
            words = "content must be under 10,000 characters. Split larger content into multiple memories."
            raise StatusError(words, status=400)
        fields = {"content": asked.content, "session_id": asked.session, "ttl_seconds": asked.ttl}
        body = {**fields, "metadata": asked.metadata, "tags": asked.tags}
        kept = _ONE.validate_json(self._ask("POST", "/remember", body).body)
        return kept.said()

    def _recall(self, asked: Recall) -> JsonValue:
        body: dict[str, JsonValue] = {"query": asked.q, "session_id": asked.session, "tags": list(asked.tags)}
        body |= {"limit": asked.limit or asked.top_k, "threshold": asked.threshold}
        found = _MANY.validate_json(self._ask("POST", "/recall", body).body).memories
        memories: list[JsonValue] = [memory.said(score=memory.score) for memory in found]
        return {"memories": memories, "count": len(memories), "query": asked.q}

    def _list(self, asked: Listing) -> JsonValue:
        query = [("limit", str(asked.limit)), ("offset", str(asked.offset))]
        query += [("session_id", asked.session)] if asked.session else []
        found = _MANY.validate_json(self._ask("GET", "/memories", query=tuple(query)).body)
        return {"memories": [memory.said(ttl=memory.expires_at) for memory in found.memories], "total": found.total}

    def _forget(self, memory_id: str) -> JsonValue:
        try:
            self._ask("DELETE", f"/memories/{memory_id}")
        except StatusError as error:
            if error.status != 404:  # forgetting twice is no error there
                raise
        return {"deleted": True, "id": unquote(memory_id)}

    def _ask(self, method: str, path: str, body: object = None, query: tuple[tuple[str, str], ...] = ()) -> Reply:
        packed = None if body is None else json.dumps(body).encode()
        request = Request(method, AGENT + path, query, packed, (), self._request.timeout)
        reply = self._service.handle(request, self._owner)
        if reply.status >= 400:
            _refuse(reply)
        return reply


def _refuse(reply: Reply) -> NoReturn:
    detail: JsonValue = json.loads(reply.body)["detail"]
    first = detail[0] if isinstance(detail, list) and detail else detail
    words = str(first.get("msg")) if isinstance(first, dict) else str(first)
    raise StatusError(words, status=400 if reply.status == 422 else reply.status)


_ROWS = (
    Entry("POST", "/v1/memory/remember", Remember, 201),
    Entry("GET", "/v1/memory/recall", Recall),
    Entry("GET", "/v1/memory/list", Listing),
    Entry("DELETE", "/v1/memory/forget/{memory}", Nothing),
)
MEMSTORE = Contract("Memstore", _ROWS, answer, keys.bearer, refusal)
