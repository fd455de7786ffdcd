"""The lines of the demo, and a model that says them. The model knows nothing: it repeats its tools' answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

USER = "ada"
PLANNER, ENGINEER = "planner", "engineer"
TOLD = "We ship the beta on Friday. And I prefer short answers."
ASKED = "When do we ship the beta? And how do I like my answers?"
UNKNOWN = "I do not know."

Message = Mapping[str, object]


@dataclass(frozen=True)
class Wish:
    """A tool that a model asks for."""

    tool: str
    arguments: Mapping[str, str]

    def words(self) -> str:
        """As a reader understands it."""
        said = ", ".join(json.dumps(value, ensure_ascii=False) for value in self.arguments.values())
        return f"{self.tool}({said})"


@dataclass(frozen=True)
class Part:
    """The turn of one agent: ask for a tool, then say something about the answer."""

    agent: str
    wish: Wish
    says: str


_BETA = Wish("remember", {"content": "The beta ships on Friday", "memory_type": "decision"})
_SHORT = Wish("remember", {"content": "Ada prefers short answers", "memory_type": "preference"})
TELLING = (
    Part(PLANNER, _BETA, "Noted: the beta ships on Friday."),
    Part(ENGINEER, _SHORT, "Short answers from now on."),
)
# Each asks for what the other one stored.
ASKING = (
    Part(
        PLANNER,
        Wish("recall", {"query": "how does Ada like her answers?"}),
        "Nobody told me, but the team remembers: {}.",
    ),
    Part(ENGINEER, Wish("recall", {"query": "when does the beta ship?"}), "Nor me, but it is known: {}."),
)
SCENES = {"tell": (TOLD, TELLING), "ask": (ASKED, ASKING)}


def reply(part: Part, messages: Sequence[Message]) -> Wish | str:
    """The model's next words: first the tool, then its answer in a sentence."""
    if not messages or messages[-1].get("role") != "tool":
        return part.wish
    return spoken(part, str(messages[-1].get("content", "")))


def spoken(part: Part, answer: str) -> str:
    """An agent's words about a tool's answer; of one without a memory in it, nothing."""
    if part.wish.tool == "remember":
        return part.says if answer.startswith(("Stored", "Already")) else UNKNOWN
    return part.says.format(found(answer)) if found(answer) else UNKNOWN


def found(answer: str) -> str:
    """The first note in recall's answer, without its label."""
    first = re.search(r"^1\. \[[^\]]*\] (.*)$", answer, re.M)
    return first[1] if first else ""


def shown(answer: str) -> str:
    """A tool's answer as the demo shows it: without ids, which are never the same."""
    text = re.sub(r" ?\(id [^)]*\)|, similarity [\d.]+, id [0-9a-f-]+", "", answer)
    return text.split("\n", 1)[-1] if text.startswith("Recalled notes") else text
