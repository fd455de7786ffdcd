"""`kronmem mcp`: the memory of one agent for MCP clients, over stdin and stdout."""

from __future__ import annotations

from importlib.util import find_spec

import anyio

from kronmem import AsyncClient, ConfigError
from kronmem.cli import errors, options
from kronmem.cli.api_keys import key_for


def mcp(agent: options.Agent, url: options.Url = None) -> None:
    """Serve the memory of one agent to an MCP client: Claude Code, Cursor, AutoGen, Agent Framework, AG2.

    The client starts this command and speaks to it over stdin and stdout; it ends when stdin does. For many agents
    and machines, `kronmem serve` answers MCP over HTTP at /mcp.
    """
    with errors.told():
        if find_spec("mcp") is None:
            raise ConfigError("MCP needs its extra: pip install 'kronmem[mcp]'")
        from kronmem.mcp import serve_stdio

        async def serve() -> None:
            async with AsyncClient(url, api_key=key_for(url)) as client:
                await serve_stdio(client, agent)

        anyio.run(serve)
