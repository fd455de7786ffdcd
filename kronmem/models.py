"""The models of replies: frozen, and they keep fields they do not know."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

Fill = bool | Literal["profile"]
"""The filling around the hits of a question: none, all that fills a context up, or the standing notes."""


class _Model(BaseModel):
    # A newer service may say more than this version knows: keep it, do not refuse it.
    model_config = ConfigDict(frozen=True, extra="allow")


class Memory(_Model):
    """One remembered text with its metadata."""

    id: str
    agent_id: str
    content: str
    memory_type: str = "fact"
    session_id: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None
    """When anything about it last changed; None if it never did."""
    said_at: datetime | None = None
    """When its present text was stated: decides which of two memories under one key is the newer."""
    expires_at: datetime | None = None
    pinned: bool = False
    role: str | None = None
    """The speaker: "user", "assistant", "tool", or None."""
    key: str | None = None
    """The subject it is about: a later memory of the same key takes its place."""
    superseded_by: str | None = None
    """The id of the memory that took its place; None for a current one."""
    access_count: int = 0
    deduplicated: bool = False
    may_replace: tuple[Memory, ...] = ()
    """Former statements that this one may replace; filled by a `remember` that asks for it."""
    queued: bool = False
    """True: on disk in the outbox, not yet at the service, so not yet recalled."""


class Explanation(_Model):
    """The parts of a hit's similarity: `(words + meaning) × speaker`, at most 1, rounded to four digits."""

    words: float
    """How well the words of its best passage fit the question, lifted by memories next to it that fit too."""
    meaning: float
    """How close in meaning its closest passage is, times the weight left to it by the words."""
    speaker: float
    """1 for a statement; less for an assistant's or a tool's words and for a bare question."""


class Hit(_Model):
    """A memory that was recalled, with its scores from 0 to 1."""

    memory: Memory
    similarity: float = 0.0
    confidence: float = 0.0
    excerpt: str = ""
    """The passage of a long memory that answers, about 60 words; the whole text of a short one."""

    filled: bool = False
    """True: nothing about it fits the question; it fills a context up."""

    standing: bool = False
    """True: pinned, or a preference, and shown beside any question (`fill="profile"`); or part of a profile."""

    earlier: bool = False
    """True: a later memory about the same thing stands directly before this one."""

    explanation: Explanation | None = None
    """The parts that `similarity` is made of; None if it fills a context up, or if the service does not tell."""

    @property
    def content(self) -> str:
        """The text of the memory."""
        return self.memory.content

    if not TYPE_CHECKING:  # only the names that are not there come here

        def __getattr__(self, name: str) -> object:
            meant = {"text": "content", "score": "similarity"}.get(name)
            meant = f"memory.{name}" if name in Memory.model_fields else meant
            raise AttributeError(f"'Hit' object has no attribute {name!r}" + (f": use .{meant}" if meant else ""))


class AgentInfo(_Model):
    """An agent the service knows. `name` is the `agent_id` that you pass; Kronvex also takes `id`."""

    id: str
    name: str
    description: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    created_at: datetime | None = None
    memory_count: int = 0


class Session(_Model):
    """A session of an agent and how many memories it holds."""

    session_id: str
    count: int = 0


class Erasure(_Model):
    """The counts of one `erase`."""

    memories: int = 0
    history: int = 0
    state: int = 0
    receipts: int = 0
    queued: int = 0
    """Memories that still waited in this machine's outbox."""
    complete: bool = False
    """False: bytes of it may remain. A reader held the file: `erase` again. The service cannot erase. Or memories of it
    wait in the outbox under another key of the same service: `outbox.stranded()` lists them."""


class DeadLetter(_Model):
    """A queued memory that the service refused for good, or that is unreadable. Kept until it is retried or dropped."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    id: str
    agent_id: str
    content: str
    memory_type: str
    error: str
    queued_at: datetime
    raw: bytes | None = None
    """The row as it is on disk, when it cannot be read as a memory."""


class QueuedMemory(_Model):
    """A memory in the outbox that waits for delivery."""

    id: str
    agent_id: str
    content: str
    memory_type: str
    session_id: str | None = None
    attempts: int = 0
    error: str = ""
    """The reason why the last attempt failed; "" before the first one."""
    queued_at: datetime
    next_attempt_at: datetime | None = None
    """Not sent before this time, except by `flush`; None when nothing holds it back."""
    url: str = ""
    """The service it was queued for."""


class Health(_Model):
    """How the service answers, seen from this client."""

    ok: bool
    status: str
    service: str = ""
    version: str = ""
    breaker: str = "closed"
    """closed: calls go out; open: they fail at once; half-open: one probe is under way."""
    pending: int = 0
    """Memories waiting in the outbox."""
    stranded: int = 0
    """Memories in the outbox that were queued for this url under another key: `outbox.stranded()` lists them."""
    outbox_error: str | None = None
    """The reason why the outbox could not be read; `pending` and `stranded` are then unknown."""
    error: str | None = None
