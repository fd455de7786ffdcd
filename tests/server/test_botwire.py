"""The `botwire` package from PyPI and the recorded exchanges, against a real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from botwire import Memory

from kronmem import Client
from kronmem.engine.engine import Engine
from kronmem.server.app import create_app
from kronmem.transport.local import sqlite_service
from tests.server.conftest import ADA, BOB
from tests.services.kronmem import ServedKronmem

SAMPLES = Path(__file__).parent.parent / "samples" / "botwire.json"
RECORDED: list[dict[str, Any]] = json.loads(SAMPLES.read_text("utf-8"))
DIFFERENT = {
    "put lone surrogate": "422, not 500",
    "put key single dot": "no path can carry it safely",
    "put key double dot": "no path can carry it safely",
    "put invalid utf-8 body": "422, as every body that is not JSON",
    "put text/plain": "the body counts, not what it calls itself",
    "put key trailing newline %0A": "400: the recorded server's pattern let it through",
    "put ns trailing newline": "400: the recorded server's pattern let it through",
    "put key trailing slash": "404 instead of a redirect",
    "put key empty": "404 instead of a redirect",
}
"""Where we answer otherwise than the recorded server, and how."""
ASKED = [e for e in RECORDED if e["name"].startswith(("put ", "list limit")) and e["name"] not in DIFFERENT]


@pytest.fixture
def bot() -> Iterator[Callable[[str, str], Memory]]:
    """The SDK's memories; it never closes its connections itself."""
    opened: list[Memory] = []

    def make(namespace: str, url: str) -> Memory:
        opened.append(Memory(namespace, base_url=url))
        return opened[-1]

    yield make
    for memory in opened:
        memory._client.close()


Bot = Callable[[str, str], Memory]


@pytest.fixture
def locked(served: ServedKronmem) -> str:
    """The address with the key as its password, as BOTWIRE_URL has it."""
    return served.url.replace("http://", f"http://key:{ADA}@")


def test_the_sdk_sets_gets_deletes_and_lists(locked: str, bot: Bot) -> None:
    memory = bot("bot-1", locked)
    for key, value in {"name": "Pedro", "plan": {"a": [1, 2]}, "list": [1, 2], "note": "[draft] text"}.items():
        memory.set(key, value)
        assert memory.get(key) == value
    memory.set("count", 42)
    assert memory.get("count") == "42"  # scalars come back as strings: that is BotWire's contract
    listed = memory.keys()
    assert [one["key"] for one in listed] == ["count", "note", "list", "plan", "name"]
    assert "name" in memory
    assert memory.delete("name") is True
    assert memory.delete("name") is False
    assert memory.get("name", "nobody") == "nobody"


def test_a_program_with_botwire_url_in_its_environment_needs_no_other_change(locked: str) -> None:
    code = "from botwire import Memory; m = Memory('env-bot'); m.set('k', {'v': 1}); print(m.get('k'), len(m.keys()))"
    ran = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "BOTWIRE_URL": locked}, capture_output=True, text=True
    )
    assert ran.stdout == "{'v': 1} 1\n", ran.stderr


def test_state_of_our_own_client_and_a_namespace_are_the_same(locked: str, served: ServedKronmem, bot: Bot) -> None:
    with Client(served.url, api_key=ADA, outbox=False) as client:
        client.state("planner").set("plan", {"step": 3})
        assert bot("planner", locked).get("plan") == {"step": 3}
        bot("planner", locked).set("word", "heron")
        assert client.state("planner").get("word") == "heron"
        assert client.state("planner").keys() == ["plan", "word"]


def test_our_client_keeps_its_state_here_when_its_memories_are_elsewhere(unlocked: ServedKronmem, bot: Bot) -> None:
    with Client("sqlite://", state_url=unlocked.url) as client:
        client.state("team").set("turn", ["Zoë", 7, None])
        assert client.state("team").get("turn") == ["Zoë", 7, None]
    assert bot("team", unlocked.url).get("turn") == ["Zoë", 7, None]


def test_one_name_never_sees_the_keys_of_another(locked: str, served: ServedKronmem, bot: Bot) -> None:
    bot("private", locked).set("secret", "of Ada")
    other = bot("private", served.url.replace("http://", f"http://x:{BOB}@"))
    assert other.get("secret") is None
    assert other.keys() == []
    assert other.delete("secret") is False


@pytest.mark.parametrize("exchange", ASKED, ids=lambda e: e["name"])
def test_we_answer_as_the_recorded_server_did(exchange: dict[str, Any], open_http: httpx.Client) -> None:
    asked, given = exchange["request"], exchange["response"]
    if "...<" in str(asked["body"]):
        pytest.skip("the recording keeps only the beginning of this body")
    body = None if asked["body"] is None else str(asked["body"]).encode(errors="surrogatepass")
    url = open_http.base_url.copy_with(raw_path=asked["path"].encode())
    reply = open_http.request(asked["method"], url, content=body, headers=asked["headers"])
    assert reply.status_code == given["status"]
    if isinstance(given.get("json"), dict) and given["status"] in (200, 400, 404) and asked["method"] == "PUT":
        assert reply.json() == given.get("json")


def test_a_list_reads_no_value_that_it_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    state = Engine.state

    def counted(engine: Engine, place: Any, key: str) -> Any:
        read.append(key)
        return state(engine, place, key)

    monkeypatch.setattr(Engine, "state", counted)
    service = sqlite_service(":memory:")
    transport = httpx.ASGITransport(create_app(service))

    async def ask() -> list[Any]:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            for number in range(30):
                await http.put(f"/memory/many/k{number}", json={"value": "x" * number})
            await http.put("/api/v1/agents/many/state/not BotWire's", json={"value": 1})
            read.clear()
            return [(await http.get("/memory/many?limit=2")).json(), (await http.get("/memory/many?limit=1000")).json()]

    two, many = anyio.run(ask)
    service.close()
    assert [(one["key"], one["bytes"]) for one in two["keys"]] == [("k29", 29), ("k28", 28)]
    assert (two["count"], many["count"]) == (2, 30)
    assert read[:2] == ["k29", "k28"]
    assert len(read) == 32


def test_values_have_a_limit_and_keys_come_newest_first(open_http: httpx.Client) -> None:
    assert open_http.put("/memory/big/k", json={"value": "🙂" * 100_000}).json()["bytes"] == 100_000
    refused = open_http.put("/memory/big/k", json={"value": "x" * 100_001})
    assert (refused.status_code, refused.json()) == (400, {"detail": "Value too large. Max 100KB."})
    for key in ("one", "two", "one"):
        open_http.put(f"/memory/order/{key}", json={"value": key})
    assert [one["key"] for one in open_http.get("/memory/order").json()["keys"]] == ["one", "two"]
    assert open_http.get("/memory/order?limit=1").json()["count"] == 1
    assert open_http.get("/memory/order/three").json() == {"detail": "Key not found: order/three"}
