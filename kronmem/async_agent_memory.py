"""AsyncAgentMemory: AsyncClient bound to one agent, and to one session of it if given."""

from __future__ import annotations

from kronmem.async_client import AsyncClient
from kronmem.async_state import AsyncState
from kronmem.models import Session
from kronmem.scope import Scope, bind, bind_async


class AsyncAgentMemory(Scope[AsyncClient]):
    """The memory of one agent. The same `agent_id` means the same memory, in every process.

    Two of them are equal when agent, session and store are the same.
    """

    _takes = AsyncClient
    remember = bind_async(AsyncClient.remember)
    remember_later = bind_async(AsyncClient.remember_later)
    remember_many = bind_async(AsyncClient.remember_many)
    recall = bind_async(AsyncClient.recall)
    recall_many = bind_async(AsyncClient.recall_many)
    inject_context = bind_async(AsyncClient.inject_context)
    memories = bind(AsyncClient.memories)
    get = bind_async(AsyncClient.get)
    update = bind_async(AsyncClient.update)
    history = bind_async(AsyncClient.history)
    forget = bind_async(AsyncClient.forget)
    clear = bind_async(AsyncClient.clear)
    erase = bind_async(AsyncClient.erase)
    restore = bind_async(AsyncClient.restore)

    def state(self) -> AsyncState:
        """Key–value data of this agent."""
        return self._client.state(self.agent_id)

    async def sessions(self) -> list[Session]:
        """List the sessions with the number of their memories; a bound session sees only itself."""
        bound = self.session_id
        return [one for one in await self._client.sessions(self.agent_id) if bound in (None, one.session_id)]
