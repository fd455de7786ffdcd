"""Our own service in a thread of this process: its spans and its counters can be looked at."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import uvicorn

from kronmem.engine.service import Service
from kronmem.server.app import create_app
from kronmem.transport.local import sqlite_service


@contextmanager
def served_in_process(
    keys: Mapping[str, str] | None = None,
    service: Service | None = None,
    around: Callable[[Any], Any] = lambda app: app,
    **options: Any,
) -> Iterator[str]:
    """The url of a service on loopback, with a store in memory unless one is given."""
    own = service or sqlite_service(":memory:")
    app = around(create_app(own, keys, **options))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, log_level="error"))
    # TCP by name: asyncio switches Nagle's delay off only for sockets that say so.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
            own.close()
