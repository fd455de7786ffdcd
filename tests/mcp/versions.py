"""The MCP SDKs that the pack promises: name → (what to install, the newest Python it installs on)."""

from __future__ import annotations

VERSIONS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "mcp 1.28": (("mcp==1.28.0",), None),
    "mcp 1.x, newest": (("mcp>=1.28,<2",), None),
    "mcp 2.x, newest": (("mcp>=2,<3",), None),
}
