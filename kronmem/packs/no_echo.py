"""No echo: a memory whose statement stands in the prompt is not shown again, and takes no other's place.

The words decide, without case and punctuation: ids cannot always be known, for a text that was stored before keeps its
old one. Ids that were seen are asked to be left out from the start, for as long as their words stand in the prompt.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from threading import Lock

from kronmem.models import Hit

MAX_KNOWN = 256
"""Memories of one agent that are looked for in a prompt: a chat that long has slid out of every window."""
MAX_AGENTS = 256
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?…。！？])\s+|\n+")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

Statement = tuple[str, ...]
"""The sentences of a memory, each as its words between blanks."""


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _statement(text: str) -> Statement:
    return tuple(words for part in _SENTENCE.split(text) if (words := _words(part)).strip())


class Prompt:
    """The texts that a model is about to see."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._words = " ".join(_words(text) for text in texts)

    def holds(self, statement: Statement) -> bool:
        """Whether every sentence of a statement stands in the prompt."""
        return bool(statement) and all(words in self._words for words in statement)


class Echoes:
    """The memories that were seen in prompts or captured from them, by agent; of each the words and the id."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, OrderedDict[str, Statement]] = OrderedDict()
        self._lock = Lock()

    def note(self, agent_id: str, memory_id: str, text: str) -> None:
        """Keep in mind that this memory has these words."""
        if not _UUID.fullmatch(memory_id):
            return  # no service could be asked to leave it out
        with self._lock:
            known = self._known.setdefault(agent_id, OrderedDict())
            known[memory_id] = _statement(text)
            known.move_to_end(memory_id)
            self._known.move_to_end(agent_id)
            if len(known) > MAX_KNOWN:
                known.popitem(last=False)
            if len(self._known) > MAX_AGENTS:
                self._known.popitem(last=False)

    def standing(self, agent_id: str, prompt: Prompt) -> list[str]:
        """The ids of the memories that stand in the prompt."""
        with self._lock:
            known = [*self._known[agent_id].items()] if agent_id in self._known else []
        return [memory_id for memory_id, statement in known if prompt.holds(statement)]

    def fresh(self, agent_id: str, hits: Sequence[Hit], prompt: Prompt) -> list[Hit]:
        """The hits that do not stand in the prompt; the others are kept in mind."""
        echoes = [hit for hit in hits if prompt.holds(_statement(hit.excerpt or hit.content))]
        for hit in echoes:
            self.note(agent_id, hit.memory.id, hit.excerpt or hit.content)
        return [hit for hit in hits if hit not in echoes] if echoes else [*hits]


Recall = Callable[[list[str]], list[Hit]]
"""Recalls with these ids left out."""


def recall_fresh(recall: Recall, echoes: Echoes, agent_id: str, prompt: Prompt) -> list[Hit]:
    """Recall memories that do not stand in the prompt; asked once more when echoes were among the hits."""
    known = echoes.standing(agent_id, prompt)
    hits = recall(known)
    fresh = echoes.fresh(agent_id, hits, prompt)
    if len(fresh) == len(hits) or (again := echoes.standing(agent_id, prompt)) == known:
        return fresh
    return echoes.fresh(agent_id, recall(again), prompt)


async def recall_fresh_async(
    recall: Callable[[list[str]], Awaitable[list[Hit]]], echoes: Echoes, agent_id: str, prompt: Prompt
) -> list[Hit]:
    """The same, awaited."""
    known = echoes.standing(agent_id, prompt)
    hits = await recall(known)
    fresh = echoes.fresh(agent_id, hits, prompt)
    if len(fresh) == len(hits) or (again := echoes.standing(agent_id, prompt)) == known:
        return fresh
    return echoes.fresh(agent_id, await recall(again), prompt)
