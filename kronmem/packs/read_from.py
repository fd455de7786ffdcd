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
        others = [one for one in self.read_from if own.session_id is not None or one != own.agent_id]
        if not others:
            return await super(AsyncReadingMemory, own).recall(query, limit, **options)
        options["tags"] = tuple(options.get("tags", ()))
        if own.session_id is None:
            found = await self._client.recall_across([own.agent_id, *others], query, limit, **options)
            return best(found.values(), limit)
        hits = await super(AsyncReadingMemory, own).recall(query, limit, **options)
        found = await self._client.recall_across(others, query, limit, **options)
        return best([hits, *found.values()], limit)

    update_wrapper(recall, AsyncAgentMemory.recall)  # its docstring, and the parameters that inspect shows


def recall_beside(memory: AgentMemory, read_from: Sequence[str], query: str, limit: int) -> list[Hit]:
    """Recall from a blocking memory and, beside it, from the agents in `read_from`, by the same rules."""
    agent_id, session_id = memory.agent_id, memory.session_id
    others = [one for one in read_from if session_id is not None or one != agent_id]
    if not others:
        return memory.recall(query, limit)
    if session_id is None:
        return best(memory.client.recall_across([agent_id, *others], query, limit).values(), limit)
    return best([memory.recall(query, limit), *memory.client.recall_across(others, query, limit).values()], limit)


def best(found: Iterable[Iterable[Hit]], limit: int) -> list[Hit]:
    """Merge answers by similarity, each memory once; among equals the earlier answer goes first."""
    once = {(hit.memory.agent_id, hit.memory.id): hit for hits in found for hit in hits}
    return sorted(once.values(), key=lambda hit: -hit.similarity)[:limit]
