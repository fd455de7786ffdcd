"""One agent's memory that also reads from further agents, and what both packs of arguments are checked by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kronmem import AsyncAgentMemory, AsyncClient, Hit, InvalidInputError


class ReadingMemory(AsyncAgentMemory):
    """Writes, forgets and clears one agent's memory; recalls from it and from the agents in `read_from`.

    A session limits the agent's own memory only: what the others know was learned elsewhere.
    """

    def __init__(
        self, client: AsyncClient, agent_id: str, *, session_id: str | None = None, read_from: Sequence[str] = ()
    ) -> None:
        super().__init__(client, agent_id, session_id=session_id)
        self._reader = client
        self._read_from = tuple(read_from)

    def with_timeout(self, timeout: float) -> ReadingMemory:
        """The same memory with another deadline."""
        client = self._reader.with_timeout(timeout)
        return ReadingMemory(client, self.agent_id, session_id=self.session_id, read_from=self._read_from)

    async def recall(
        self,
        query: str,
        limit: int = 5,
        *,
        memory_type: str | None = None,
        session_id: str | None = None,
        tags: Iterable[str] = (),
        threshold: float | None = None,
    ) -> list[Hit]:
        """Find the memories closest in meaning to `query`, best first, whoever of the agents holds them."""
        tags = tuple(tags)
        own: list[Hit] = []
        together = self.session_id is None and bool(self._read_from)
        if not together:
            own = await super().recall(
                query, limit, memory_type=memory_type, session_id=session_id, tags=tags, threshold=threshold
            )
        others = await self._reader.recall_across(
            (self.agent_id, *self._read_from) if together else self._read_from,
            query,
            limit,
            memory_type=memory_type,
            session_id=session_id,
            tags=tags,
            threshold=threshold,
        )
        return best([own, *others.values()], limit)


def best(found: Iterable[Iterable[Hit]], limit: int) -> list[Hit]:
    """Merge answers by similarity, each memory once; among equals the earlier answer goes first."""
    once = {(hit.memory.agent_id, hit.memory.id): hit for hits in found for hit in hits}
    return sorted(once.values(), key=lambda hit: -hit.similarity)[:limit]


def others(agent_id: str, session_id: str | None, read_from: Iterable[str]) -> tuple[str, ...]:
    """Check whom to read from; the agent itself is among them only to be read beyond its session."""
    if isinstance(read_from, str):
        raise InvalidInputError("read_from must be a list of agent ids, not one string")
    asked = dict.fromkeys(unopened(one).agent_id for one in read_from)
    return tuple(one for one in asked if one != agent_id or session_id is not None)


def unopened(agent_id: str, session_id: str | None = None, timeout: float = 2.0) -> AsyncAgentMemory:
    """A memory that nobody uses: making it checks the arguments, and it opens nothing."""
    return AsyncClient("sqlite://", timeout=timeout).agent(agent_id, session_id=session_id)


def check_limits(limit: int, threshold: float | None) -> None:
    """Refuse at once what every later recall would refuse: there the framework has nobody to tell."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 100:  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise InvalidInputError("limit must be a whole number from 1 to 100")
    if threshold is not None and not 0 <= threshold <= 1:
        raise InvalidInputError("threshold must be a number from 0 to 1")
