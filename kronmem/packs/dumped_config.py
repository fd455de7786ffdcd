"""The part of a dumped config that says where a memory is: never a key, never a password."""

from __future__ import annotations

import os
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

from kronmem.errors import ConfigError
from kronmem.settings import resolve

KeyVariable = Literal["KRONMEM_API_KEY", "KRONVEX_API_KEY"]


def dumpable_url(url: str | None) -> str | None:
    """Accept a url that anybody may read and any process may open."""
    if url is None:
        return None
    parts = urlsplit(url)
    asked = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if "@" in parts.netloc or any("password" in name for name in asked):
        raise ConfigError(
            "the url holds a user or password, which must not be written to a config: "
            "leave url= out and set KRONMEM_URL in the environment of every process"
        )
    if resolve(url, None).path == ":memory:":
        raise ConfigError("an in-memory database cannot be named in a config: use sqlite:///file.db or a service")
    return url


def key_variable(url: str | None) -> KeyVariable | None:
    """The variable that the key for this url comes from, if there is one."""
    key = resolve(url, None).key
    if key is None:
        return None
    return "KRONMEM_API_KEY" if os.environ.get("KRONMEM_API_KEY") == key.get_secret_value() else "KRONVEX_API_KEY"


def check_key(url: str | None, variable: KeyVariable | None) -> None:
    """Refuse to go on with another store than the one that was dumped because its key is not here."""
    # The key is found by the rules of every client, never by the name in the config: a config from elsewhere could
    # otherwise send any variable to any url.
    if variable is not None and resolve(url, None).key is None:
        also = " and KRONMEM_URL" if variable == "KRONMEM_API_KEY" else ""
        raise ConfigError(f"this memory was dumped with a key: set {variable}{also} in the environment")
