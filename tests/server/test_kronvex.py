"""The vendor's SDK and the tutorials' own program, typed in as a user would, against a real server."""

from __future__ import annotations

import httpx
import pytest
from kronvex import Kronvex
from kronvex.exceptions import AgentNotFoundError, AuthenticationError

from kronmem import AuthError, Client
from tests.server.conftest import ADA, BARE, BOB
from tests.services.kronmem import ServedKronmem

TUTORIAL = """
import httpx

API_KEY = "{key}"
BASE = "{url}"
AGENT = "autogen-assistant-user123"
HEADERS = {{"X-API-Key": API_KEY}}

def remember(content, memory_type="fact", ttl_days=None):
    body = {{"content": content, "memory_type": memory_type}}
    if ttl_days:
        body["ttl_days"] = ttl_days
    r = httpx.post(f"{{BASE}}/api/v1/agents/{{AGENT}}/remember", headers=HEADERS, json=body)
    r.raise_for_status()
    return "Stored"

def recall(query, limit=5):
    r = httpx.post(f"{{BASE}}/api/v1/agents/{{AGENT}}/recall", headers=HEADERS, json={{"query": query, "limit": limit}})
    r.raise_for_status()
    memories = r.json().get("memories", [])
    return "\\n".join(m["content"] for m in memories) or "No relevant memories"

def get_context(query="general context"):
    r = httpx.post(f"{{BASE}}/api/v1/agents/{{AGENT}}/inject-context", headers=HEADERS, json={{"query": query, "limit": 8}})
    r.raise_for_status()
    return r.json().get("context", "")

remember("User prefers concise answers", "preference")
remember("The database is PostgreSQL 16", "fact")
remember("Standup moved to nine this week", "temporary", ttl_days=7)
said.append(recall("which database?", limit=1))
said.append(recall("zebra crossings"))
said.append(get_context())
"""


def test_the_tutorials_program_works_unchanged_but_for_the_address(served: ServedKronmem) -> None:
    said: list[str] = []
    exec(TUTORIAL.format(url=served.url, key=ADA), {"said": said})
    assert said[:2] == ["The database is PostgreSQL 16", "No relevant memories"]
    assert all(text in said[2] for text in ("concise answers", "PostgreSQL 16", "Standup"))


def test_the_vendors_sdk_gives_the_right_answers(served: ServedKronmem) -> None:
    with Kronvex(ADA, base_url=served.url) as kronvex:
        agent = kronvex.create_agent("sdk-agent", "made by the SDK")
        first = agent.remember("User prefers concise answers", memory_type="semantic", session_id="s1")
        agent.remember("The office closes at six", session_id="s2", ttl_days=3)
        assert [m["content"] for m in agent.recall("when does the office close?")] == ["The office closes at six"]
        assert "concise answers" in agent.inject_context("how long should answers be?")
        assert {s["session_id"]: s["count"] for s in agent.sessions()} == {"s1": 1, "s2": 1}
        assert [m["id"] for m in agent.memories(session_id="s1")] == [first["id"]]
        assert len(agent.memories(limit=1, offset=1)) == 1
        agent.delete_memory(first["id"])
        with pytest.raises(AgentNotFoundError, match="Memory not found"):
            agent.delete_memory(first["id"])
        assert agent.clear() == {"deleted": 1}
        kronvex.delete_agent("sdk-agent")
        assert "sdk-agent" not in [one["name"] for one in kronvex.list_agents()]


def test_a_wrong_key_is_the_vendors_own_error(served: ServedKronmem) -> None:
    with Kronvex("kv-wrong", base_url=served.url) as kronvex, pytest.raises(AuthenticationError):
        kronvex.list_agents()


def test_our_own_client_sees_what_the_vendors_wrote(served: ServedKronmem) -> None:
    with Kronvex(BOB, base_url=served.url) as kronvex:
        kronvex.agent("shared").remember("Invoices go out on the first", memory_type="procedural")
    with Client(served.url, api_key=BOB, outbox=False) as client:
        assert [m.content for m in client.memories("shared")] == ["Invoices go out on the first"]


def test_names_keep_their_own_agents_and_a_rotated_key_keeps_the_name(served: ServedKronmem) -> None:
    with Client(served.url, api_key=ADA, outbox=False) as ada, Client(served.url, api_key=BOB, outbox=False) as bob:
        kept = ada.remember("diary", "Ada is learning Norwegian")
        assert bob.recall("diary", "Norwegian") == []
        assert "diary" not in [agent.name for agent in bob.agents()]
    with Client(served.url, api_key="kv-ada-2", outbox=False) as rotated:
        assert [m.id for m in rotated.memories("diary")] == [kept.id]


def test_a_bare_key_owns_what_an_embedded_client_wrote_to_the_file(served: ServedKronmem) -> None:
    with Client.local(served.path) as embedded:
        embedded.remember("local", "Written without a server")
    with Client(served.url, api_key=BARE, outbox=False) as client:
        assert [m.content for m in client.memories("local")] == ["Written without a server"]
    with Client(served.url, api_key=ADA, outbox=False) as client:
        assert list(client.memories("local")) == []


def test_without_a_key_nothing_but_health_and_the_page_is_open(served: ServedKronmem, http: httpx.Client) -> None:
    assert http.get("/health").json()["status"] == "ok"
    assert http.get("/").status_code == 200
    for path in ("/api/v1/agents", "/memory/ns", "/memory/ns/key", "/v1/memory/list", "/v1/memory/recall?q=x"):
        assert http.get(path).status_code == 401, path
    with Client(served.url, outbox=False) as client, pytest.raises(AuthError):
        client.agents()
