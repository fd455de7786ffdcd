"""Loads the embedded engine before a deadline begins: the first recall of a process does not spend it on imports."""

from __future__ import annotations

import sys
import threading
import weakref
from contextlib import suppress
from importlib import import_module

from anyio import to_thread

from kronmem.async_client import AsyncClient
from kronmem.client import Client
from kronmem.errors import KronmemError

_ENGINE = "kronmem.engine.sqlite.store"  # the store imports the rest of the engine, or the service below does
_MODULES = (_ENGINE, "kronmem.engine.engine", "kronmem.engine.service")
_warmed: weakref.WeakSet[Client] = weakref.WeakSet()


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


def warm_up(client: Client) -> None:
    """Open the store and load its index in the background, once for each client. A service is not asked anything."""
    if client.in_process and client not in _warmed:
        _warmed.add(client)
        threading.Thread(target=_warm, args=(client,), name="kronmem-warm-up", daemon=True).start()


def _warm(client: Client) -> None:
    with suppress(KronmemError):  # the first call of the user's will say so
        client.recall("kronmem-warm-up", "warm up")  # an agent that nobody has: all is loaded, and nothing is counted
