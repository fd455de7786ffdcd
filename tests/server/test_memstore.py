"""Memstore's contract, with its tutorial's program; `tags` and `limit` count here."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from kronmem import Client
from tests.server.conftest import ADA, BOB
from tests.services.kronmem import ServedKronmem


@pytest.fixture
def memstore(served: ServedKronmem) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {ADA}"}
    with httpx.Client(base_url=f"{served.url}/v1/memory", headers=headers, trust_env=False, timeout=60) as client:
        yield client
        with Client(served.url, api_key=ADA, outbox=False) as ours:
            ours.clear("memstore")


def test_the_tutorials_program_remembers_and_recalls_by_tag(memstore: httpx.Client) -> None:
    stored = memstore.post(
        "/remember", json={"content": "User lives in Paris", "tags": ["user:alice", "place"], "ttl": 2592000}
    )
    assert stored.status_code == 201
    assert set(stored.json()) >= {"id", "content", "session", "metadata", "created_at"}
    memstore.post("/remember", json={"content": "User lives in Rome", "tags": ["user:bob"]})
    found = memstore.get("/recall", params={"q": "where does the user live?", "tags": "user:alice", "limit": 3}).json()
    assert [m["content"] for m in found["memories"]] == ["User lives in Paris"]
    assert (found["count"], found["query"]) == (1, "where does the user live?")
    assert 0 < found["memories"][0]["score"] <= 1


def test_limit_top_k_and_repeated_tags_count(memstore: httpx.Client) -> None:
    for city in ("Oslo", "Lima", "Kyoto"):
        memstore.post("/remember", json={"content": f"The user likes {city}", "tags": ["city", city]})
    asked = {"q": "which cities does the user like?", "threshold": 0}
    assert memstore.get("/recall", params={**asked, "limit": 1}).json()["count"] == 1
    assert memstore.get("/recall", params={**asked, "top_k": 2}).json()["count"] == 2
    both = memstore.get("/recall", params={**asked, "tags": ["city", "Lima"]}).json()["memories"]
    assert [m["tags"] for m in both] == [["city", "Lima"]]
    comma = memstore.get("/recall", params={**asked, "tags": "city,Kyoto"}).json()["memories"]
    assert [m["content"] for m in comma] == ["The user likes Kyoto"]
    assert memstore.get("/recall", params={**asked, "tags": "nope"}).json()["memories"] == []


def test_sessions_lists_and_forgetting(memstore: httpx.Client) -> None:
    ids = [memstore.post("/remember", json={"content": f"note {n}", "session": 7}).json()["id"] for n in range(3)]
    memstore.post("/remember", json={"content": "elsewhere", "metadata": {"k": "v"}})
    page = memstore.get("/list", params={"session": "7", "limit": 2, "offset": 1}).json()
    assert ([m["content"] for m in page["memories"]], page["total"]) == (["note 1", "note 0"], 3)
    assert memstore.get("/list", params={"offset": 9999}).json() == {"memories": [], "total": 4}
    assert memstore.get("/recall", params={"q": "note", "session": "8"}).json()["count"] == 0
    for _ in range(2):  # forgetting twice is no error there
        gone = memstore.delete(f"/forget/{ids[0]}")
        assert (gone.status_code, gone.json()) == (200, {"deleted": True, "id": ids[0]})
    assert memstore.get("/list", params={"session": "7"}).json()["total"] == 2


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"content": ""}, "invalid_content"),
        ({}, "invalid_content"),
        ({"content": 5}, "invalid_content"),
        ([1], "invalid_content"),
        ({"content": "x" * 10_001}, "invalid_request"),
        ({"content": "x", "ttl": "abc"}, "invalid_ttl"),
        ({"content": "x", "ttl": 1}, "invalid_ttl"),
        ({"content": "x", "ttl": 1e15}, "invalid_ttl"),
        ({"content": "x", "metadata": "s"}, "invalid_metadata"),
        ({"content": "x", "session": "a/b"}, "invalid_request"),
        ({"content": "a\u0000b"}, "invalid_request"),
    ],
)
def test_what_does_not_fit_is_refused_in_its_own_words(memstore: httpx.Client, body: object, error: str) -> None:
    reply = memstore.post("/remember", json=body)
    assert reply.status_code == 400
    assert reply.json()["error"] == error
    assert reply.json()["message"]


def test_a_question_is_required(memstore: httpx.Client) -> None:
    for query in ("", "?q="):
        reply = memstore.get(f"/recall{query}")
        assert (reply.status_code, reply.json()["error"]) == (400, "missing_query")


def test_zero_is_no_ttl_and_ten_thousand_characters_fit(memstore: httpx.Client) -> None:
    assert memstore.post("/remember", json={"content": "x" * 10_000, "ttl": 0}).status_code == 201
    assert memstore.get("/list").json()["memories"][0]["ttl"] is None


def test_the_key_is_the_partition(memstore: httpx.Client, served: ServedKronmem) -> None:
    kept = memstore.post("/remember", json={"content": "Ada's own"}).json()["id"]
    with httpx.Client(
        base_url=f"{served.url}/v1/memory", headers={"Authorization": f"Bearer {BOB}"}, timeout=60
    ) as other:
        # Another test may have left memories under Bob's key.
        listed = other.get("/list").json()["memories"]
        found = other.get("/recall", params={"q": "Ada's own", "threshold": 0}).json()["memories"]
        assert kept not in {memory["id"] for memory in [*listed, *found]}
        other.delete(f"/forget/{kept}")
    assert memstore.get("/list").json()["total"] == 1


def test_without_and_with_a_wrong_key_the_error_has_its_shape(served: ServedKronmem) -> None:
    url = f"{served.url}/v1/memory/list"
    missing = httpx.get(url, trust_env=False, timeout=60)
    assert (missing.status_code, missing.json()["error"]) == (401, "missing_api_key")
    wrong = httpx.get(url, headers={"Authorization": "Bearer am_wrong"}, trust_env=False, timeout=60)
    assert (wrong.status_code, wrong.json()["error"]) == (401, "invalid_api_key")
    assert "am_wrong" not in wrong.text
