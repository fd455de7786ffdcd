"""Runs the web app with uvicorn until a signal stops it."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kronmem.errors import ConfigError
from kronmem.settings import is_loopback
from kronmem.transport.local import postgres_service, sqlite_service

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

    from kronmem.engine.service import Service
    from kronmem.server.api_keys import KeysFile

GRACE = 10
"""Seconds that accepted requests have to finish after SIGTERM: as long as one may wait for the store. A body that
trickles in is not waited for any longer."""


def run(
    host: str,
    port: int,
    path: str,
    keys: Mapping[str, str] | KeysFile | None = None,
    *,
    allow_hosts: Iterable[str] = (),
    open_metrics: bool = False,
    json_log: bool = False,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the file or postgresql:// url at `path`; returns after SIGINT or SIGTERM, with accepted writes finished.

    `keys` maps each key to its owner; without any, only loopback is served. `open_metrics` serves /metrics without one,
    `json_log` writes the access log as JSON, `ready` receives the url.
    """
    import uvicorn

    from kronmem.server.app import create_app
    from kronmem.server.guard import Hosts, log_as_json, log_as_text

    if not keys and not is_loopback(host):
        where = host or "all interfaces"
        raise ConfigError(
            f"refusing to serve {where} without a key: others could read everything. Set KRONMEM_SERVE_KEYS=name:key "
            "in the environment, or pass --key"
        )
    service = _open(path)
    try:
        log = log_as_json if json_log else log_as_text
        app = create_app(service, keys, Hosts(host, allow_hosts), open_metrics=open_metrics, log_request=log)
        server = uvicorn.Server(_config(app))
        with _listening(host, port) as door, _stopped_by_signals(server):
            if ready:
                ready(_url(host, door))
            server.run(sockets=[door])
    finally:
        service.close()


def _open(path: str) -> Service:
    return postgres_service(path) if path.startswith(("postgresql://", "postgres://")) else sqlite_service(path)


def _config(app: ASGIApp) -> uvicorn.Config:
    import uvicorn

    from kronmem.server.connection_limit import MOST, BoundedProtocol

    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        log_config=None,
        access_log=False,  # the guard writes one, without queries
        server_header=False,
        proxy_headers="FORWARDED_ALLOW_IPS" in os.environ,  # whose X-Forwarded-For names the sender; uvicorn reads it
        limit_concurrency=2 * MOST,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=GRACE,
    )


@contextmanager
def _listening(host: str, port: int) -> Generator[socket.socket, None, None]:
    with _socket(host, port) as door:
        try:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind((host, port))
            door.listen(1024)
        except OSError as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        yield door


def _socket(host: str, port: int) -> socket.socket:
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:  # a name with an empty part, or one too long
        raise ConfigError(f"{host} is no address of this machine") from error
    # TCP by name: asyncio switches Nagle's delay off only for sockets that say so.
    return socket.socket(addresses[0][0], socket.SOCK_STREAM, socket.IPPROTO_TCP)


def _url(host: str, door: socket.socket) -> str:
    port = door.getsockname()[1]
    name = "127.0.0.1" if host in ("", "0.0.0.0", "::") else host
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Generator[None, None, None]:
    """uvicorn handles signals only while it runs, and raises them again: the database would stay open."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
