"""Packed postings answer as SQLite's rows do: whatever was added, changed and deleted before."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kronmem.engine.postgres.store import PostgresStore
from kronmem.engine.sqlite.store import SqliteStore
from kronmem.engine.store import Filter, Found, Reader, Store
from tests.engine.calling import Caller, calling

TERMS = ("user", "tea", "oslo", "glacier", "cello", "nowhere")
SESSION = Filter(session_id="s1")


@pytest.fixture
def both(tmp_path: Any, database: str) -> Iterator[tuple[list[Caller], list[Store]]]:
    with ExitStack() as stack:
        file = str(tmp_path / "memory.db")
        callers = [stack.enter_context(calling(where)) for where in (file, database)]
        stores: list[Store] = [SqliteStore(file), PostgresStore(database)]
        for store in stores:
            stack.callback(store.close)
        yield callers, stores


def fill(call: Caller, count: int) -> None:
    """Some hundred memories in batches and one by one, a few of them long; then changes, deletions, keys."""
    choose = random.Random(8)

    def text(n: int) -> str:
        words = choose.choices(["user", "tea", "Oslo", "glacier", "likes", "often"], [8, 4, 2, 1, 5, 5], k=6)
        return " ".join([*words, f"w{n}", *(["cello and tea with the user"] * 80 if n % 60 == 0 else [])])

    drafts = [{"content": text(n), "session_id": f"s{n % 3}"} for n in range(count)]
    for start in range(0, count - 20, 100):
        assert call("POST", "memories/batch", {"memories": drafts[start : min(start + 100, count - 20)]})[0] < 300
    for draft in drafts[-20:]:
        call.remember(**draft)  # pyright: ignore[reportArgumentType]  # both are texts
    for n, name in enumerate(("tea in Oslo", "glacier for the user", "tea again")):
        call.remember(f"{name} {n}", key="city", session_id="s1")
    listed = {m["content"]: m["id"] for m in call("GET", "memories", query=(("limit", "1000"),))[1]["memories"]}
    for n, draft in enumerate(drafts):
        if n % 9 == 0:
            assert call("DELETE", f"memories/{listed[str(draft['content'])]}")[0] == 204
        elif n % 10 == 0:
            changed = {"content": f"glacier cello {n} " * (60 if n % 20 else 1)}
            assert call("PATCH", f"memories/{listed[str(draft['content'])]}", changed)[0] == 200
    assert call("DELETE", "sessions/s2")[0] == 200


def found(rows: Reader, bound: int, within: frozenset[int] | None) -> dict[str, tuple[list[Any], float, bool]]:
    space = rows.find_space("", "bot")
    assert space is not None
    answer: dict[str, Found] = dict(rows.postings(space, dict.fromkeys(TERMS, bound), within))
    return {term: (sorted(one.postings), one.spread, one.cut) for term, one in answer.items()}


def test_postings_are_those_of_the_other_store_after_every_kind_of_change(
    both: tuple[list[Caller], list[Store]],
) -> None:
    callers, stores = both
    for call in callers:
        fill(call, 620)
    with stores[0].read(10.0) as theirs, stores[1].read(10.0) as ours:
        space, same = ours.find_space("", "bot"), theirs.find_space("", "bot")
        assert space is not None
        assert same is not None
        assert (space.count, space.passages, space.words) == (same.count, same.passages, same.words)
        session = ours.matching(space, SESSION)
        assert len(session) > 150
        assert session == theirs.matching(same, SESSION)
        few = frozenset(random.Random(2).sample(sorted(session), 6))
        cut = [one for bound in (3, 40, 150) for one in found(ours, bound, None).values() if one[2]]
        assert len(cut) > 5
        for bound in (1, 3, 40, 150, 2000):
            for within in (None, session, few, frozenset[int]()):
                assert found(ours, bound, within) == found(theirs, bound, within), (bound, within and len(within))
        assert ours.terms_like(space, "gl", 4) == theirs.terms_like(same, "gl", 4) == ["glacier"]


def test_the_postings_of_deleted_memories_are_gone(both: tuple[list[Caller], list[Store]], database: str) -> None:
    import psycopg

    call = both[0][1]
    fill(call, 120)
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT count(*) > 50 FROM kronmem.postings").fetchone() == (True,)
        for memory in call("GET", "memories", query=(("limit", "1000"),))[1]["memories"]:
            assert call("DELETE", f"memories/{memory['id']}")[0] == 204
        assert connection.execute("SELECT count(*) FROM kronmem.postings").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM kronmem.meanings").fetchone() == (0,)
