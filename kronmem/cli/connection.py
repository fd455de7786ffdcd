"""The client of one command."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager

from kronmem import Client
from kronmem.cli import errors
from kronmem.cli.api_keys import key_for
from kronmem.cli.printing import note


@contextmanager
def connected(url: str | None, *, outbox: bool = True) -> Generator[Client, None, None]:
    """A client for one command. A key in KRONMEM_API_KEY goes to `url` when no KRONMEM_URL says otherwise."""
    with errors.told(url):
        with warnings.catch_warnings(record=True) as raised:
            client = Client(url, api_key=key_for(url), outbox=None if outbox else False)
        for warning in raised:
            note(f"kronmem: warning: {warning.message}")
        with client:
            yield client
