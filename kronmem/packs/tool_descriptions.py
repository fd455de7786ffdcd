"""The words by which a model knows the memory tools: names, descriptions, parameters."""

from collections.abc import Coroutine, Iterable
from typing import Literal, TypeAlias

from kronmem.core import inputs
from kronmem.errors import InvalidInputError
from kronmem.packs.checks import check_prefix

ToolCoroutine: TypeAlias = Coroutine[object, object, str]
"""The call of an awaitable tool."""
ToolName = Literal["remember", "recall", "forget"]

TOOL_NAMES: tuple[ToolName, ...] = ("remember", "recall", "forget")
DESCRIPTIONS: dict[ToolName, str] = {
    "remember": "Store a fact, preference or decision as soon as the user states it, for later conversations. "
    'One a call, with a name instead of "I". No small talk, no guesses.',
    "recall": "Search notes of earlier conversations, before you say that you do not know. "
    '"*" lists the most important ones.',
    "forget": "Delete a note that is wrong or that the user wants gone.",
}
CONTENT = 'One sentence that can be understood alone: "Ada is vegan"'
TYPES = (
    *("fact", "preference", "decision", "context", "temporary", "interaction", "episodic", "semantic", "procedural"),
)
TYPE = ", ".join(TYPES[:-1]) + f" or {TYPES[-1]}"
KEY = (
    'What it is about, if that has one value at a time ("home_city", "launch_date"): '
    "the note takes the place of the one with this key"
)
QUERY = "The subject, in plain words"
LIMIT = "At most so many, 1 to 20"
DAYS = "Only notes of the last so many days"
MEMORY_ID = "The id that recall shows"
UNAVAILABLE = "Memory is unavailable right now; continue without it."


def tool_names(prefix: str) -> dict[ToolName, str]:
    """The names that a model calls the tools by; `InvalidInputError` for a prefix that no tool may have."""
    check_prefix(prefix)
    return {name: f"{prefix}{name}" for name in TOOL_NAMES}


def check_only(only: Iterable[str]) -> tuple[ToolName, ...]:
    """Accept some of the tools by name, in the order of their use."""
    wanted = list(inputs.strings(only, "only", of="names of tools"))
    if not wanted or set(wanted) - set(TOOL_NAMES):
        raise InvalidInputError(f"only must name one or more of remember, recall and forget, not {wanted!r:.80}")
    return tuple(name for name in TOOL_NAMES if name in wanted)


def check_tools(tools: bool | Iterable[str]) -> tuple[ToolName, ...]:
    """Accept the `tools=` of a provider or plugin: all, none, or some by name."""
    if isinstance(tools, bool):
        return TOOL_NAMES if tools else ()
    return check_only(tools)
