"""Real MCP clients of either major: over stdio, over HTTP, and what their answers say."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

ROOT = Path(__file__).parent.parent.parent
SECOND_MAJOR = hasattr(import_module("mcp.server"), "MCPServer")


@asynccontextmanager
async def over_stdio(*arguments: str, python: str = sys.executable, **variables: str) -> AsyncIterator[ClientSession]:
    """A session with `kronmem mcp`, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    server = StdioServerParameters(command=python, args=["-m", "kronmem", "mcp", *arguments], env=environment)
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        yield session


@asynccontextmanager
async def over_http(url: str, **headers: str) -> AsyncIterator[ClientSession]:
    """A session with a served `/mcp`."""
    httpx = import_module("httpx2" if SECOND_MAJOR else "httpx")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(headers=named, timeout=60) as http:
        async with streamable_http_client(url, http_client=http) as streams:
            async with ClientSession(*streams[:2]) as session:
                await session.initialize()
                yield session


async def call(session: ClientSession, name: str, **arguments: Any) -> str:
    """The words that a tool answers."""
    result = await session.call_tool(name, arguments)
    return "\n".join(part.text for part in result.content if part.type == "text")


async def context(session: ClientSession, uri: str) -> str:
    """The text of a resource."""
    address: Any = uri if SECOND_MAJOR else import_module("pydantic").AnyUrl(uri)
    return str((await session.read_resource(address)).contents[0].text)  # type: ignore[union-attr] # a text resource
