"""A memory as a row of the outbox and back. The body is JSON; fields that this version does not know stay in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import NamedTuple

from pydantic import JsonValue, TypeAdapter, ValidationError

from kronmem.core.calls import Draft
from kronmem.models import DeadLetter, QueuedMemory

_DRAFT = TypeAdapter(Draft)
_BESIDE = frozenset({"agent_id", "client_id"})
"""Fields with a column of their own."""
COLUMNS = (
    "seq, CAST(id AS BLOB), CAST(agent AS BLOB), CAST(body AS BLOB), created, attempts, refused, cancelled,"
    " CAST(error AS BLOB), backoff, asked, service, lease, noted, holder,"
    " (SELECT CAST(traceparent AS BLOB) FROM origin WHERE origin.seq = waiting.seq)"
)
"""Texts as bytes: SQLite keeps what it is given, UTF-8 or not, and one bad row must not hide the others."""


class QueuedRow(NamedTuple):
    """A row as it is on disk."""

    seq: int
    id: bytes
    agent: bytes
    body: bytes
    created: float
    attempts: int
    refused: int
    cancelled: int
    error: bytes | None
    backoff: float
    asked: float
    service: str
    lease: float
    noted: float
    holder: str
    origin: bytes | None


class UnreadableRowError(ValueError):
    """The row is not a memory."""


@dataclass(frozen=True)
class Waiting:
    """A claimed row."""

    seq: int
    draft: Draft
    created: float
    attempts: int
    refused: int
    cancelled: bool
    lease: float = 0.0
    """When the claim ends; a later claim of the same row has another end."""
    origin: str | None = None
    """The traceparent of the span that queued it."""
    interrupted: bool = False
    """The call that sent it was given up before its answer: the service may have it."""


def encode(draft: Draft) -> str:
    """The body of a row: the fields that say something."""
    body: dict[str, JsonValue] = _DRAFT.dump_python(draft, mode="json", exclude_defaults=True)
    return json.dumps({name: value for name, value in body.items() if name not in _BESIDE}, ensure_ascii=False)


def decode(row: QueuedRow) -> Draft:
    """The memory in a row, or `UnreadableRowError` with the reason."""
    try:
        body: object = json.loads(row.body.decode())
        if not isinstance(body, dict):
            raise UnreadableRowError("the body is not a JSON object")
        return _DRAFT.validate_python({**body, "agent_id": row.agent.decode(), "client_id": row.id.decode()})
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise UnreadableRowError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except RecursionError:
        raise UnreadableRowError("the body is nested too deeply") from None
    except UnicodeDecodeError:
        raise UnreadableRowError("the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise UnreadableRowError(f"the body is not JSON ({error.msg})") from None


def is_other_text(row: QueuedRow, draft: Draft) -> bool:
    """Does the row hold another text than this memory's? One that cannot be read may be any."""
    try:
        return decode(row).content != draft.content
    except UnreadableRowError:
        return True


def waiting(row: QueuedRow, lease: float) -> Waiting:
    """A row that can be sent."""
    origin = row.origin.decode(errors="replace") if row.origin is not None else None
    return Waiting(row.seq, decode(row), row.created, row.attempts, row.refused, bool(row.cancelled), lease, origin)


def dead_letter(row: QueuedRow) -> DeadLetter:
    """The dead letter of a row; one that cannot be read comes with its bytes."""
    try:
        draft, raw = decode(row), None
    except UnreadableRowError:
        draft, raw = _shown(row), row.body
    return DeadLetter(
        id=draft.client_id,
        agent_id=draft.agent_id,
        content=draft.content,
        memory_type=draft.memory_type,
        error=(row.error or b"").decode(errors="replace"),
        queued_at=_date(row.created),
        raw=raw,
    )


def queued_memory(row: QueuedRow) -> QueuedMemory:
    """A row that waits."""
    try:
        draft = decode(row)
    except UnreadableRowError:
        draft = _shown(row)
    due = max(row.backoff, row.asked)
    return QueuedMemory(
        id=draft.client_id,
        agent_id=draft.agent_id,
        content=draft.content,
        memory_type=draft.memory_type,
        session_id=draft.session_id,
        attempts=row.attempts,
        error=(row.error or b"").decode(errors="replace"),
        queued_at=_date(row.created),
        next_attempt_at=_date(due) if due else None,
        url=row.service,
    )


def _shown(row: QueuedRow) -> Draft:
    return Draft(row.agent.decode(errors="replace"), row.id.decode(errors="replace"), row.body.decode(errors="replace"))


def _date(seconds: float) -> datetime:
    return datetime.fromtimestamp(min(max(seconds, 0.0), 253_402_300_000.0), timezone.utc)  # at most the year 9999
