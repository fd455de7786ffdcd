"""AgentMemory and AsyncAgentMemory: a client bound to one agent, and to one session of it if given."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pydantic import JsonValue

from kronmem.core import inputs
from kronmem.errors import InvalidInputError
from kronmem.models import Hit, Memory, Session
from kronmem.state import AsyncState, State

if TYPE_CHECKING:
    from kronmem.async_client import AsyncClient
    from kronmem.client import Client


class _Bound:
    """Which agent, which session. A call may name a session only where none is bound."""

    def __init__(self, agent_id: str, session_id: str | None) -> None:
        self.agent_id = inputs.identifier(agent_id, "agent_id")
        self.session_id = inputs.session(session_id)

    def within(self, session_id: str | None) -> str | None:
        if self.session_id is not None and session_id not in (None, self.session_id):
            raise InvalidInputError("this memory is bound to another session")
        return session_id if self.session_id is None else self.session_id


class AgentMemory:
    """The memory of one agent. The same `agent_id` means the same memory, whoever holds it."""

    def __init__(self, client: Client, agent_id: str, *, session_id: str | None = None) -> None:
        self._client = client
        self._bound = _Bound(agent_id, session_id)

    @property
    def agent_id(self) -> str:
        """Whose memory this is."""
        return self._bound.agent_id

    @property
    def session_id(self) -> str | None:
        """The session that everything is limited to, if any."""
        return self._bound.session_id

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.agent_id!r}, session_id={self.session_id!r})"

    def with_timeout(self, timeout: float) -> AgentMemory:
        """The same memory with another deadline."""
        other = copy.copy(self)
        other._client = self._client.with_timeout(timeout)
        return other

    def remember(
        self,
        content: str,
        memory_type: str = "fact",
        *,
        session_id: str | None = None,
        ttl_days: int | None = None,
        ttl_seconds: int | None = None,
        pinned: bool = False,
        tags: Iterable[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        memory_id: str | None = None,
    ) -> Memory:
        """Store one memory; see `Client.remember`."""
        return self._client.remember(
            self.agent_id,
            content,
            memory_type,
            session_id=self._bound.within(session_id),
            ttl_days=ttl_days,
            ttl_seconds=ttl_seconds,
            pinned=pinned,
            tags=tags,
            metadata=metadata,
            memory_id=memory_id,
        )

    def remember_later(
        self,
        content: str,
        memory_type: str = "fact",
        *,
        session_id: str | None = None,
        ttl_days: int | None = None,
        ttl_seconds: int | None = None,
        pinned: bool = False,
        tags: Iterable[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        memory_id: str | None = None,
    ) -> str:
        """Store one memory without waiting for the service; see `Client.remember_later`."""
        return self._client.remember_later(
            self.agent_id,
            content,
            memory_type,
            session_id=self._bound.within(session_id),
            ttl_days=ttl_days,
            ttl_seconds=ttl_seconds,
            pinned=pinned,
            tags=tags,
            metadata=metadata,
            memory_id=memory_id,
        )

    def remember_many(
        self,
        contents: Iterable[str],
        memory_type: str = "fact",
        *,
        session_id: str | None = None,
        ttl_days: int | None = None,
        ttl_seconds: int | None = None,
        pinned: bool = False,
        tags: Iterable[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> list[Memory]:
        """Store many memories in order; see `Client.remember_many`."""
        return self._client.remember_many(
            self.agent_id,
            contents,
            memory_type,
            session_id=self._bound.within(session_id),
            ttl_days=ttl_days,
            ttl_seconds=ttl_seconds,
            pinned=pinned,
            tags=tags,
            metadata=metadata,
        )

    def recall(
        self,
        query: str,
        limit: int = 5,
        *,
        memory_type: str | None = None,
        session_id: str | None = None,
        tags: Iterable[str] = (),
        threshold: float | None = None,
    ) -> list[Hit]:
        """Find the memories closest in meaning to `query`, best first; see `Client.recall`."""
        return self._client.recall(
            self.agent_id,
            query,
            limit,
            memory_type=memory_type,
            session_id=self._bound.within(session_id),
            tags=tags,
            threshold=threshold,
        )

    def recall_many(
        self,
        queries: Iterable[str],
        limit: int = 5,
        *,
        concurrency: int = 32,
        memory_type: str | None = None,
        session_id: str | None = None,
        tags: Iterable[str] = (),
        threshold: float | None = None,
    ) -> list[list[Hit]]:
        """Ask many questions at once; see `Client.recall_many`."""
        return self._client.recall_many(
            self.agent_id,
            queries,
            limit,
            concurrency=concurrency,
            memory_type=memory_type,
            session_id=self._bound.within(session_id),
            tags=tags,
            threshold=threshold,
        )

    def inject_context(
        self,
        query: str = "general context",
        limit: int = 8,
        *,
        memory_type: str | None = None,
        session_id: str | None = None,
        tags: Iterable[str] = (),
        max_chars: int | None = None,
    ) -> str:
        """Make a block of text for a prompt; see `Client.inject_context`."""
        return self._client.inject_context(
            self.agent_id,
            query,
            limit,
            memory_type=memory_type,
            session_id=self._bound.within(session_id),
            tags=tags,
            max_chars=max_chars,
        )

    def memories(
        self, *, memory_type: str | None = None, session_id: str | None = None, tags: Iterable[str] = ()
    ) -> Iterator[Memory]:
        """Walk through all memories, newest first, a page at a time."""
        return self._client.memories(
            self.agent_id, memory_type=memory_type, session_id=self._bound.within(session_id), tags=tags
        )

    def forget(self, memory_id: str) -> None:
        """Delete one memory; `NotFoundError` when there is none of that id."""
        return self._client.forget(self.agent_id, memory_id)

    def clear(self, *, session_id: str | None = None) -> int:
        """Delete all memories of the agent, or of the session; the answer is how many there were."""
        return self._client.clear(self.agent_id, session_id=self._bound.within(session_id))

    def state(self) -> State:
        """Key–value data of this agent."""
        return self._client.state(self.agent_id)

    def sessions(self) -> list[Session]:
        """List the sessions with the number of their memories; a bound session sees only itself."""
        found = self._client.sessions(self.agent_id)
        return [one for one in found if self.session_id in (None, one.session_id)]


class AsyncAgentMemory:
    """The memory of one agent. The same `agent_id` means the same memory, whoever holds it."""

    def __init__(self, client: AsyncClient, agent_id: str, *, session_id: str | None = None) -> None:
        self._client = client
        self._bound = _Bound(agent_id, session_id)

    @property
    def agent_id(self) -> str:
        """Whose memory this is."""
        return self._bound.agent_id

    @property
    def session_id(self) -> str | None:
        """The session that everything is limited to, if any."""
        return self._bound.session_id

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.agent_id!r}, session_id={self.session_id!r})"

    def with_timeout(self, timeout: float) -> AsyncAgentMemory:
        """The same memory with another deadline."""
        other = copy.copy(self)
        other._client = self._client.with_timeout(timeout)
        return other

    async def remember(
        self,
        content: str,
        memory_type: str = "fact",
        *,
        session_id: str | None = None,
        ttl_days: int | None = None,
        ttl_seconds: int | None = None,
        pinned: bool = False,
        tags: Iterable[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        memory_id: str | None = None,
    ) -> Memory:
        """Store one memory; see `Client.remember`."""
        return await self._client.remember(
            self.agent_id,
            content,
            memory_type,
            session_id=self._bound.within(session_id),
            ttl_days=ttl_days,
            ttl_seconds=ttl_seconds,
            pinned=pinned,
            tags=tags,
            metadata=metadata,
            memory_id=memory_id,
        )

    async def remember_later(
        self,
        content: str,
        memory_type: str = "fact",
        *,
        session_id: str | None = None,
        ttl_days: int | None = None,
        ttl_seconds: int | None = None,
        pinned: bool = False,
        tags: Iterable[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        memory_id: str | None = None,
    ) -> str:
        """Store one memory without waiting for the service; see `Client.remember_later`."""
        return await self._client.remember_later(
            self.agent_id,
            content,
            memory_type,
            session_id=self._bound.within(session_id),
            ttl_days=ttl_days,
            ttl_seconds=ttl_seconds,
            pinned=pinned,
            tags=tags,
            metadata=metadata,
            memory_id=memory_id,
        )

    async def remember_many(
        self,
        contents: Iterable[str],
        memory_type: str = "fact",
        *,
        session_id: str | None = None,
        ttl_days: int | None = None,
        ttl_seconds: int | None = None,
        pinned: bool = False,
        tags: Iterable[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> list[Memory]:
        """Store many memories in order; see `Client.remember_many`."""
        return await self._client.remember_many(
            self.agent_id,
            contents,
            memory_type,
            session_id=self._bound.within(session_id),
            ttl_days=ttl_days,
            ttl_seconds=ttl_seconds,
            pinned=pinned,
            tags=tags,
            metadata=metadata,
        )

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
        """Find the memories closest in meaning to `query`, best first; see `Client.recall`."""
        return await self._client.recall(
            self.agent_id,
            query,
            limit,
            memory_type=memory_type,
            session_id=self._bound.within(session_id),
            tags=tags,
            threshold=threshold,
        )

    async def recall_many(
        self,
        queries: Iterable[str],
        limit: int = 5,
        *,
        concurrency: int = 32,
        memory_type: str | None = None,
        session_id: str | None = None,
        tags: Iterable[str] = (),
        threshold: float | None = None,
    ) -> list[list[Hit]]:
        """Ask many questions at once; see `Client.recall_many`."""
        return await self._client.recall_many(
            self.agent_id,
            queries,
            limit,
            concurrency=concurrency,
            memory_type=memory_type,
            session_id=self._bound.within(session_id),
            tags=tags,
            threshold=threshold,
        )

    async def inject_context(
        self,
        query: str = "general context",
        limit: int = 8,
        *,
        memory_type: str | None = None,
        session_id: str | None = None,
        tags: Iterable[str] = (),
        max_chars: int | None = None,
    ) -> str:
        """Make a block of text for a prompt; see `Client.inject_context`."""
        return await self._client.inject_context(
            self.agent_id,
            query,
            limit,
            memory_type=memory_type,
            session_id=self._bound.within(session_id),
            tags=tags,
            max_chars=max_chars,
        )

    def memories(
        self, *, memory_type: str | None = None, session_id: str | None = None, tags: Iterable[str] = ()
    ) -> AsyncIterator[Memory]:
        """Walk through all memories, newest first, a page at a time."""
        return self._client.memories(
            self.agent_id, memory_type=memory_type, session_id=self._bound.within(session_id), tags=tags
        )

    async def forget(self, memory_id: str) -> None:
        """Delete one memory; `NotFoundError` when there is none of that id."""
        return await self._client.forget(self.agent_id, memory_id)

    async def clear(self, *, session_id: str | None = None) -> int:
        """Delete all memories of the agent, or of the session; the answer is how many there were."""
        return await self._client.clear(self.agent_id, session_id=self._bound.within(session_id))

    def state(self) -> AsyncState:
        """Key–value data of this agent."""
        return self._client.state(self.agent_id)

    async def sessions(self) -> list[Session]:
        """List the sessions with the number of their memories; a bound session sees only itself."""
        found = await self._client.sessions(self.agent_id)
        return [one for one in found if self.session_id in (None, one.session_id)]
