"""Ids as a model sees them: the first 8 characters. Pure but for the listing that a caller hands over."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable

from kronmem.errors import NotFoundError
from kronmem.models import Hit, Memory
from kronmem.text.fence import label, legible

LENGTH = 8
MAX_CANDIDATES = 5
"""Memories named when a prefix fits several."""
MAX_SHOWN = 4096
"""Ids that one set of tools keeps in mind: those of a long conversation."""
_PREFIX = re.compile(r"(?=.{4,35}$)[0-9a-f]{4,8}(?:-[0-9a-f]{0,4}){0,3}(?:-[0-9a-f]{0,11})?")


def short(memory_id: str) -> str:
    """The id in an answer; no bracket or line break of a service's own is in it."""
    return label(memory_id[:LENGTH] if _PREFIX.match(memory_id[:LENGTH]) else memory_id)


def as_prefix(memory_id: str) -> str | None:
    """The beginning of an id that a model names, in lower case; None for a whole id and for anything else."""
    written = memory_id.strip().strip("[]()#.\"'`").lower().removeprefix("id").strip(" :")
    return written if _PREFIX.fullmatch(written) else None


class ShownIds:
    """The ids that were shown: most prefixes are resolved by them, without a listing."""

    def __init__(self) -> None:
        self._shown: OrderedDict[tuple[str, str], None] = OrderedDict()

    def note(self, memories: Iterable[Memory]) -> None:
        """Keep the ids of memories that a model is about to see."""
        for memory in memories:
            self._shown[memory.agent_id, memory.id.lower()] = None
        while len(self._shown) > MAX_SHOWN:
            self._shown.popitem(last=False)

    def resolve(self, agent_id: str, named: str) -> tuple[str, str]:
        """The id that a model names, or the prefix to look for in the listing; the other one is ""."""
        prefix = as_prefix(named)
        if prefix is None:
            return named.strip(), ""
        fits = [one for agent, one in [*self._shown] if agent == agent_id and one.startswith(prefix)]
        return (fits[0], "") if len(fits) == 1 else ("", prefix)


def only_one(memories: list[Memory]) -> str:
    """The id of the memory that a prefix fits; `NotFoundError` if there is none."""
    if not memories:
        raise NotFoundError("no memory has that id", status=404)
    return memories[0].id


def candidates(memories: list[Memory], prefix: str) -> str:
    """Words about memories of which a model has to choose one."""
    lines = [f"{label(one.id)}: {legible(Hit(memory=one))[:100]}" for one in memories[:MAX_CANDIDATES]]
    return "\n".join([f"{prefix} fits several notes; nothing was deleted. Say which:", *lines])
