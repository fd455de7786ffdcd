"""The classic AutoGen distributions that this pack is run on: name → what to install, and the newest Python they take."""

from __future__ import annotations

VERSIONS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "autogen 0.14.1": (("autogen[openai]==0.14.1",), None),
    "ag2 0.14.0": (("ag2[openai]==0.14.0",), None),
    "ag2 0.9.10": (("ag2[openai]==0.9.10",), None),
    "pyautogen 0.9.0": (("pyautogen[openai]==0.9.0",), None),
    "autogen-agentchat 0.2.40": (("autogen-agentchat==0.2.40",), "3.12"),
    "pyautogen 0.2.35": (("pyautogen==0.2.35",), "3.12"),
}
