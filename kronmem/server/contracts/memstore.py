"""Memstore's contract over the memories of the agent `memstore`; its `tags` and `limit` are honoured here."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated
from urllib.parse import unquote

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError
from typing_extensions import TypedDict

from kronmem.api import routes, rules
from kronmem.api.replies import MemoryReply, Timestamp
from kronmem.api.requests import EmptyRequest, at_most
from kronmem.api.routes import Match, Route
from kronmem.core.wire import Reply, Request
from kronmem.engine.service import Service
from kronmem.errors import NotFoundError, StatusError
from kronmem.server import api_keys as keys
from kronmem.server.contracts.contract import Contract, Own, json_reply

AGENT = "memstore"
MAX_CONTENT = 10_000
"""The vendor's bound, in characters."""
MAX_BODY = 2 * 1024 * 1024
"""In bytes: the longest content, escaped, and the largest metadata that the service takes."""


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


class _MemstoreRequest(BaseModel):
    # Its old server took a number for a session.
    model_config = ConfigDict(coerce_numbers_to_str=True, extra="ignore")


Tags = Annotated[tuple[str, ...], BeforeValidator(_split)]
Tag = Annotated[str, Field(min_length=1, max_length=255)]
SessionId = Annotated[str, Field(min_length=1, max_length=255)]


class MemstoreRemember(_MemstoreRequest):
    """A memory to store; `ttl` in seconds."""

    content: Annotated[str, Field(min_length=1, strict=True)]
    session: SessionId | None = None
    metadata: dict[str, JsonValue] | None = None
    ttl: Annotated[Annotated[int, Field(ge=60, le=315_360_000)] | None, BeforeValidator(_some)] = None
    tags: Annotated[list[Tag], Field(max_length=rules.MAX_TAGS), at_most(rules.MAX_TAGS)] | None = None


class MemstoreRecall(_MemstoreRequest):
    """A question, in the query string."""

    q: Annotated[str, Field(min_length=1)]
    limit: Annotated[int, Field(ge=1, le=100)] | None = None
    top_k: Annotated[int, Field(ge=1, le=100)] | None = None
    session: SessionId | None = None
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    tags: Tags = ()


class MemstoreList(_MemstoreRequest):
    """Which part of the list, in the query string."""

    session: SessionId | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 50
    offset: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0


class MemstoreMemoryReply(TypedDict):
    """A memory in Memstore's JSON."""

    id: str
    content: str
    session: str | None
    metadata: dict[str, JsonValue]
    tags: list[str]
    created_at: Timestamp


class MemstoreHitReply(MemstoreMemoryReply):
    """A memory and how similar it is to the question, from 0 to 1."""

    score: float


class MemstoreListedReply(MemstoreMemoryReply):
    """A memory and when it expires."""

    ttl: Timestamp | None


class MemstoreRecallReply(TypedDict):
    """The memories that answer a question."""

    memories: list[MemstoreHitReply]
    count: int
    query: str


class MemstoreListReply(TypedDict):
    """A part of the list, and how many there are."""

    memories: list[MemstoreListedReply]
    total: int


class MemstoreForgetReply(TypedDict):
    """That a memory is gone."""

    deleted: bool
    id: str


REMEMBER = Route("POST", "/v1/memory/remember", MemstoreRemember, MemstoreMemoryReply, 201)
RECALL = Route("GET", "/v1/memory/recall", MemstoreRecall, MemstoreRecallReply)
LIST = Route("GET", "/v1/memory/list", MemstoreList, MemstoreListReply)
FORGET = Route("DELETE", "/v1/memory/forget/{memory}", EmptyRequest, MemstoreForgetReply)

_MISSING = {
    "content": ("invalid_content", "content is required and must be a string."),
    "q": ("missing_query", "q (query) parameter is required."),
}


def answer(service: Service, match: Match, request: Request, owner: str) -> Reply:
    """Answer one request as Memstore would."""
    try:
        return json_reply(match.route.status, _answer(Own(service, owner, request.timeout), match, request))
    except ValidationError as error:
        return json_reply(400, _invalid(error))
    except StatusError as error:
        status = 400 if error.status == 422 else error.status
        return json_reply(status, refusal(status, error.message))


