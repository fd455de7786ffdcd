"""The web app: the routes of every contract behind HTTP and keys, and the memory page. No decisions about memories."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Protocol

import anyio
from anyio import to_thread
from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as WebRequest
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kronmem import tracing
from kronmem.api import paths
from kronmem.api.routes import AnyRoute, Match, Router
from kronmem.core.wire import UNAVAILABLE, Reply, Request
from kronmem.engine.service import Service
from kronmem.errors import KronmemError, StoreError, TransportError
from kronmem.server.api_keys import Headers, Keys, KeysFile, WrongKeys
from kronmem.server.contracts.botwire import BOTWIRE
from kronmem.server.contracts.contract import KRONVEX, Contract
from kronmem.server.contracts.memstore import MEMSTORE
from kronmem.server.guard import BodyRoom, Guard, Hosts, LogRequest, ServedRequest, log_as_text, read, target
from kronmem.server.mcp import ROUTES as MCP_ROUTES
from kronmem.server.mcp import McpEndpoint
from kronmem.server.metrics import METRICS, MetricsEndpoint, RequestMetrics
from kronmem.server.openapi import document
from kronmem.settings import installed_version

__all__ = ["CONTRACTS", "SCRIPTS", "create_app", "page"]


_AT_ONCE = 16
"""Requests in worker threads at a time: the embedded transport's bound."""
_log = logging.getLogger("kronmem.server")

CONTRACTS: tuple[Contract, ...] = (KRONVEX, BOTWIRE, MEMSTORE)
_ROUTES = (*(route for contract in CONTRACTS for route in contract.routes), *MCP_ROUTES, METRICS)
_ROUTER = Router(_ROUTES)
_MATCH = "kronmem.match"
_CONTRACT_OF = {route: contract for contract in CONTRACTS for route in contract.routes}
PAGES = ("/", "/openapi.json")
UNMATCHED = "unmatched"
_LABELS = {route: re.sub(r"\{(agent|memory|session)\}", r"{\1_id}", route.path) for route in _ROUTES}
OPEN = frozenset({*PAGES, paths.HEALTH})
"""The only paths that answer without a key: none reveals anything about the memories stored."""


def create_app(
    service: Service,
    keys: Mapping[str, str] | KeysFile | None = None,
    hosts: Hosts | None = None,
    *,
    open_metrics: bool = False,
    log_request: LogRequest = log_as_text,
) -> ASGIApp:
    """The service as an ASGI app. `keys` maps each API key to its owner; without keys every caller is the owner ''.

    `open_metrics` serves /metrics without a key. `log_request` writes the access log.
    """
    mcp, requests = McpEndpoint(service), RequestMetrics()
    others: dict[AnyRoute, _Endpoint] = {**dict.fromkeys(MCP_ROUTES, mcp), METRICS: MetricsEndpoint(service, requests)}
    opened = OPEN | {METRICS.path} if open_metrics else OPEN

    def finished(request: ServedRequest) -> None:
        requests.add(request.method, request.route or UNMATCHED, request.status, request.seconds)
        log_request(request)

    app = Starlette(
        routes=[
            Route("/", _page),
            Route("/openapi.json", _document),
            # One row for all contracts: they are routed once, by the path as sent. Starlette matches the decoded
            # path, in which a quoted slash is a slash.
            Route("/{path:path}", _Dispatcher(service, Keys(keys), others, opened)),
        ],
        exception_handlers={HTTPException: _refusal},
        lifespan=lambda _app: mcp.running(),
    )
    app.router.redirect_slashes = False  # a redirect would repeat a DELETE at an address that the caller did not send
    return Guard(app, hosts or Hosts(), route_of, finished)


async def _page(_web: WebRequest) -> Response:
    body, headers = page()
    return Response(body, headers=headers)


async def _document(_web: WebRequest) -> Response:
    return Response(_openapi(), media_type="application/json")


@lru_cache(maxsize=1)
def _openapi() -> bytes:
    return json.dumps(document(CONTRACTS, installed_version())).encode()


_Asked = tuple[Service, Match, Request, str]


class _Keyed(Protocol):
    """A protocol of requests: where the key stands, and the form of a refusal."""

    @property
    def key(self) -> Callable[[Headers], str | None]: ...
    @property
    def refusal(self) -> Callable[[int, str], JsonValue]: ...


class _Endpoint(_Keyed, Protocol):
    """Answers routes that belong to no contract."""

    async def answer(self, match: Match, owner: str, web: WebRequest, send: Send, /) -> None: ...


