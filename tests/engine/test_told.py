"""Questions about a time, through the client: what was told then is lifted, or listed where nothing else is asked."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from kronmem import AgentMemory, Client, Memory

NOW = datetime.now(UTC).astimezone()
TOPICS = ("budget", "garden", "printer", "roof", "car", "dentist", "server")


def moment(days: int) -> datetime:
    noon = NOW.replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=days)
    return min(noon, NOW - timedelta(seconds=30))


@pytest.fixture
def agent() -> Iterator[AgentMemory]:
    """Sixty days of notes, one a day about each of seven things in turn."""
    notes = [(moment(days), f"We spoke of the {TOPICS[days % 7]}, remark number {60 - days}") for days in range(60)]
    with Client("sqlite://") as client:
        agent = client.agent("diary")
        agent.restore(
            [Memory(id=str(uuid.uuid4()), agent_id="diary", content=text, created_at=at) for at, text in notes]
        )
        yield agent


def days_of(agent: AgentMemory, question: str, limit: int = 10) -> list[int]:
    hits = agent.recall(question, limit)
    return [(NOW.date() - hit.memory.created_at.astimezone().date()).days for hit in hits if hit.memory.created_at]


def test_a_question_about_a_time_alone_lists_it_newest_first(agent: AgentMemory) -> None:
    assert days_of(agent, "What happened today?") == [0]
    assert days_of(agent, "What did we talk about yesterday?") == [1]
    assert days_of(agent, "What happened 12 days ago?") == [12]
    back = NOW.weekday()
    assert days_of(agent, "What did I say last week?") == list(range(back + 1, back + 8))
    assert days_of(agent, f"What happened on {moment(20):%d %B}?") == [20]


def test_other_questions_find_first_what_was_told_then(agent: AgentMemory) -> None:
    for days in (8, 15, 22, 29):
        asked = f"What did we say about the {TOPICS[days % 7]} on {moment(days):%d %B}?"
        assert days_of(agent, asked)[0] == days, asked


def test_a_range_that_the_caller_gives_goes_before_the_words(agent: AgentMemory) -> None:
    hits = agent.recall("What did we say about the budget yesterday?", since=moment(30), until=moment(20))
    assert {TOPICS.index(hit.content.split()[4].strip(",")) for hit in hits[:1]} == {0}
    assert all(hit.memory.created_at and hit.memory.created_at < moment(20) for hit in hits)
