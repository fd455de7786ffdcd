"""The rules of the recorded server that are no HTTP: what breaks it, what it folds, filters and shows."""

from __future__ import annotations

import fnmatch
import math
from collections import Counter
from datetime import datetime
from typing import Any

from tests.services.http import Refused
from tests.services.rows import Agent, Row, confidence, similarity, stamp


def broken() -> Refused:
    """The 500 of an unhandled exception, after which the connection is dead."""
    cross_origin = {"access-control-allow-origin": "https://kronvex.io"}
    return Refused(500, "An internal error occurred. Please try again or contact support.", cross_origin, doom=True)


def refuse_poison(value: Any) -> None:
    """Break as the database does: on NUL, on a lone surrogate, on a session id it has no room for."""
    if isinstance(value, dict):
        if len(value.get("session_id") or "") > 255:
            raise broken()
        value = [*value.keys(), *value.values()]
    if isinstance(value, list):
        for inner in value:
            refuse_poison(inner)
    elif isinstance(value, str) and any(char == "\0" or "\ud800" <= char <= "\udfff" for char in value):
        raise broken()


def embeddable(text: str, *, tokens: bool = True) -> bool:
    """Whether the embedding service takes a text: not blank, not too long, not told to fail."""
    length = token_count(text) if tokens else len(text.split())
    return bool(text.strip()) and length <= 8192 and "FAKE_EMBED_FAIL" not in text


def token_count(text: str) -> int:
    """About as many tokens as an embedding model sees: four Latin letters are one, every other letter is one."""
    plain = sum(char < "\u0250" for char in text)
    return math.ceil(plain / 4) + len(text) - plain


def unembeddable() -> Refused:
    """The 503 for any text that was not embedded, whatever the reason."""
    message = "Embedding service temporarily unavailable. Please retry."
    return Refused(503, {"error": "embedding_unavailable", "message": message})


def likeness(agent: Agent, values: dict[str, Any], now: datetime, habits: frozenset[str]) -> Row | None:
    """The row that a text is folded into, deleted ones aside."""
    rows = agent.kept()
    if "folds into dead rows" not in habits:
        rows = [row for row in agent.live(now) if not row.superseded_by]
    if "folds across sessions" not in habits:
        rows = [row for row in rows if row.session_id == values["session_id"]]
    return next((row for row in rows if similarity(row.content, values["content"]) >= 0.95), None)


def classify(values: dict[str, Any]) -> str:
    """The stored type: the server's model looks at every unpinned episodic memory."""
    kind, content = str(values["memory_type"]), values["content"]
    if kind != "episodic" or values["pinned"]:
        return kind
    if "prefers" in content:
        return "preference"
    return "procedure" if content.startswith("To ") else kind


def supersede(agent: Agent, new: Row, habits: frozenset[str]) -> int:
    """Bury up to five older memories that say nearly the same; pinned ones stay."""
    rivals = [row for row in agent.kept() if not row.pinned and not row.superseded_by]
    if "supersedes across sessions" not in habits:
        rivals = [row for row in rivals if row.session_id == new.session_id]
    near = [row for row in rivals if similarity(row.content, new.content) >= 0.72]
    near = sorted(near, key=lambda row: -similarity(row.content, new.content))[:5]
    for row in near:
        row.superseded_by = new.id
    return len(near)


def consolidate(agent: Agent, now: datetime) -> None:
    """Merge unpinned rows that say nearly the same, superseded ones too, into a row without session and metadata."""
    left = [row for row in agent.kept() if not row.pinned]
    while left:
        first, *others = left
        like = [row for row in others if similarity(first.content, row.content) >= 0.82]
        left = [row for row in others if row not in like]
        if like:
            merged = [first, *like]
            for row in merged:
                row.deleted = True
            text = "MERGED: " + " / ".join(row.content for row in merged)
            count = len(merged)
            agent.rows.append(Row(agent.id, text, now, first.memory_type, consolidation_count=count))


def fits(row: Row, values: dict[str, Any]) -> bool:
    """Whether a row passes the filters of a recall; an empty session is no filter."""
    session, kind = values.get("session_id"), values.get("memory_type")
    return (not session or row.session_id == session) and (not kind or row.memory_type == kind)


def listed(row: Row, values: dict[str, Any]) -> bool:
    """Whether a row passes the filters of a listing; `%` and `_` in a search are wildcards."""
    kind, search = values["memory_type"], values["search"]
    glob = "*" + (search or "").lower().replace("%", "*").replace("_", "?") + "*"
    return (not kind or row.memory_type == kind) and fnmatch.fnmatchcase(row.content.lower(), glob)


def session_counts(rows: list[Row]) -> list[dict[str, Any]]:
    """The sessions of these rows and their sizes, the latest used first."""
    counts = Counter(row.session_id for row in reversed(rows) if row.session_id is not None)
    return [{"session_id": name, "count": count} for name, count in counts.items()]


def hit(row: Row, score: float, now: datetime) -> dict[str, Any]:
    """A memory with its scores; being found counts as an access."""
    row.access_count += 1
    return {"memory": memory_json(row), "similarity": score, "confidence": confidence(row, score, now)}


def memory_json(row: Row) -> dict[str, Any]:
    """A memory as the API shows it."""
    return {
        "id": row.id,
        "agent_id": row.agent_id,
        "content": row.content,
        "session_id": row.session_id,
        "memory_type": row.memory_type,
        "metadata": row.metadata,
        "created_at": stamp(row.created_at),
        "access_count": row.access_count,
        "expires_at": stamp(row.expires_at),
        "pinned": row.pinned,
        "agent_memory_count": None,
        "deduplicated": False,
        "superseded": row.superseded_by is not None,
        "superseded_by": row.superseded_by,
        "conflict_detected": False,
        "conflicts_resolved": 0,
        "is_meta": row.consolidation_count > 0,
        "consolidation_count": row.consolidation_count,
        "user_id": None,
    }
