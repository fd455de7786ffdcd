"""The part of the MCP SDK that is used here, in the two shapes that its majors have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

Tool = Callable[..., Awaitable[str]]


class SessionManager(Protocol):
    """Answers requests over HTTP while `run` is entered, which may be once."""

    def run(self) -> AbstractAsyncContextManager[None]:
        """Start to answer."""
        ...

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        ...


class Server(Protocol):
    """FastMCP of the first major, MCPServer of the second."""

    @property
    def session_manager(self) -> SessionManager:
        """The HTTP side of a server made by `make_http_server`."""
        ...

    def add_tool(
        self, fn: Tool, *, annotations: ToolAnnotations | None = None, structured_output: bool | None = None
    ) -> None:
        """Offer a function; its name, docstring and annotations are shown to models."""
        ...

    def resource(
        self, uri: str, *, name: str | None = None, description: str | None = None, mime_type: str | None = None
    ) -> Callable[[Tool], Tool]:
        """Offer a text that clients read by its address."""
        ...

    async def run_stdio_async(self) -> None:
        """Serve stdin and stdout until stdin ends."""
        ...


def make_server(name: str, instructions: str) -> Server:
    """Make a server for stdio."""
    return _make(name, instructions)


def make_http_server(name: str, instructions: str) -> Server:
    """Make a stateless server: nothing is kept between requests, each is answered with one JSON body."""
    options: dict[str, object] = {
        "stateless_http": True,
        "json_response": True,
        # The Host and Origin of a request were checked before it came here, by rules that know the server's names.
        "transport_security": TransportSecuritySettings(enable_dns_rebinding_protection=False),
    }
    # The first major takes them in the constructor, the second where the app is made. Either app is left unused:
    # making it makes the session manager.
    first = _is_first_major()
    server = _make(name, instructions, **(options if first else {}))
    make_app: Callable[..., object] = vars(type(server))["streamable_http_app"]
    make_app(server, **({} if first else options))
    return server


def resource_error(message: str) -> Exception:
    """An error with a message for the client."""
    module = "mcp.server.fastmcp.exceptions" if _is_first_major() else "mcp.server.mcpserver.exceptions"
    return cast("Callable[[str], Exception]", import_module(module).ResourceError)(message)


def _is_first_major() -> bool:
    return not hasattr(import_module("mcp.server"), "MCPServer")


def _make(name: str, instructions: str, **options: object) -> Server:
    found = import_module("mcp.server")
    make = cast("Callable[..., Server]", found.FastMCP if _is_first_major() else found.MCPServer)
    # Warnings only: both majors log a line a request otherwise.
    return make(name=name, instructions=instructions, log_level="WARNING", **options)
