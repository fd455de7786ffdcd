"""The Agent Framework versions that the pack promises: name → (what to install, the newest Python it installs on)."""

from __future__ import annotations

VERSIONS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "agent-framework-core 1.0.0": (("agent-framework-core==1.0.0",), None),
    "agent-framework-core, newest": (("agent-framework-core>=1.0,<2",), None),
}
