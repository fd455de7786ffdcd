"""The MCP pack: memory as tools and a resource for every MCP client, over stdio or inside `kronmem serve`.

For `mcp` 1.28 to 2.x. Importing it opens nothing.
"""

try:
    from kronmem.mcp.server import memory_server, serve_stdio
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] != "mcp":
        raise
    raise ImportError("kronmem.mcp needs mcp 1.28 to 2.x: pip install 'kronmem[mcp]'") from missing

__all__ = ["memory_server", "serve_stdio"]
