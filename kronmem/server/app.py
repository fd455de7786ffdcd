"""The web app: every contract's table of routes behind HTTP and its keys. It decides nothing about memories."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby

import anyio
from anyio import to_thread
from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as WebRequest
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from kronmem.engine.service import ROUTES, Service
from kronmem.errors import KronmemError
from kronmem.server import keys as credentials
from kronmem.server.contracts.botwire import BOTWIRE
from kronmem.server.contracts.contract import Contract
from kronmem.server.contracts.memstore import MEMSTORE
from kronmem.server.guard import Guard, Hosts
from kronmem.server.keys import Keys
from kronmem.server.openapi import document
from kronmem.server.page import page
from kronmem.server.requests import MAX_BODY, read

_AT_ONCE = 16
_log = logging.getLogger("kronmem.server")

Endpoint = Callable[[WebRequest], Awaitable[Response]]


def _detail(_status: int, words: str) -> JsonValue:
    return {"detail": words}


KRONVEX = Contract(
    "Kronvex", ROUTES, lambda service, request, owner: service.handle(request, owner), credentials.api_key, _detail
)
CONTRACTS: tuple[Contract, ...] = (KRONVEX, BOTWIRE, MEMSTORE)
OPEN = frozenset({"/", "/openapi.json", "/health"})
"""The only paths that answer without a key: neither tells anything about what is stored."""


def create_app(service: Service, keys: Mapping[str, str] | None = None, hosts: Hosts | None = None) -> ASGIApp:
    """The service as an ASGI app. `keys` maps each API key to its owner; without keys everybody is the owner ''."""
    desk = _Desk(service, Keys(keys))
    routes = [route for contract in CONTRACTS for route in _routes(contract, desk)]
    app = Starlette(
        routes=[Route("/", _page), Route("/openapi.json", _document), *routes],
        exception_handlers={HTTPException: _refusal},
    )
    app.router.redirect_slashes = False  # a redirect would repeat a DELETE at an address nobody asked for
    return Guard(app, hosts or Hosts())


async def _page(_web: WebRequest) -> Response:
    body, headers = page()
    return Response(body, headers=headers)


async def _document(_web: WebRequest) -> Response:
    return Response(_openapi(), media_type="application/json")


def _version() -> str:
    try:
        return version("kronmem")
    except PackageNotFoundError:  # a checkout that was never installed
        return "0"


@lru_cache(maxsize=1)
def _openapi() -> bytes:
    return json.dumps(document(CONTRACTS, _version())).encode()


def _routes(contract: Contract, desk: _Desk) -> Iterator[Route]:
    """One route a path, in the order of the table: fixed words stand before ids there."""
    for path, rows in groupby(_ordered(contract), key=lambda row: row[0]):
        # Decided here, by the route that matched: nothing that a request says of itself can open another one.
        yield Route(path, desk.endpoint(contract, is_open=path in OPEN), methods=[method for _, method in rows])


def _ordered(contract: Contract) -> list[tuple[str, str]]:
    paths = list(dict.fromkeys(row.path for row in contract.rows))
    return sorted(((row.path, row.method) for row in contract.rows), key=lambda row: paths.index(row[0]))


class _Desk:
    """Answers requests in worker threads, a few at a time."""

    def __init__(self, service: Service, keys: Keys) -> None:
        self._service, self._keys = service, keys
        self._limiter: anyio.CapacityLimiter | None = None  # made inside the event loop it belongs to

    def endpoint(self, contract: Contract, *, is_open: bool) -> Endpoint:
        """The one way in for the rows of a contract: with a key, unless the route is open."""

        async def answer(web: WebRequest) -> Response:
            owner = "" if is_open else self._owner(contract, web)
            if isinstance(owner, Response):
                return owner
            request = await read(web)
            self._limiter = self._limiter or anyio.CapacityLimiter(_AT_ONCE)
            try:
                reply = await to_thread.run_sync(contract.answer, self._service, request, owner, limiter=self._limiter)
            except KronmemError as error:
                _log.error("%s %s: %s", web.method, type(error).__name__, error)
                return _problem(contract, 503, "The memory store cannot be used at the moment")
            return Response(reply.body, reply.status, headers=dict(reply.headers))

        return answer

    def _owner(self, contract: Contract, web: WebRequest) -> str | Response:
        if not self._keys.needed:
            return ""
        given = contract.key(web.headers)
        if given is None:
            return _problem(contract, 401, "Missing API key. Add header: X-API-Key: kv-...")
        owner = self._keys.owner(given)
        return _problem(contract, 401, "Invalid or revoked API key.") if owner is None else owner


def _problem(contract: Contract, status: int, words: str) -> Response:
    # Whatever of the body was not read would be taken for the next request.
    return Response(json.dumps(contract.refusal(status, words)), status, {"connection": "close"}, "application/json")


async def _refusal(web: WebRequest, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # registered for nothing else
    contract = _spoken(CONTRACTS, web.scope["path"])  # never web.url: the Host header is part of that
    body = json.dumps(contract.refusal(error.status_code, error.detail))
    return Response(body, error.status_code, dict(error.headers or {}), "application/json")


def _spoken(contracts: Sequence[Contract], path: str) -> Contract:
    """The contract that a path belongs to by its first words; Kronvex for all others."""
    first = path.split("/")[1:2]
    return next((one for one in contracts if one.rows[0].path.split("/")[1:2] == first), KRONVEX)


__all__ = ["CONTRACTS", "MAX_BODY", "create_app"]
