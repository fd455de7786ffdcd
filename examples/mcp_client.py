"""MCP: a client starts `kronmem mcp`, stores a note and asks for what fits; Claude Code, Cursor and others do the same.

The agent is fixed by the command, never by the model.
"""

import asyncio
import sys
import tempfile

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(home: str) -> None:
    command = ["-m", "kronmem", "mcp", "--agent", "team-7"]  # `kronmem mcp --agent team-7`
    environment = {"KRONMEM_HOME": home}  # an MCP client hands over only what it is told to
    server = StdioServerParameters(command=sys.executable, args=command, env=environment)
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        print("tools:", *sorted(tool.name for tool in (await session.list_tools()).tools))
        await session.call_tool("remember", {"content": "The report is published in French"})
        answer = await session.call_tool("inject_context", {"query": "language of the report"})
        print(answer.content[0].text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:  # yours: without it, a file of the user
        asyncio.run(main(home))
