"""The service on a socket: keys, owners, and the vendor's own SDK, unchanged."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest
import uvicorn
from kronvex import Kronvex, KronvexError
from kronvex.async_client import AsyncKronvex

from kronmem.server.app import create_app
from kronmem.server.contracts.contract import MAX_BODY
from kronmem.transport.local import sqlite_service

KEYS = {"kv-mine": "me", "kv-yours": "you"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    service = sqlite_service(":memory:")
    config = uvicorn.Config(create_app(service, KEYS), log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    # TCP by name: asyncio switches Nagle's delay off only for sockets that say so.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(64)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    listening.close()
    service.close()


@pytest.fixture
def vendor(url: str) -> Iterator[Kronvex]:
    with Kronvex("kv-mine", base_url=url) as client:
        yield client
        for agent in client.list_agents():
            client.delete_agent(agent["id"])


def test_the_vendors_sdk_remembers_and_recalls(vendor: Kronvex) -> None:
    agent = vendor.create_agent("support-bot", description="d")
    assert (agent.id, agent.name) == ("support-bot", "support-bot")
    memory = agent.remember(
        "User prefers concise answers", memory_type="procedural", session_id="s", ttl_days=3, metadata={"a": 1}
    )
    assert memory["content"] == "User prefers concise answers"
    found = agent.recall("how should I answer the user?", top_k=3)
    assert [m["content"] for m in found] == ["User prefers concise answers"]
    assert found[0]["score"] == found[0]["similarity"] > 0.3
    assert agent.recall("answers", session_id="other") == []
    assert agent.recall("answers", memory_type="episodic") == []
    assert agent.recall("answers", threshold=1.0) == []


def test_the_vendors_sdk_injects_context(vendor: Kronvex) -> None:
    agent = vendor.agent("free-string-agent")
    assert agent.inject_context("anything") == ""
    agent.remember("User prefers concise answers")
    context = agent.inject_context("What does the user prefer?")
    assert context.startswith("[KRONMEM CONTEXT]\n- User prefers concise answers (confidence: ")


def test_the_vendors_sdk_lists_deletes_and_clears(vendor: Kronvex) -> None:
    agent = vendor.agent("lister")
    ids = [agent.remember(f"tea {n}", session_id=f"s{n % 2}")["id"] for n in range(60)]
    assert [m["content"] for m in agent.memories(limit=2, offset=3)] == ["tea 56", "tea 55"]
    assert len(agent.memories()) == 50
    assert len(agent.memories(session_id="s1", memory_type="episodic", limit=100)) == 30
    assert agent.sessions() == [{"session_id": "s0", "count": 30}, {"session_id": "s1", "count": 30}]
    agent.delete_memory(ids[0])
    with pytest.raises(KronvexError, match="Memory not found"):
        agent.delete_memory(ids[0])
    assert [a["memory_count"] for a in vendor.list_agents()] == [59]
    assert agent.clear() == {"deleted": 59}
    vendor.delete_agent("lister")
    assert vendor.list_agents() == []


# Not "..": httpx resolves it before sending, so what arrives is a plain wish to delete the agent.
@pytest.mark.parametrize("bad", ["%2e%2e", "%2E", "a%2F..", ""])
def test_a_bad_memory_id_from_the_vendors_sdk_deletes_nothing(vendor: Kronvex, bad: str) -> None:
    agent = vendor.agent("careful")
    agent.remember("tea")
    with pytest.raises(KronvexError):
        agent.delete_memory(bad)
    assert [m["content"] for m in agent.memories()] == ["tea"]


def test_the_vendors_async_sdk_works_too(vendor: Kronvex, url: str) -> None:
    async def work() -> tuple[list[str], str, int]:
        async with AsyncKronvex("kv-mine", base_url=url) as client:
            agent = await client.create_agent("async-bot")
            await agent.remember("tea at five", session_id="s")
            found = [m["content"] for m in await agent.recall("tea")]
            return found, await agent.inject_context("tea"), (await agent.clear())["deleted"]

    found, context, deleted = asyncio.run(work())
    assert (found, deleted) == (["tea at five"], 1)
    assert "tea at five" in context


def test_owners_are_told_apart_by_their_keys(vendor: Kronvex, url: str) -> None:
    vendor.agent("shared-name").remember("tea at five")
    with Kronvex("kv-yours", base_url=url) as other:
        assert other.list_agents() == []
        assert other.agent("shared-name").recall("tea") == []


def test_a_missing_or_wrong_key_is_refused(url: str) -> None:
    missing = httpx.get(f"{url}/api/v1/agents", timeout=60)
    assert (missing.status_code, missing.json()["detail"][:15]) == (401, "Missing API key")
    for wrong in ("kv-min", "kv-mine2", "é".encode().decode("latin-1"), ""):
        headers = {"X-API-Key": wrong.encode("latin-1").decode("latin-1")}
        reply = httpx.get(
            f"{url}/api/v1/agents", headers={k: v.encode("latin-1") for k, v in headers.items()}, timeout=60
        )
        assert (reply.status_code, reply.json()) == (401, {"detail": "Invalid or revoked API key."})


def test_health_needs_no_key(url: str) -> None:
    assert httpx.get(f"{url}/health", timeout=60).json()["status"] == "ok"


def test_refusals_have_one_shape(url: str) -> None:
    with httpx.Client(base_url=url, headers={"X-API-Key": "kv-mine"}, timeout=60) as http:
        assert http.get("/api/v1/nope").json() == {"detail": "Not Found"}
        assert http.put("/api/v1/agents").json() == {"detail": "Method Not Allowed"}
        assert http.get("/api/v1/agents/").status_code in (404, 422)
        assert http.post("/api/v1/agents/a%2Fb/remember", json={"content": "x"}).status_code in (404, 422)
        assert http.post("/api/v1/agents/bot/remember", content=b"{").status_code == 422
        too_large = http.post("/api/v1/agents/bot/remember", content=b"x" * (MAX_BODY + 1))
        assert (too_large.status_code, too_large.json()) == (413, {"detail": "The body is too large"})


def test_quoted_ids_arrive_whole(url: str) -> None:
    with httpx.Client(base_url=url, headers={"X-API-Key": "kv-mine"}, timeout=60) as http:
        created = http.post("/api/v1/agents/team%207%20%E2%98%95/remember", json={"content": "tea"})
        assert created.json()["agent_id"] == "team 7 ☕"
        assert http.delete("/api/v1/agents/team%207%20%E2%98%95").status_code == 204
