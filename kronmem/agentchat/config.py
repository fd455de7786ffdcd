"""The config of a dumped memory: its arguments, and the variable that holds the key; never a key, never a password."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from kronmem.packs.capture import CaptureWord
from kronmem.packs.dumped_config import KeyVariable


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
    capture: CaptureWord = False
    api_key_env: KeyVariable | None = None


class ToolConfig(KronMemoryConfig):
    """A memory and the prefix of the tool's name."""

    prefix: str = ""