def refusal(status: int, message: str) -> JsonValue:
    """A refusal as Memstore writes it: a code for programs and a sentence for people."""
    codes = {400: "invalid_request", 401: "invalid_api_key", 404: "not_found", 413: "too_large", 422: "invalid_request"}
    if status == 401 and message.startswith("Missing"):
        return {"error": "missing_api_key", "message": "Authorization header required: Bearer <api_key>"}
    return {"error": codes.get(status, "server_error" if status >= 500 else "refused"), "message": message}


def _invalid(error: ValidationError) -> JsonValue:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field = str(first["loc"][0]) if first["loc"] else "content"
    code, message = _MISSING.get(field, (f"invalid_{field}", f"{field}: {first['msg']}"))
    return {"error": code, "message": message}


def _answer(own: Own, match: Match, request: Request) -> object:
    if match.route is REMEMBER:
        return _remember(own, MemstoreRemember.model_validate_json(request.body or b"null"))
    if match.route is RECALL:
        return _recall(own, MemstoreRecall.model_validate(_query(request)))
    if match.route is LIST:
        return _list(own, MemstoreList.model_validate(_query(request)))
    return _forget(own, match.segments["memory"])


def _query(request: Request) -> dict[str, JsonValue]:
    tags: list[JsonValue] = [value for name, value in request.query if name == "tags"]
    return {**dict(request.query), "tags": tags}


def _remember(own: Own, asked: MemstoreRemember) -> MemstoreMemoryReply:
    if len(asked.content) > MAX_CONTENT:
        message = "content must be under 10,000 characters. Split larger content into multiple memories."
        raise StatusError(message, status=400)
    fields: dict[str, JsonValue] = {"content": asked.content, "session_id": asked.session, "ttl_seconds": asked.ttl}
    tags: JsonValue = None if asked.tags is None else list[JsonValue](asked.tags)
    return _memory(own.call(routes.REMEMBER, {**fields, "metadata": asked.metadata, "tags": tags}, agent=AGENT))


def _recall(own: Own, asked: MemstoreRecall) -> MemstoreRecallReply:
    body: dict[str, JsonValue] = {"query": asked.q, "session_id": asked.session, "tags": list(asked.tags)}
    body |= {"limit": asked.limit or asked.top_k, "threshold": asked.threshold}
    hits = own.call(routes.RECALL, body, agent=AGENT)["results"]
    memories: list[MemstoreHitReply] = [{**_memory(hit["memory"]), "score": hit["score"]} for hit in hits]
    return {"memories": memories, "count": len(memories), "query": asked.q}


def _list(own: Own, asked: MemstoreList) -> MemstoreListReply:
    body: dict[str, JsonValue] = {"limit": asked.limit, "offset": asked.offset}
    body |= {"session_id": asked.session} if asked.session else {}
    page = own.call(routes.LIST_MEMORIES, body, agent=AGENT)
    memories: list[MemstoreListedReply] = [{**_memory(one), "ttl": one["expires_at"]} for one in page["memories"]]
    return {"memories": memories, "total": page["total"]}


def _forget(own: Own, memory: str) -> MemstoreForgetReply:
    with suppress(NotFoundError):  # forgetting twice is no error there
        own.call(routes.FORGET, {}, agent=AGENT, memory=memory)
    return {"deleted": True, "id": unquote(memory)}


def _memory(one: MemoryReply) -> MemstoreMemoryReply:
    return {
        "id": one["id"],
        "content": one["content"],
        "session": one["session_id"],
        "metadata": one["metadata"],
        "tags": one["tags"],
        "created_at": one["created_at"],
    }


MEMSTORE = Contract(
    "Memstore",
    (REMEMBER, RECALL, LIST, FORGET),
    answer,
    keys.bearer,
    refusal,
    MAX_BODY,
    stands_for={REMEMBER: routes.REMEMBER, RECALL: routes.RECALL, LIST: routes.LIST_MEMORIES, FORGET: routes.FORGET},
)
