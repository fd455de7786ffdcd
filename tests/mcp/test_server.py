"""`kronmem mcp` and `/mcp` with real clients: tools, words, the bound agent, owners that see nothing of each other."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from kronmem import AsyncClient, Client, ConfigError, cli
from kronmem.packs.toolset import UNAVAILABLE
from tests.extras import Lazy
from tests.services import RawServer
from tests.services.kronmem import ServedKronmem
from tests.services.raw import close

clients, pack = Lazy("tests.mcp.clients"), Lazy("kronmem.mcp")

pytestmark = [
    pytest.mark.anyio,
    # mcp 1.x makes its settings before their types are complete.
    pytest.mark.filterwarnings("ignore:Field 'lifespan' has an incomplete definition"),
]

TEA = "The favourite tea of Ada is sencha from Uji"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
ACCEPT = {"accept": "application/json, text/event-stream"}


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient("sqlite://") as client:
        yield client


async def test_four_tools_describe_themselves_in_less_than_a_thousand_tokens(client: AsyncClient) -> None:
    tools = await pack.memory_server(client.agent("ada")).list_tools()
    shown = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    assert [tool["name"] for tool in shown] == ["remember", "recall", "forget", "inject_context"]
    # No tokenizer is needed to know: English in JSON has more than three characters a token.
    assert len(json.dumps(shown, separators=(",", ":"))) < 3 * 1000
    for tool in shown:
        assert "outputSchema" not in tool
        assert all(one["description"] for one in tool["inputSchema"]["properties"].values())
        assert "agent" not in json.dumps(tool["inputSchema"])
    hints = {tool["name"]: tool["annotations"] for tool in shown}
    assert [name for name, hint in hints.items() if hint["readOnlyHint"]] == ["recall", "inject_context"]
    assert [name for name, hint in hints.items() if hint.get("destructiveHint")] == ["forget"]
    assert not any(hint["openWorldHint"] for hint in hints.values())


def test_a_stdout_that_the_first_major_has_closed_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    assert cli._printed(lambda: None) == 0


def test_a_memory_that_would_block_the_loop_is_refused() -> None:
    with Client("sqlite://") as client, pytest.raises(ConfigError, match="needs an AsyncAgentMemory"):
        pack.memory_server(client.agent("ada"))


async def test_the_agent_is_bound_and_a_resource_of_another_is_refused(client: AsyncClient) -> None:
    await client.remember("bob", "The secret of Bob")
    await client.remember("Ada Lovelace", TEA)
    server = pack.memory_server(client.agent("Ada Lovelace"), timeout=60)
    (shown,) = await server.list_resources()
    assert str(shown.uri) == "kronmem://Ada%20Lovelace/context"
    assert TEA in str(await server.read_resource(str(shown.uri)))
    with pytest.raises(Exception, match="Only the memory of 'Ada Lovelace' is served here"):
        await server.read_resource("kronmem://bob/context")


@pytest.mark.slow  # two processes that import mcp
async def test_a_client_lists_and_calls_the_tools_over_stdio(tmp_path: Path) -> None:
    async with clients.over_stdio("--agent", "ada", KRONMEM_HOME=str(tmp_path)) as session:
        assert [tool.name for tool in (await session.list_tools()).tools][:2] == ["remember", "recall"]
        assert (await clients.call(session, "inject_context")) == "No memories yet."
        assert (await clients.call(session, "remember", content=TEA)).startswith("Stored (id ")
        assert (await clients.call(session, "remember", content=TEA)).startswith("Already known (id ")
        found = await clients.call(session, "recall", query="favourite tea", limit="3")
        assert TEA in found
        assert TEA in await clients.call(session, "inject_context", query="tea")
        assert TEA in await clients.context(session, "kronmem://ada/context")
        with pytest.raises(Exception, match="Only the memory of 'ada' is served here"):
            await clients.context(session, "kronmem://bob/context")
        memory_id = found.split("id ")[1].split("]")[0]
        assert await clients.call(session, "forget", memory_id=memory_id) == "Forgotten."
        assert await clients.call(session, "forget", memory_id=memory_id) == "There is no memory with that id."
        assert (await clients.call(session, "remember", content=" ")).startswith("Not done: ")
        assert await clients.call(session, "recall", query="favourite tea") == "No relevant memories."


@pytest.mark.slow
async def test_a_service_that_is_down_is_told_in_words_over_stdio(tmp_path: Path) -> None:
    with RawServer([close()]) as server:
        async with clients.over_stdio("-a", "ada", "--url", server.url, KRONMEM_HOME=str(tmp_path)) as session:
            assert await clients.call(session, "recall", query="tea") == UNAVAILABLE
            assert await clients.call(session, "inject_context") == UNAVAILABLE
            assert (await clients.call(session, "remember", content=TEA)).startswith("Queued, not yet stored")


@pytest.mark.slow
def test_the_end_of_stdin_ends_the_command_and_stdout_holds_the_protocol_alone(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "kronmem", "mcp", "--agent", "ada"],
        input=json.dumps(INITIALIZE) + "\n",
        capture_output=True,
        text=True,
        env=environment(tmp_path),
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    (line,) = ran.stdout.splitlines()
    assert json.loads(line)["result"]["serverInfo"]["name"] == "kronmem"


def environment(home: Path) -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent), "KRONMEM_HOME": str(home)}


# ── over HTTP ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedKronmem]:
    """A server with two owners."""
    path = tmp_path_factory.mktemp("mcp") / "memory.db"
    with ServedKronmem(path, owners={"kv-one": "one", "kv-two": "two"}) as server:
        yield server


@pytest.mark.slow  # a server that imports mcp
async def test_two_keys_see_nothing_of_each_other_over_http(served: ServedKronmem) -> None:
    async with clients.over_http(f"{served.url}/mcp/ada", authorization="Bearer kv-one") as one:
        async with clients.over_http(f"{served.url}/mcp", x_api_key="kv-two", x_kronmem_agent="ada") as two:
            assert len((await one.list_tools()).tools) == 4
            assert (await clients.call(one, "remember", content=TEA)).startswith("Stored")
            found = await clients.call(one, "recall", query="favourite tea")
            assert TEA in found
            assert await clients.call(two, "recall", query="favourite tea") == "No relevant memories."
            assert await clients.call(two, "inject_context") == "No memories yet."
            memory_id = found.split("id ")[1].split("]")[0]
            assert await clients.call(two, "forget", memory_id=memory_id) == "There is no memory with that id."
            assert TEA in await clients.context(one, "kronmem://ada/context")
            assert await clients.context(two, "kronmem://ada/context") == "No memories yet."
    with Client(served.url, api_key="kv-one") as client:
        assert [memory.content for memory in client.memories("ada")] == [TEA]


@pytest.mark.slow
async def test_the_agent_of_a_request_is_never_the_choice_of_its_model(served: ServedKronmem) -> None:
    with Client(served.url, api_key="kv-one") as client:
        client.remember("carol", "The secret of Carol is a blue door")
    async with clients.over_http(f"{served.url}/mcp/dan", authorization="Bearer kv-one") as session:
        for arguments in ({"agent": "carol"}, {"agent_id": "carol"}):
            assert "Carol" not in await clients.call(session, "recall", query="secret of Carol", **arguments)
        with pytest.raises(Exception, match="Only the memory of 'dan' is served here"):
            await clients.context(session, "kronmem://carol/context")


@pytest.mark.slow
async def test_many_agents_and_owners_at_once_get_their_own(served: ServedKronmem) -> None:
    async def talk(key: str, agent: str) -> None:
        async with clients.over_http(f"{served.url}/mcp/{agent}", authorization=f"Bearer {key}") as session:
            for turn in range(10):
                await clients.call(session, "remember", content=f"Secret {turn} of {key} and {agent}")
                texts = [await clients.call(session, "recall", query="secret", limit=20)]
                texts.append(await clients.call(session, "inject_context", query="secret", limit=20))
                for text in texts:
                    assert f"of {key} and {agent}" in text
                    assert text.count("Secret ") == text.count(f"of {key} and {agent}")

    async with anyio.create_task_group() as group:
        for key in ("kv-one", "kv-two"):
            for number in range(4):
                group.start_soon(talk, key, f"agent-{number}")


REFUSED: dict[str, tuple[str, str, dict[str, str], int, str]] = {
    "without a key": ("POST", "/mcp/ada", {}, 401, "Missing API key"),
    "with a wrong key": ("POST", "/mcp/ada", {"authorization": "Bearer kv-three"}, 401, "Invalid or revoked"),
    "with a wrong key in its own header": ("POST", "/mcp/ada", {"x-api-key": "kv-three"}, 401, "Invalid or revoked"),
    "without an agent": ("POST", "/mcp", {"x-api-key": "kv-one"}, 400, "Name one agent"),
    "with two agents": ("POST", "/mcp/ada", {"x-api-key": "kv-one", "x-kronmem-agent": "bob"}, 400, "Name one agent"),
    "with a bad agent": ("POST", "/mcp", {"x-api-key": "kv-one", "x-kronmem-agent": "a%2Fb"}, 400, "Bad agent"),
    "with a quoted slash": ("POST", "/mcp/a%2Fb", {"x-api-key": "kv-one"}, 404, "Not Found"),
    "by GET": ("GET", "/mcp/ada", {"x-api-key": "kv-one"}, 405, "Method Not Allowed"),
    "from another site": (
        "POST",
        "/mcp/ada",
        {"x-api-key": "kv-one", "origin": "https://evil.example"},
        403,
        "Refused",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", REFUSED)
def test_a_request_is_refused(how: str, served: ServedKronmem) -> None:
    method, path, headers, status, words = REFUSED[how]
    reply = httpx.request(method, served.url + path, json=INITIALIZE, headers={**ACCEPT, **headers}, timeout=60)
    assert (reply.status_code, words in reply.json()["detail"]) == (status, True), reply.text


@pytest.mark.slow
def test_a_request_keeps_no_session_and_is_bounded_in_size(served: ServedKronmem) -> None:
    url, headers = f"{served.url}/mcp/ada", {**ACCEPT, "x-api-key": "kv-one"}
    reply = httpx.post(url, json=INITIALIZE, headers=headers, timeout=60)
    assert reply.status_code == 200
    assert reply.json()["result"]["serverInfo"]["name"] == "kronmem"
    assert "mcp-session-id" not in reply.headers
    call: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "inject_context"}}
    assert "result" in httpx.post(url, json=call, headers=headers, timeout=60).json()
    assert httpx.post(url, content=b" " * (16 * 1024 * 1024 + 1), headers=headers, timeout=60).status_code == 413
    many = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "remember"}}
    many["params"]["arguments"] = {"content": "x", "tags": [1] * 300_000}  # type: ignore[index]
    reply = httpx.post(url, json=many, headers=headers, timeout=60)
    assert (reply.status_code, len(reply.content) < 1000) == (413, True)


@pytest.mark.slow
async def test_without_keys_everybody_on_this_machine_is_the_same_owner(tmp_path: Path) -> None:
    with ServedKronmem(tmp_path / "memory.db") as server:
        async with clients.over_http(f"{server.url}/mcp/ada") as session:
            assert (await clients.call(session, "remember", content=TEA)).startswith("Stored")
        assert server.contents("ada") == [TEA]
