"""The keyword arguments that a client, its scopes and its wiring share: each is named here once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TypedDict

from pydantic import JsonValue

from kronmem.models import Fill


class WriteOptions(TypedDict, total=False):
    """Everything that `remember` and its siblings take beside the text and its type."""

    session_id: str | None
    ttl_days: int | None
    ttl_seconds: int | None
    pinned: bool
    tags: Iterable[str]
    metadata: Mapping[str, JsonValue] | None
    role: str | None
    key: str | None


class ReadFilters(TypedDict, total=False):
    """The limits of a read: only memories that pass all of them are answered."""

    memory_type: str | None
    session_id: str | None
    tags: Iterable[str]
    since: datetime | str | None
    until: datetime | str | None


class RecallOptions(ReadFilters, total=False):
    """Everything that `recall` takes beside the query and the limit."""

    threshold: float | None
    count_access: bool
    exclude: Iterable[str]
    fill: Fill


class ChangeOptions(TypedDict):
    """Everything that `update` may change; None leaves as it is."""

    content: str | None
    memory_type: str | None
    tags: Iterable[str] | None
    metadata: Mapping[str, JsonValue] | None
    pinned: bool | None
    ttl_days: int | None
