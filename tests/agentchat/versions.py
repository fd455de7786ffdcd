"""The AutoGen versions that the pack promises: name → (what to install, the newest Python it installs on)."""

from __future__ import annotations

VERSIONS: dict[str, tuple[tuple[str, ...], str | None]] = {
    f"agentchat {version}": ((f"autogen-agentchat=={version}", f"autogen-ext[openai]=={version}"), None)
    for version in ("0.4.9.3", "0.5.7", "0.6.4", "0.7.5")
} | {
    # Its Anthropic client is broken with anthropic 1 and later.
    "agentchat 0.7.5 with anthropic": (
        ("autogen-agentchat==0.7.5", "autogen-ext[openai,anthropic]==0.7.5", "anthropic<1"),
        None,
    )
}
