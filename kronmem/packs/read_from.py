"""A memory that also reads from further agents: the scope of writes is stated apart from the scope of reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import update_wrapper

from typing_extensions import Unpack

from kronmem.agent_memory import AgentMemory
from kronmem.async_agent_memory import AsyncAgentMemory
from kronmem.async_client import AsyncClient
from kronmem.core.options import RecallOptions
from kronmem.models import Hit
from kronmem.packs.checks import check_read_from
from kronmem.packs.injected_block import render_block
from kronmem.scope import AgentId, SessionId


class AsyncReadingMemory(AsyncAgentMemory):
    """Writes, forgets and clears one agent's memory; recalls from it and from the agents in `read_from`.

    A session limits the agent's own memory only: the others learned theirs elsewhere. The agent itself may stand in
    `read_from`, to be read beyond its session.
    """

    def __init__(
        self, client: AsyncClient, agent_id: AgentId, *, session_id: SessionId = None, read_from: Iterable[str] = ()
    ) -> None:
        super().__init__(client, agent_id, session_id=session_id)
        self.read_from = check_read_from(read_from)

    def _identity(self) -> tuple[object, ...]:
        return (*super()._identity(), self.read_from)

    @property
    def source(self) -> str:
        """The name of this memory in a block."""
        agent_id, session_id = self.agent_id, self.session_id
        return agent_id if session_id is None else f"{agent_id}/{session_id}"

    def block(self, hits: Sequence[Hit]) -> str:
        """Write recalled hits as the injected block; with several agents each memory tells its own."""
        agent_id = self.agent_id
        return render_block(hits, self.source, named=any(one != agent_id for one in self.read_from))

    async def recall(self, query: str, limit: int = 5, **options: Unpack[RecallOptions]) -> list[Hit]:
        own = self.resolved()
        others = _others(self.read_from, own)
        options["tags"], options["exclude"] = tuple(options.get("tags", ())), tuple(options.get("exclude", ()))
        if not others:
            return await super(AsyncReadingMemory, own).recall(query, limit, **options)
        if own.session_id is None and not options.get("fill"):
            found = await self._client.recall_across([own.agent_id, *others], query, limit, **options)
            return best(found.values(), limit)
        hits = await super(AsyncReadingMemory, own).recall(query, limit, **options)
        options["fill"] = False  # the profile is that of the agent's own memory
        found = await self._client.recall_across(others, query, limit, **options)
        return best([hits, *found.values()], limit)

    update_wrapper(recall, AsyncAgentMemory.recall)  # its docstring, and the parameters that inspect shows


def recall_beside(
    memory: AgentMemory, read_from: Sequence[str], query: str, limit: int, exclude: Sequence[str] = ()
) -> list[Hit]:
    """Recall from a blocking memory, its profile included, and from the agents in `read_from`, by the same rules."""
    hits = memory.recall(query, limit, exclude=exclude, fill="profile")
    others = _others(read_from, memory)
    if not others:
        return hits
    return best([hits, *memory.client.recall_across(others, query, limit, exclude=exclude).values()], limit)


def _others(read_from: Sequence[str], own: AgentMemory | AsyncAgentMemory) -> list[str]:
    agent_id, session_id = own.agent_id, own.session_id
    return [one for one in read_from if session_id is not None or one != agent_id]


def best(found: Iterable[Iterable[Hit]], limit: int) -> list[Hit]:
    """Merge answers, each memory once: standing notes, then by similarity; among equals the earlier answer first."""
    once = {(hit.memory.agent_id, hit.memory.id): hit for hits in found for hit in hits}
    return sorted(once.values(), key=lambda hit: (not hit.standing, 0.0 if hit.standing else -hit.similarity))[:limit]
