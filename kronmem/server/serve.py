"""Runs the web app with uvicorn until it is told to stop."""

from __future__ import annotations

from collections.abc import Mapping

from kronmem.transport.local import sqlite_service


def run(host: str, port: int, path: str, keys: Mapping[str, str] | None = None) -> None:
    """Serve the database at `path` on a socket; returns after SIGINT or SIGTERM, with accepted writes finished."""
    import uvicorn

    from kronmem.server.app import create_app

    service = sqlite_service(path)
    try:
        uvicorn.run(create_app(service, keys), host=host, port=port, log_level="warning", access_log=False)
    finally:
        service.close()
