"""The recorded server's unkindnesses, each with a name by which a test switches it on or off."""

from __future__ import annotations

from collections.abc import Iterable

HABITS = {
    "folds across sessions": "a text is folded into a like one of any session",
    "folds into dead rows": "a text is folded into a superseded or expired row",
    "supersedes across sessions": "a newer text hides like ones of any session",
    "graph extras": "a name in the query adds memories past every filter",
    "counts tokens": "the longest text is 8,192 tokens, and a CJK character is one",
    "races": "looking for likenesses and inserting are two steps, for agents and for memories",
    "consolidates": "on every 50th store of a key, like rows of the agent become one written by a model",
}
USUAL = frozenset(HABITS) - {"races", "consolidates"}
"""Those that do no harm to a test that is about something else."""
EVERY = frozenset(HABITS)


def known(names: Iterable[str]) -> frozenset[str]:
    """Accept names of habits only: a misspelt one would switch nothing."""
    chosen = frozenset(names)
    if unknown := chosen - EVERY:
        raise ValueError(f"no such habit: {', '.join(sorted(unknown))}")
    return chosen
