"""The memory behind a pack's `agent_id=, url=, client=, read_from=` arguments, opened when it is first used."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import update_wrapper
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

from typing_extensions import Unpack

from kronmem import settings
from kronmem.agent_memory import AgentMemory
from kronmem.async_agent_memory import AsyncAgentMemory
from kronmem.async_client import AsyncClient
from kronmem.core import inputs
from kronmem.core.inputs import RecallOptions
from kronmem.errors import ConfigError
from kronmem.models import Hit
from kronmem.packs.block import render_block
from kronmem.packs.checks import check_agent_id, check_read_from
from kronmem.packs.toolset import ToolCoroutine
from kronmem.scope import AgentId, SessionId
from kronmem.settings import resolve
from kronmem.tools import MemoryTools, awaitable_tools


class LazyMemory:
    """One agent's memory at `url`, or through a `client` that stays open; all arguments are checked at once.

    Callable ids are asked at every call of the memory, never here. `close` releases only a client that was opened
    here, and a later use opens another.
    """

    def __init__(
        self,
        agent_id: AgentId,
        *,
        url: str | None = None,
        client: AsyncClient | None = None,
        session_id: SessionId = None,
        read_from: Iterable[str] = (),
        timeout: float = 2.0,
    ) -> None:
        _check_client(url, client)
        self.url, self.given, self.timeout = url, client, inputs.timeout(timeout)
        check_agent_id(agent_id)
        self.agent_id = agent_id if callable(agent_id) else inputs.identifier(agent_id, "agent_id")
        self.session_id = session_id if callable(session_id) else inputs.session(session_id)
        self.read_from = check_read_from(read_from, client.store if client is not None else None)
        self._opened: AsyncClient | None = None
        self._memory: AsyncReadingMemory | None = None

    def get(self) -> AsyncReadingMemory:
        """The memory; the client is made at the first call."""
        if self._memory is None:
            self._memory = AsyncReadingMemory(
                self._client(), self.agent_id, session_id=self.session_id, read_from=self.read_from
            )
        return self._memory

    def _client(self) -> AsyncClient:
        if self.given is not None:
            return self.given.with_timeout(self.timeout)
        self._opened = AsyncClient(self.url, timeout=self.timeout)
        return self._opened

    def tools(self, prefix: str = "") -> MemoryTools[ToolCoroutine]:
        """Make remember, recall and forget; the memory is looked up at each call, so they work after `close` too."""
        return awaitable_tools(self.get, str(self), prefix, self.timeout)

    def __str__(self) -> str:
        return "memory of the agent of each call" if callable(self.agent_id) else f"memory of {self.agent_id!r}"

    async def close(self) -> None:
        """Release the connections opened here."""
        client, self._opened, self._memory = self._opened, None, None
        if client is not None:
            await client.close()


def _check_client(url: str | None, client: AsyncClient | None) -> None:
    if client is None:
        settings.resolve(url, None)  # a bad url or a missing key is raised here, not logged in the middle of a run
    elif url is not None:
        raise ConfigError("pass url= or client=, not both")
    elif not isinstance(client, AsyncClient):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise ConfigError("client must be an AsyncClient")


# A memory that also reads from further agents: the scope of writes is stated apart from the scope of reads.


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
        """Write recalled hits as the injected block; with several agents each memory names its own."""
        agent_id = self.agent_id
        return render_block(hits, self.source, named=any(one != agent_id for one in self.read_from))

    async def recall(self, query: str, limit: int = 5, **options: Unpack[RecallOptions]) -> list[Hit]:
        own = self.resolved()
        others = _others(self.read_from, own)
        options["tags"], options["exclude"] = tuple(options.get("tags", ())), tuple(options.get("exclude", ()))
        if not others:
            return await super(AsyncReadingMemory, own).recall(query, limit, **options)
        if own.session_id is None and not options.get("fill"):
            across = await self._client.recall_across([own.agent_id, *others], query, limit, **options)
            return best(across.values(), limit)
        hits = await super(AsyncReadingMemory, own).recall(query, limit, **options)
        options["fill"] = False  # the profile is that of the agent's own memory
        across = await self._client.recall_across(others, query, limit, **options)
        return best([hits, *across.values()], limit)

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


def best(lists: Iterable[Iterable[Hit]], limit: int) -> list[Hit]:
    """Merge answers, each memory once: standing notes, then by similarity; among equals the earlier answer first."""
    once = {(hit.memory.agent_id, hit.memory.id): hit for hits in lists for hit in hits}
    return sorted(once.values(), key=lambda hit: (not hit.standing, 0.0 if hit.standing else -hit.similarity))[:limit]


# The part of a dumped config that says where a memory is: never a key, never a password.

KeyVariable = Literal["KRONMEM_API_KEY", "KRONVEX_API_KEY"]


def dumpable_url(url: str | None) -> str | None:
    """Accept a url without secrets that any process may open."""
    if url is None:
        return None
    parts = urlsplit(url)
    asked = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if "@" in parts.netloc or any("password" in name for name in asked):
        raise ConfigError(
            "the url holds a user or password, which must not be written to a config: "
            "leave url= out and set KRONMEM_URL in the environment of every process"
        )
    if resolve(url, None).path == ":memory:":
        raise ConfigError("an in-memory database cannot be named in a config: use sqlite:///file.db or a service")
    return url


def key_variable(url: str | None) -> KeyVariable | None:
    """The variable that the key for this url comes from, if there is one."""
    key = resolve(url, None).key
    if key is None:
        return None
    return "KRONMEM_API_KEY" if os.environ.get("KRONMEM_API_KEY") == key.get_secret_value() else "KRONVEX_API_KEY"


def check_key(url: str | None, variable: KeyVariable | None) -> None:
    """Refuse to go on with another store than the one that was dumped because its key is not here."""
    # The key is found by the rules of every client, never by the name in the config: a config from elsewhere could
    # otherwise send any variable to any url.
    if variable is not None and resolve(url, None).key is None:
        also = " and KRONMEM_URL" if variable == "KRONMEM_API_KEY" else ""
        raise ConfigError(f"this memory was dumped with a key: set {variable}{also} in the environment")
