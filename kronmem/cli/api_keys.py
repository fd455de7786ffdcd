"""Which key the command sends where."""

from __future__ import annotations

import os


def key_for(url: str | None) -> str | None:
    """The key in KRONMEM_API_KEY for a service named on the command line; None leaves the choice to the client."""
    chosen = url is not None and url.startswith(("http://", "https://")) and not os.environ.get("KRONMEM_URL")
    return os.environ.get("KRONMEM_API_KEY") or None if chosen else None
