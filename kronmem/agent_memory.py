"""AgentMemory: Client bound to one agent, and to one session of it if given.

This file is generated from async_agent_memory.py by .ci/blocking_faces.py: change that one.
"""

from __future__ import annotations

from kronmem.client import Client
from kronmem.models import Session
from kronmem.scope import Scope, bind
from kronmem.state import State


class AgentMemory(Scope[Client]):
    """The memory of one agent. The same `agent_id` means the same memory, in every process.

    Two of them are equal when agent, session and store are the same.
    """

    _takes = Client
    remember = bind(Client.remember)
    remember_later = bind(Client.remember_later)
    remember_many = bind(Client.remember_many)
    recall = bind(Client.recall)
    recall_many = bind(Client.recall_many)
    inject_context = bind(Client.inject_context)
    memories = bind(Client.memories)
    get = bind(Client.get)
    update = bind(Client.update)
    history = bind(Client.history)
    forget = bind(Client.forget)
    clear = bind(Client.clear)
    erase = bind(Client.erase)
    restore = bind(Client.restore)

    def state(self) -> State:
        """Key–value data of this agent."""
        return self._client.state(self.agent_id)

    def sessions(self) -> list[Session]:
        """List the sessions with the number of their memories; a bound session sees only itself."""
        bound = self.session_id
        return [one for one in self._client.sessions(self.agent_id) if bound in (None, one.session_id)]
