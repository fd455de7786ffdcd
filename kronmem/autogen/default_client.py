"""One client for the default store of this process, however many agents use it."""

from __future__ import annotations

import threading

from kronmem import Client

_lock = threading.Lock()
_shared: dict[object, tuple[Client, int]] = {}
"""By the identity of the store: the client, and how many agents have not closed it."""


def take_client() -> Client:
    """The client of the default store, made at the first call; opens nothing."""
    made = Client()
    with _lock:
        client, users = _shared.get(made.store, (made, 0))
        if client.closed:  # by somebody who took it for their own
            client, users = made, 0
        _shared[made.store] = (client, users + 1)
        return client


def give_back(client: Client) -> None:
    """Close the client when nobody uses it any more."""
    with _lock:
        shared, users = _shared.get(client.store, (None, 0))
        if shared is client:
            if users > 1:
                _shared[client.store] = (client, users - 1)
                return
            del _shared[client.store]
    client.close()
