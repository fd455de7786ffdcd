"""`/mcp`: the memory of one agent over MCP's streamable HTTP, stateless (extra `mcp`).

The key is the owner, the agent is named by the header X-Kronmem-Agent or by the path: never by a model.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import unquote

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus
from starlette.exceptions import HTTPException
from starlette.requests import Request as WebRequest
from starlette.types import Message, Receive, Send

from kronmem.api.requests import EmptyRequest, valid_id
from kronmem.api.routes import AnyRoute, Match, Route
from kronmem.async_client import AsyncClient
from kronmem.core.wire import Reply, Request
from kronmem.engine.service import Service, holds_more
from kronmem.server import api_keys as keys
from kronmem.server.contracts.contract import detail
from kronmem.server.guard import read

if TYPE_CHECKING:  # loaded by the first request: the SDK takes longer to import than a server to start
    from kronmem.mcp.server import SessionManager

# POST alone: without sessions there is nothing to listen for by GET and nothing to end by DELETE.
ROUTES: tuple[AnyRoute, ...] = (
    Route("POST", "/mcp", EmptyRequest, object),
    Route("POST", "/mcp/{agent}", EmptyRequest, object),
)
MAX_BODY = 1024 * 1024
"""In bytes: the SDK parses it on the event loop. The longest text, escaped, has 400,000."""
MAX_VALUES = 2000
"""In a body: a memory has 100 tags, and the SDK answers each value that it does not want with 180 bytes."""
HEADER = "x-kronmem-agent"

_owner: ContextVar[str] = ContextVar("kronmem_mcp_owner")
_agent: ContextVar[str] = ContextVar("kronmem_mcp_agent")


class McpEndpoint:
    """Answers MCP requests of a known owner, while `running` is entered."""

    key = staticmethod(keys.bearer)
    refusal = staticmethod(detail)

    def __init__(self, service: Service) -> None:
        self._client = AsyncClient("sqlite://", transport=_OwnedTransport(service))
        self._tasks: TaskGroup | None = None
        self._manager: SessionManager | None = None
        self._starting = anyio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Keep the session manager of the first request until the server ends."""
        async with anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    async def answer(self, match: Match, owner: str, web: WebRequest, send: Send) -> None:
        """Answer one request; HTTPException when it names no agent or cannot be read."""
        agent = _named_agent(match.segments, web)
        body = (await read(web, MAX_BODY)).body or b""
        if holds_more(body, MAX_VALUES):
            raise HTTPException(413, f"The body holds more than {MAX_VALUES} values")
        manager = await self._started()  # before the variables are set: it outlives this request
        _owner.set(owner)
        _agent.set(agent)
        await manager.handle_request(web.scope, _replay(body, web.receive), send)

    async def _started(self) -> SessionManager:
        async with self._starting:
            if self._manager is None:
                self._manager = await self._start()
            return self._manager

    async def _start(self) -> SessionManager:
        if find_spec("mcp") is None:
            raise HTTPException(501, "This server has no MCP: pip install 'kronmem[mcp]' and start it again")
        if self._tasks is None:
            raise HTTPException(503, "MCP is not running: this app was started without its lifespan")
        manager: SessionManager = await self._tasks.start(self._run)
        return manager

    async def _run(self, *, task_status: TaskStatus[SessionManager]) -> None:
        manager = await to_thread.run_sync(self._make)
        async with manager.run():
            task_status.started(manager)
            await anyio.sleep_forever()

    def _make(self) -> SessionManager:
        from kronmem.mcp import memory_server

        return memory_server(self._client.agent(_agent.get), http=True).session_manager


class _OwnedTransport:
    """Sends requests to the service of this server, as the owner of the MCP request under way."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def asend(self, request: Request) -> Reply:
        """Answer one request in a worker thread."""
        return await to_thread.run_sync(self._service.handle, request, _owner.get(), abandon_on_cancel=True)

    async def aclose(self) -> None:
        """Leave the service to the server."""


def _named_agent(segments: Mapping[str, str], web: WebRequest) -> str:
    named = [one for one in (web.headers.get(HEADER), segments.get("agent")) if one is not None]
    try:
        # A header holds ASCII; other names are percent-encoded there as they are in a path.
        agents = {valid_id(unquote(one, errors="strict")) for one in named if one.isascii()}
    except ValueError as error:
        raise HTTPException(400, f"Bad agent: {error}") from None
    if len(agents) != 1:
        raise HTTPException(400, "Name one agent: header X-Kronmem-Agent (percent-encoded) or path /mcp/{agent}")
    return agents.pop()


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body that was read already, then everything else that happens on the connection."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return first.pop() if first else await receive()

    return again
