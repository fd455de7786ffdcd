"""Several servers on one database, and lines that break: one memory or a typed error, never two, never none."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client, ConflictError, TransportError
from kronmem.core.policy import Retry
from kronmem.engine.postgres.inverted_index import unpack
from kronmem.engine.store import PLACE_BITS
from tests.engine.calling import Caller, Clock, calling
from tests.engine.test_remembering import ID, with_id
from tests.postgres.proxy import Proxy

WORDS = [
    "tea",
    "coffee",
    "piano",
    "guitar",
    "Berlin",
    "Tokyo",
    "猫",
    "café",
    "user",
    "likes",
    "hates",
    "plays",
    "bicycle",
    "glacier",
    "loan",
    "running",
    "ran",
    "runner",
]


@pytest.fixture
def servers(postgres: str) -> Any:
    """Four services on one database."""
    with ExitStack() as stack:
        yield [stack.enter_context(calling(postgres)) for _ in range(4)]


def test_the_same_client_id_at_several_servers_at_once_is_one_memory(servers: list[Caller]) -> None:
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda n: servers[n % 4]("POST", "remember", with_id(ID)), range(40)))
    assert {(status, memory["id"]) for status, memory in replies} == {(201, ID)}
    assert servers[0].contents() == ["tea at five"]


def test_the_same_text_at_several_servers_at_once_is_one_memory(servers: list[Caller]) -> None:
    with ThreadPoolExecutor(8) as pool:
        memories = list(pool.map(lambda n: servers[n % 4].remember("tea", tags=[f"t{n}"]), range(40)))
    assert len({memory["id"] for memory in memories}) == 1
    assert sum(not memory["deduplicated"] for memory in memories) == 1
    listed = servers[0]("GET", "memories")[1]["memories"][0]
    assert set(listed["tags"]) == {f"t{n}" for n in range(40)}


def test_everything_at_once_loses_nothing_and_counts_right(servers: list[Caller], postgres: str) -> None:
    def work(n: int) -> None:
        call = servers[n % 4].as_(agent=f"agent-{n % 3}")
        memory = call.remember(f"tea {n}", session_id=f"s{n % 2}", ttl_seconds=60 if n % 5 == 0 else None)
        call.recall("tea", threshold=0)
        if n % 4 == 0:
            assert call("DELETE", f"memories/{memory['id']}")[0] == 204
        elif n % 7 == 0:
            assert call("PATCH", f"memories/{memory['id']}", {"pinned": True})[0] == 200

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(120)))
    kept = {f"tea {n}" for n in range(120) if n % 4}
    found = {text for n in range(3) for text in servers[0].as_(agent=f"agent-{n}").contents()}
    assert found == kept
    assert sum(agent["memory_count"] for agent in servers[1]("GET", "/api/v1/agents")[1]) == len(kept)
    assert_sound(postgres)


def test_both_stores_give_the_same_answers(postgres: str, tmp_path: Path) -> None:
    chance, clock = random.Random(9), Clock()
    with calling(str(tmp_path / "memory.db"), clock=clock) as one, calling(postgres, clock=clock) as other:
        texts = [" ".join(chance.choices(WORDS, k=chance.randint(1, 9))) for _ in range(250)]
        body = [{"content": t, "session_id": f"s{len(t) % 3}", "tags": [t.split()[0]]} for t in texts]
        for call in (one, other):
            assert call("POST", "memories/batch", {"memories": body})[0] == 201
        for _ in range(60):
            asked: dict[str, Any] = {"query": " ".join(chance.choices(WORDS, k=3)), "limit": 20}
            asked |= chance.choice([{}, {"threshold": 0}, {"session_id": "s1"}, {"tags": ["tea"]}])
            assert scored(one, asked) == scored(other, asked)
        for query in (
            "search=CAFÉ",
            "search=LIKES",
            "sort=oldest",
            "sort=access_count",
            "search=猫&tag=tea",
            "tag=user",
        ):
            assert listed(one, query) == listed(other, query)


def scored(call: Caller, asked: dict[str, Any]) -> list[tuple[str, float, float]]:
    hits = call("POST", "recall", asked)[1]["results"]
    return [(hit["memory"]["content"], hit["similarity"], hit["confidence"]) for hit in hits]


def listed(call: Caller, query: str) -> list[tuple[str, int]]:
    pairs = [(name, value) for name, _, value in (part.partition("=") for part in query.split("&"))]
    memories = call("GET", "memories", query=[("per_page", "100"), *pairs])[1]["memories"]
    return [(memory["content"], memory["access_count"]) for memory in memories]


@pytest.mark.parametrize("heard", [False, True], ids=["before the commit", "after the commit"])
def test_a_line_that_breaks_at_the_commit_leaves_one_memory(postgres: str, heard: bool) -> None:
    with calling(postgres) as call:
        call.remember("coffee")
        with Proxy(postgres, heard=heard, times=3) as proxy, Client(proxy.url, retry=Retry(6, first=0.0)) as client:
            memory = client.remember("bot", "tea at five")
            assert proxy.broken == (1 if heard else 3)  # what was heard needs no second write
        assert sorted(call.contents()) == ["coffee", "tea at five"]
        assert call("GET", f"memories/{memory.id}")[0] == 200
    assert_sound(postgres)


def test_a_line_that_breaks_for_good_is_a_typed_error_and_the_id_tells_what_became_of_it(postgres: str) -> None:
    with Proxy(postgres, heard=True, times=1000) as proxy, Client(proxy.url, retry=Retry(1)) as client:
        with pytest.raises(TransportError, match="lost"):
            client.remember("bot", "tea at five", memory_id=ID)
    with Client(postgres) as client:
        assert client.remember("bot", "tea at five", memory_id=ID).id == ID
        with pytest.raises(ConflictError):
            client.remember("bot", "coffee", memory_id=ID)
        assert [memory.content for memory in client.memories("bot")] == ["tea at five"]


def assert_sound(url: str) -> None:
    """The counters say what the rows say, and every posting belongs to a memory."""
    import psycopg

    with psycopg.connect(url) as connection:
        wrong = connection.execute(
            """SELECT s.id, s.count, count(m.number), s.last, max(m.number) FROM kronmem.spaces AS s
            LEFT JOIN kronmem.memories AS m ON m.space = s.id GROUP BY s.id
            HAVING s.count <> count(m.number) OR s.last < max(m.number)"""
        ).fetchall()
        blocks = connection.execute("SELECT space, first, memories, packed FROM kronmem.postings").fetchall()
        memories = set(connection.execute("SELECT space, number FROM kronmem.memories").fetchall())
    posted = [{(space, place >> PLACE_BITS) for place, *_ in unpack(tuple(block))} for space, *block in blocks]
    assert wrong == []
    assert [len(found) for found in posted] == [memories for _, _, memories, _ in blocks]
    assert set().union(*posted) <= memories
