"""The one import of AutoGen: its names, and how to install them when they are missing.

Several distributions own the directory `autogen/`, and the newest versions of some no longer ship it; pip notices
neither. Everything else about AutoGen is duck typed, so that one pack serves all versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from typing import TypeAlias

FIX = 'pip install "autogen[openai]>=0.14.1,<1"'
REPAIR = f"pip uninstall -y ag2 pyautogen autogen && {FIX}"


def installed(distribution: str) -> str | None:
    """The version of a distribution, None when it is not there."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def explain(error: ImportError, version: Callable[[str], str | None] = installed) -> str:
    """The fault of this installation, and the command that repairs it."""
    if not isinstance(error, ModuleNotFoundError) or error.name != "autogen":
        return (
            "the 'autogen' package is damaged, or too old to have register_function: several distributions share its "
            f"directory, and removing one breaks the others ({error}). Run: {REPAIR}"
        )
    for name in ("pyautogen", "ag2"):
        if found := version(name):
            return f"classic AutoGen is not installed: {name} {found} no longer ships `import autogen`. Run: {FIX}"
    return 'classic AutoGen (`import autogen`) is not installed. Run: pip install "kronmem[autogen]"'


try:
    from autogen import Agent, ConversableAgent, GroupChat, GroupChatManager, register_function
except ImportError as error:
    raise ImportError(explain(error)) from error

Team: TypeAlias = "Agent | GroupChat | Iterable[Team]"

__all__ = [
    "Agent",
    "ConversableAgent",
    "GroupChat",
    "GroupChatManager",
    "Team",
    "group_of",
    "members",
    "register_function",
]


def group_of(team: object) -> GroupChat | None:
    """The group chat that this is, or that this manager runs."""
    found = getattr(team, "groupchat", team)
    return found if isinstance(found, GroupChat) else None


def members(team: Team) -> list[ConversableAgent]:
    """The agents of a team, each once; never a manager, which only passes on messages."""
    return list(dict.fromkeys(_walk(team, set())))


def _walk(team: Team, seen: set[int]) -> Iterator[ConversableAgent]:
    if id(team) in seen:
        return
    seen.add(id(team))
    group = group_of(team)
    if group is None and isinstance(team, ConversableAgent):
        yield team
        return
    inner = team if group is None else group.agents
    if not isinstance(inner, Iterable):
        raise TypeError(f"expected agents, a GroupChat or a GroupChatManager, not {type(team).__name__}")
    for one in inner:
        yield from _walk(one, seen)
