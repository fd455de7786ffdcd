"""LazyMemory: the memory behind a pack's `agent_id=, url=, client=` arguments, opened when it is first used."""

from __future__ import annotations

from collections.abc import Iterable

from kronmem import settings
from kronmem.async_client import AsyncClient
from kronmem.core import inputs
from kronmem.errors import ConfigError
from kronmem.packs.checks import check_agent_id, check_read_from
from kronmem.packs.read_from import AsyncReadingMemory
from kronmem.packs.tool_descriptions import ToolCoroutine
from kronmem.scope import AgentId, SessionId
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
        settings.resolve(url, None)  # a bad url or a missing key is told here, not by a log line in the middle of a run
    elif url is not None:
        raise ConfigError("pass url= or client=, not both")
    elif not isinstance(client, AsyncClient):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise ConfigError("client must be an AsyncClient")
