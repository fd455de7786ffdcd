"""Spans of the server: one SERVER span a request, named by its route, and the engine's own inside it."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from urllib.parse import unquote

from kronmem import tracing
from kronmem.api import routes
from kronmem.api.routes import AnyRoute, Match
from kronmem.core.wire import Reply, Request
from kronmem.engine.service import Service
from kronmem.errors import status_class
from kronmem.server.contracts import memstore
from kronmem.server.contracts.contract import Contract
from kronmem.tracing import Span, Value

_BY_OPERATION: Mapping[str, tuple[AnyRoute, ...]] = {
    "create_memory": (routes.REMEMBER, routes.BATCH, routes.BULK_IMPORT, routes.RESTORE, memstore.REMEMBER),
    "upsert_memory": (routes.UPSERT,),
    "search_memory": (
        *(routes.RECALL, routes.INJECT_CONTEXT, routes.LIST_MEMORIES, routes.GET_MEMORY),
        *(routes.HISTORY, routes.EXPORT, memstore.RECALL, memstore.LIST),
    ),
    "update_memory": (routes.UPDATE, routes.UPDATE_MEMORY),
    "delete_memory": (routes.FORGET, routes.CLEAR, routes.CLEAR_SOME, routes.CLEAR_SESSION, memstore.FORGET),
    "delete_memory_store": (routes.ERASE, routes.DELETE_AGENT),
}
OPERATIONS: dict[AnyRoute, str] = {route: operation for operation, many in _BY_OPERATION.items() for route in many}
"""The routes that are memory operations; the others have no span of the engine's."""


@contextmanager
def serving(method: str, route: str, headers: Mapping[str, str]) -> Generator[Span, None, None]:
    """The span of one request, in the trace that its sender began."""
    attributes: dict[str, Value] = {"http.request.method": method, "url.scheme": "http"}
    if route:
        attributes["http.route"] = route
    parent = tracing.incoming(headers)
    with tracing.spanned(f"{method} {route}".rstrip(), attributes, kind="SERVER", parent=parent) as span:
        yield span


def answered(span: Span, status: int) -> None:
    """Note how a request ended: only the server's own failures are errors of its span."""
    if status:  # 0: its sender was gone before
        span.set({"http.response.status_code": status})
    if status >= 500:
        span.fail(str(status))


def answer(contract: Contract, service: Service, match: Match, request: Request, owner: str) -> Reply:
    """Answer a request in the engine's span."""
    operation = OPERATIONS.get(match.route)
    if operation is None or not tracing.listening():
        return contract.answer(service, match, request, owner)
    with tracing.spanned(operation, _known(operation, match.segments)) as span:
        reply = contract.answer(service, match, request, owner)
        if reply.status >= 400:
            span.fail(status_class(reply.status).__name__)
    return reply


def _known(operation: str, segments: Mapping[str, str]) -> dict[str, Value]:
    found: dict[str, Value] = {tracing.OPERATION: operation}
    if "agent" in segments:
        found[tracing.STORE] = unquote(segments["agent"])
    if "session" in segments:
        found[tracing.CONVERSATION] = unquote(segments["session"])
    if "memory" in segments:
        found |= {tracing.RECORD: unquote(segments["memory"]), tracing.COUNT: 1}
    return found
