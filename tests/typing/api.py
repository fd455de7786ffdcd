"""The public types as a user sees them: checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from datetime import datetime
from typing import assert_type

from pydantic import JsonValue

from kronmem import (
    AgentInfo,
    AgentMemory,
    AsyncAgentMemory,
    AsyncClient,
    AsyncState,
    Client,
    Fact,
    Health,
    Hit,
    Memory,
    MemoryTools,
    Retry,
    Session,
    State,
    extract_facts,
    memory_tools,
)


def blocking() -> None:
    with Client("http://127.0.0.1:7070", api_key="k", timeout=5.0, retry=Retry(attempts=2)) as client:
        assert_type(client, Client)
        memory = client.remember("a", "text", "fact", tags=["x"], metadata={"n": 1}, ttl_days=3)
        assert_type(memory, Memory)
        assert_type(memory.created_at, datetime | None)
        assert_type(memory.tags, tuple[str, ...])
        assert_type(memory.metadata, dict[str, JsonValue])
        assert_type(client.remember_many("a", ["one", "two"]), list[Memory])
        assert_type(client.remember_later("a", "text"), str)
        hits = client.recall("a", "question", 5, threshold=0.5)
        assert_type(hits, list[Hit])
        assert_type(hits[0].content, str)
        assert_type(hits[0].similarity, float)
        assert_type(client.recall_many("a", ["q"], concurrency=4), list[list[Hit]])
        assert_type(client.recall_across(["a", "b"], "q"), dict[str, list[Hit]])
        assert_type(client.inject_context("a"), str)
        assert_type(client.memories("a"), Iterator[Memory])
        assert_type(client.clear("a", session_id="s"), int)
        assert_type(client.agents(), list[AgentInfo])
        assert_type(client.sessions("a"), list[Session])
        assert_type(client.health(), Health)
        assert_type(client.agent("a", session_id="s"), AgentMemory)
        assert_type(client.state("a"), State)
        assert_type(client.state("a").get("k"), JsonValue)
        memory_of_a = client.agent("a", session_id=lambda: None)
        assert_type(memory_of_a.remember("text", "fact", tags=["x"], metadata={"n": 1}, ttl_days=3), Memory)
        assert_type(memory_of_a.remember_later(content="text"), str)
        assert_type(memory_of_a.remember_many(["one", "two"], pinned=True), list[Memory])
        assert_type(memory_of_a.recall("question", limit=3, threshold=0.5), list[Hit])
        assert_type(memory_of_a.recall_many(["q"], concurrency=4), list[list[Hit]])
        assert_type(memory_of_a.inject_context(max_chars=100), str)
        assert_type(memory_of_a.memories(memory_type="fact"), Iterator[Memory])
        assert_type(memory_of_a.clear(session_id="s"), int)
        assert_type(memory_of_a.with_timeout(1.0), AgentMemory)
        assert_type(memory_of_a.agent_id, str)
        assert_type(memory_of_a.session_id, str | None)
        memory_of_a.remember("text", tagz=["x"])  # type: ignore[call-arg] # pyright: ignore[reportCallIssue] -- must not pass
        memory_of_a.recall("question", limit="3")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] -- must not pass
        memory_of_a.recall()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue] -- must not pass
        client.agent(lambda: 7)  # type: ignore[arg-type,return-value] # pyright: ignore[reportArgumentType, reportReturnType] -- must not pass
    tools = memory_tools(Client.local(":memory:").agent("a"), prefix="team_")
    assert_type(tools, MemoryTools[str])
    assert_type(tools.recall("question", limit=3, tags=["x"]), str)
    assert_type(tools.remember("text", "fact", ttl_days=3, key="city"), str)
    assert_type(tools.forget("id"), str)
    tools.recall(question="q")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue] -- must not pass
    assert_type(extract_facts("I like tea"), list[Fact])
    assert_type(extract_facts("I like tea")[0].memory_type, str)


async def awaiting() -> None:
    async with AsyncClient() as client:
        assert_type(client, AsyncClient)
        assert_type(await client.remember("a", "text"), Memory)
        assert_type(await client.recall("a", "question"), list[Hit])
        assert_type(await client.recall_many("a", ["q"]), list[list[Hit]])
        assert_type(await client.recall_across(["a"], "q"), dict[str, list[Hit]])
        assert_type(client.memories("a"), AsyncIterator[Memory])
        assert_type(await client.inject_context("a"), str)
        assert_type(client.agent("a"), AsyncAgentMemory)
        assert_type(client.state("a"), AsyncState)
        assert_type(await client.state("a").get("k"), JsonValue)
        bound = client.agent(lambda: "a")
        assert_type(await bound.remember("text", "fact", session_id="s"), Memory)
        assert_type(await bound.recall("question", 3, tags=["x"]), list[Hit])
        assert_type(bound.memories(), AsyncIterator[Memory])
        assert_type(bound.with_timeout(1.0), AsyncAgentMemory)
        await bound.recall("question", tagz=["x"])  # type: ignore[call-arg] # pyright: ignore[reportCallIssue] -- must not pass
        tools = memory_tools(client.agent("a"))
        assert_type(tools, MemoryTools[Coroutine[object, object, str]])
