"""What a dumped memory says: where and whose, and by which variable the key comes; never a key, never a password."""

from __future__ import annotations

import os
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field

from kronmem import ConfigError
from kronmem.settings import resolve

KeyVariable = Literal["KRONMEM_API_KEY", "KRONVEX_API_KEY"]


class KronMemoryConfig(BaseModel):
    """The arguments of a `KronMemory`, and the environment variable that holds the key where one is needed."""

    # A misspelt field would widen the scope in silence, so it is refused; and a key that somebody wrote into a
    # config by hand must not be shown by that very refusal.
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    agent_id: str
    url: str | None = None
    session_id: str | None = None
    read_from: list[str] = Field(default_factory=list[str])
    limit: int = 5
    threshold: float | None = None
    timeout: float = 2.0
    api_key_env: KeyVariable | None = None


class ToolConfig(KronMemoryConfig):
    """A memory and what stands in front of the tool's name."""

    prefix: str = ""


def dumpable(url: str | None) -> str | None:
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


def check_key(config: KronMemoryConfig) -> None:
    """Refuse to go on with another store than the one that was dumped because its key is not here."""
    # The key is found by the rules of every client, never by the name in the config: a config from elsewhere could
    # otherwise send any variable to any url.
    if config.api_key_env is not None and resolve(config.url, None).key is None:
        also = " and KRONMEM_URL" if config.api_key_env == "KRONMEM_API_KEY" else ""
        raise ConfigError(f"this memory was dumped with a key: set {config.api_key_env}{also} in the environment")
