"""The words by which a model knows the memory tools: names, descriptions, parameters."""

from collections.abc import Coroutine
from typing import Literal, TypeAlias

from kronmem.packs.checks import check_prefix

ToolCoroutine: TypeAlias = Coroutine[object, object, str]
"""The call of an awaitable tool."""
ToolName = Literal["remember", "recall", "forget"]

DESCRIPTIONS: dict[ToolName, str] = {
    "remember": "Store a fact, preference or decision so that it can be recalled in later conversations.",
    "recall": "Search long-term memory for what is known about a subject. Use it before you say that you do not know.",
    "forget": "Delete one memory by the id that recall shows.",
}
CONTENT = "The text to remember, as one self-contained sentence"
TYPE = "preference, fact, decision, context, temporary, interaction, episodic, semantic or procedural"
TAGS = "Labels that all have to match; leave out if unsure"
KEY = 'The subject, such as "home_city": takes the place of the memory under this key; leave out if unsure'
TTL = "Forget it by itself after this many days; leave out to keep it"
QUERY = "What to look for, in plain words"
LIMIT = "How many memories at most, 1 to 20"
MEMORY_ID = "The id of the memory, as shown by recall"
UNAVAILABLE = "Memory is unavailable right now; continue without it."


def tool_names(prefix: str) -> dict[ToolName, str]:
    """The names that a model calls the tools by; `InvalidInputError` for a prefix that no tool may have."""
    check_prefix(prefix)
    return {name: f"{prefix}{name}" for name in DESCRIPTIONS}
