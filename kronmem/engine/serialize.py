"""Rows as replies, with the fields that both dialects of Kronvex expect. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from kronmem.api.replies import (
    AgentReply,
    ExplanationReply,
    FlatHitReply,
    HitReply,
    MemoryReply,
    ScoresReply,
    StateReply,
)
from kronmem.engine.recall import FoundRow
from kronmem.engine.scoring import Score
from kronmem.engine.store import Row, Space, StateValue

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def timestamp(seconds: float) -> str:
    """ISO 8601 in UTC with microseconds."""
    # Not fromtimestamp: it fails on some systems for times before 1970.
    return (_EPOCH + timedelta(seconds=seconds)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def memory(agent: str, row: Row, *, count: int | None = None, deduplicated: bool = False) -> MemoryReply:
    """One memory. `count`: how many the agent now has, known only after a write."""
    created_at = timestamp(row.created_at)
    return {
        "id": row.id,
        "agent_id": agent,
        "content": row.content,
        "session_id": row.session_id,
        "memory_type": row.memory_type,
        "metadata": row.metadata,
        "tags": list(row.tags),
        "created_at": created_at,
        "updated_at": None if row.updated_at is None else timestamp(row.updated_at),
        "said_at": created_at if row.said_at == row.created_at else timestamp(row.said_at),
        "access_count": row.access_count,
        "expires_at": None if row.expires_at is None else timestamp(row.expires_at),
        "pinned": row.pinned,
        "role": row.role,
        "key": row.key,
        "agent_memory_count": count,
        "deduplicated": deduplicated,
        "superseded": row.superseded_by is not None,
        "superseded_by": row.superseded_by,
        "conflict_detected": False,
        "conflicts_resolved": 0,
    }


def hit(agent: str, found: FoundRow) -> HitReply:
    """A memory with its scores around it, as the vendor's server says it."""
    return {"memory": memory(agent, found.row), **_scores(found)}


def flat_hit(agent: str, found: FoundRow) -> FlatHitReply:
    """A memory with its scores among its fields, as the vendor's tutorials say it."""
    return {**memory(agent, found.row), **_scores(found)}


def _scores(found: FoundRow) -> ScoresReply:
    return {
        "similarity": found.similarity,
        "confidence": found.confidence,
        "score": found.similarity,
        "excerpt": found.excerpt,
        "filled": found.score is None,
        "standing": found.standing,
        "earlier": found.earlier,
        "explanation": explanation(found.score),
    }


def explanation(score: Score | None) -> ExplanationReply | None:
    """The parts of a similarity; none for a memory that fills a context up."""
    return {"words": score.words, "meaning": score.meaning, "speaker": score.speaker} if score else None


def context(hits: Sequence[FoundRow]) -> str:
    """One line a memory; empty when there is none."""
    lines = [f"- {' '.join(h.row.content.split())} (confidence: {h.confidence:.2f})" for h in hits]
    return "\n".join(["[KRONMEM CONTEXT]", *lines]) if lines else ""


def agent(space: Space) -> AgentReply:
    """An agent; its name is its id."""
    return {
        "id": space.name,
        "name": space.name,
        "description": space.description,
        "metadata": space.metadata,
        "created_at": timestamp(space.created_at),
        "memory_count": space.count,
    }


def state(key: str, stored: StateValue) -> StateReply:
    """A value of an agent's state."""
    return {
        "key": key,
        "value": json.loads(stored.value),
        "created_at": timestamp(stored.created_at),
        "updated_at": timestamp(stored.updated_at),
    }
