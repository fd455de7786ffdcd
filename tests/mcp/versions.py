"""The MCP SDKs that the pack promises: name → (what to install, the newest Python it installs on)."""

from __future__ import annotations

VERSIONS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "mcp 1.28": (("mcp==1.28.0",), None),
    "mcp 1.x, newest": (("mcp>=1.28,<2",), None),
    "mcp 2.x, newest": (("mcp>=2,<3",), None),
    # With the clients of the frameworks: AutoGen's wants the first major, the others the second.
    "mcp 1.x of AutoGen": (("mcp>=1.28,<2", "autogen-agentchat==0.7.5", "autogen-ext[mcp]==0.7.5"), None),
    "mcp 2.x of Agent Framework and AG2": (
        ("mcp>=2.2,<3", "agent-framework-core>=1.23,<2", "tenacity", "ag2[mcp]>=1.2.1,<2"),
        None,
    ),
}
