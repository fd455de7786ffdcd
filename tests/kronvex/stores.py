"""Rows put into a stand-in directly, and a count of the requests that a call sends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.services import KronvexServer
from tests.services.rows import Agent, Row

START = datetime(2026, 1, 1, tzinfo=UTC)


def mark(own_id: str, **more: Any) -> dict[str, Any]:
    """The metadata of a row that kronmem stored."""
    return {"kronmem": {"id": own_id, **more}}


def row(agent: Agent, content: str, **fields: Any) -> Row:
    """Put a row there without asking; each is a minute younger than the one before."""
    fields.setdefault("created_at", START + timedelta(minutes=len(agent.rows)))
    made = Row(agent.id, content, **fields)
    agent.rows.append(made)
    return made


def texts(server: KronvexServer) -> list[tuple[str, str | None]]:
    """Content and session of every row that is not deleted, over all agents."""
    return [(one.content, one.session_id) for agent in server.agents for one in agent.kept()]


@contextmanager
def counted(server: KronvexServer) -> Iterator[list[str]]:
    """Method and last segment of the path of each request in the block."""
    sent: list[str] = []
    before = len(server.requests)
    yield sent
    sent += [f"{one.method} {one.path.rpartition('/')[2]}" for one in server.requests[before:]]
