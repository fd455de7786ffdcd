"""Loads the embedded engine before a deadline begins: the first recall of a process does not spend it on imports."""

from __future__ import annotations

import sys
import threading
import weakref
from contextlib import suppress
from importlib import import_module

from anyio import to_thread

from kronmem.agent_memory import AgentMemory
from kronmem.async_agent_memory import AsyncAgentMemory
from kronmem.async_client import AsyncClient
from kronmem.client import Client
from kronmem.core import calls
from kronmem.core.filters import MemoryFilter
from kronmem.transport.local import LocalTransport

_ENGINE = "kronmem.engine.sqlite.store"  # the store imports the rest of the engine, or the service below does
_MODULES = (_ENGINE, "kronmem.engine.engine", "kronmem.engine.service")
_warmed: weakref.WeakSet[Client | AsyncClient] = weakref.WeakSet()
_NOBODY = "kronmem-warm-up"
MOST_SECONDS = 60.0
"""For a store of any size: nobody waits for it."""


def is_cold(client: Client | AsyncClient) -> bool:
    """Tell whether a call of this client would have to import the engine first."""
    return client.in_process and any(name not in sys.modules for name in _MODULES)


def load_engine() -> None:
    """Import the engine; takes as long as it takes, and opens nothing."""
    for name in _MODULES:
        import_module(name)


async def load_engine_for(client: Client | AsyncClient) -> None:
    """Import the engine in another thread, if a call of this client would have to import it first."""
    if is_cold(client):
        await to_thread.run_sync(load_engine)


def warm_up(memory: AgentMemory | AsyncAgentMemory) -> None:
    """Open the store and load its index in the background, once for each client. A service is not asked anything.

    For hooks: a constructor and an import do not call it.
    """
    client = memory.client
    if client.in_process and client not in _warmed:
        _warmed.add(client)
        agent_id = memory.agent_id if memory.fixed else _NOBODY
        threading.Thread(target=_warm, args=(client, agent_id), name="kronmem-warm-up", daemon=True).start()


def _warm(client: Client | AsyncClient, agent_id: str) -> None:
    # Past the calls of the client: this one is no user's, so it is not traced, and an AsyncClient has no loop here.
    transport = client._transport  # pyright: ignore[reportPrivateUsage] -- the same engine behind both clients
    asked = calls.recall(agent_id, "warm up", 1, MemoryFilter(), None, most=1, count_access=False)
    with suppress(Exception):  # the first call of the user's will say so
        if isinstance(transport, LocalTransport):
            transport.send(asked.request(MOST_SECONDS, agent_id))