class _Dispatcher:
    """Answers every route but the page's; requests of contracts in worker threads, a few at a time."""

    def __init__(
        self, service: Service, keys: Keys, others: Mapping[AnyRoute, _Endpoint], opened: frozenset[str]
    ) -> None:
        self._service, self._keys, self._others, self._open = service, keys, others, opened
        self._wrong_keys, self._room = WrongKeys(), BodyRoom()
        self._limiter: anyio.CapacityLimiter | None = None  # made inside the event loop it belongs to

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as an ASGI app, which has no methods of its own to refuse."""
        web = WebRequest(scope, receive)
        match = _routed(web)
        contract = _CONTRACT_OF.get(match.route)
        # Decided by the route that matched: nothing that a request says of itself can open another one.
        owner = "" if match.route.path in self._open else self._owner(contract or self._others[match.route], web)
        if isinstance(owner, Response):
            await owner(scope, receive, send)
        elif contract is None:
            await self._others[match.route].answer(match, owner, web, send)
        else:
            response = await self._answer(contract, match, owner, web)
            await response(scope, receive, send)

    async def _answer(self, contract: Contract, match: Match, owner: str, web: WebRequest) -> Response:
        with self._room.share() as grow:
            return await self._reply(contract, (self._service, match, await read(web, contract.max_body, grow), owner))

    async def _reply(self, contract: Contract, asked: _Asked) -> Response:
        try:
            reply = await self._run(contract, asked)
        except KronmemError as error:
            _log.error("%s %s: %s", asked[2].method, type(error).__name__, error)
            return _unusable(contract, error)
        except Exception:  # noqa: BLE001 -- a server answers every request; the log has the traceback
            _log.exception("%s request failed", asked[2].method)
            return _problem(contract, 500, "Internal error; its traceback is in the log of kronmem.server")
        return Response(reply.body, reply.status, headers=dict(reply.headers))

    async def _run(self, contract: Contract, asked: _Asked) -> Reply:
        if asked[1].route.path in OPEN:  # health touches no store, and never waits behind those who do
            return contract.answer(*asked)
        self._limiter = self._limiter or anyio.CapacityLimiter(_AT_ONCE)
        return await to_thread.run_sync(_traced_answer, contract, *asked, limiter=self._limiter)

    def _owner(self, contract: _Keyed, web: WebRequest) -> str | Response:
        if not self._keys.needed:
            return ""
        given = contract.key(web.headers)
        if given is None:
            return _problem(contract, 401, "Missing API key. Add header: X-API-Key: kv-...")
        if (owner := self._keys.owner(given)) is not None:
            return owner
        if seconds := self._wrong_keys.count(web.client.host if web.client else ""):
            return _problem(contract, 429, "Too many wrong API keys from this address.", retry_after=seconds)
        return _problem(contract, 401, "Invalid or revoked API key.")


def _traced_answer(contract: Contract, service: Service, match: Match, request: Request, owner: str) -> Reply:
    route = contract.stands_for.get(match.route, match.route)
    return tracing.engine(lambda: contract.answer(service, match, request, owner), route, match.segments)


def route_of(scope: Scope) -> str:
    """The route of a request, for spans, metrics and logs; "" when none matches. Never the path, which names agents."""
    _, path = target(WebRequest(scope))
    if path in PAGES:
        return path
    match = _matched(scope)
    return _LABELS[match.route] if match else ""


def _matched(scope: Scope) -> Match | None:
    """The route of a request, found once for the guard and for the answer."""
    if _MATCH not in scope:
        scope[_MATCH] = _ROUTER.find(*target(WebRequest(scope)))
    match: Match | None = scope[_MATCH]
    return match


def _routed(web: WebRequest) -> Match:
    if match := _matched(web.scope):
        return match
    method, path = target(web)
    methods = _ROUTER.allowed(method, path)
    if not methods:
        raise HTTPException(404)
    raise HTTPException(405, headers={"Allow": ", ".join([*methods, *(["HEAD"] if "GET" in methods else [])])})


def _unusable(contract: Contract, error: KronmemError) -> Response:
    if isinstance(error, TransportError) and error.sent:  # lost while it committed: the outcome is unknown
        response = _problem(contract, 504, "The memory store did not answer: it may have carried out the request")
    else:
        response = _problem(contract, 503, "The memory store cannot be used at the moment")
    if isinstance(error, TransportError):  # for "agent" callers need not leave the other agents alone
        response.headers[UNAVAILABLE] = "agent" if error.partial else "store"
    elif isinstance(error, StoreError) and error.outage:
        response.headers[UNAVAILABLE] = "store"
    return response


def _problem(contract: _Keyed, status: int, message: str, retry_after: int = 0) -> Response:
    # The unread rest of the body would be taken for the next request.
    headers = {"connection": "close"} | ({"retry-after": str(retry_after)} if retry_after else {})
    return Response(json.dumps(contract.refusal(status, message)), status, headers, "application/json")


async def _refusal(web: WebRequest, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # registered for nothing else
    contract = _contract_at(CONTRACTS, web.scope["path"])  # never web.url: the Host header is part of that
    body = json.dumps(contract.refusal(error.status_code, error.detail))
    return Response(body, error.status_code, dict(error.headers or {}), "application/json")


def _contract_at(contracts: Sequence[Contract], path: str) -> Contract:
    """The contract that a path belongs to by its first word; Kronvex for all others."""
    first = path.split("/")[1:2]
    return next((one for one in contracts if one.routes[0].path.split("/")[1:2] == first), KRONVEX)


# The memory page: one file, put together from `assets/`, and the policy that lets a browser run nothing else.

SCRIPTS = ("service", "words", "agents", "list", "chart", "undo", "drawer", "address", "shortcuts")
"""In this order they are one strict script: a single answer needs no further open route, and its hash is the policy."""


@lru_cache(maxsize=1)
def page() -> tuple[bytes, dict[str, str]]:
    """The page and its headers."""
    style = _asset("page.css")
    script = '(() => {"use strict";\n' + "\n".join(_asset(f"{name}.js") for name in SCRIPTS) + "})();"
    text = _asset("page.html").replace("<style></style>", f"<style>{style}</style>")
    text = text.replace("<script></script>", f"<script>{script}</script>")
    policy = [
        "default-src 'none'",
        f"script-src '{_digest(script)}'",
        f"style-src '{_digest(style)}'",
        "img-src data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
    headers = {"content-type": "text/html; charset=utf-8", "content-security-policy": "; ".join(policy)}
    return text.encode(), {**headers, "referrer-policy": "no-referrer", "x-frame-options": "DENY"}


def _asset(name: str) -> str:
    return files("kronmem.server").joinpath(f"assets/{name}").read_text("utf-8")


def _digest(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
