from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kronmem.api.rules import FORGOTTEN
from tests.engine.calling import Caller, calling

ID = "5b6a9f3e-5b3b-4f57-9f3a-1f6c3e1c9f10"


def with_id(client_id: str, content: str = "tea at five", **fields: object) -> dict[str, Any]:
    return {"content": content, "metadata": {"kronmem": {"id": client_id}}, **fields}


def test_a_memory_comes_back_as_it_was_given(call: Caller) -> None:
    memory = call.remember(
        "tea at five", memory_type="habit", session_id="s", tags=["x", "y", "x"], metadata={"a": [1, None]}, ttl_days=2
    )
    assert uuid.UUID(memory["id"])
    expected = {
        "agent_id": "bot",
        "content": "tea at five",
        "memory_type": "habit",
        "session_id": "s",
        "tags": ["x", "y"],
        "metadata": {"a": [1, None]},
        "created_at": "2027-01-15T08:00:00.000000Z",
        "expires_at": "2027-01-17T08:00:00.000000Z",
        "pinned": False,
        "access_count": 0,
        "agent_memory_count": 1,
        "deduplicated": False,
        "superseded": False,
        "superseded_by": None,
    }
    assert {key: memory[key] for key in expected} == expected
    assert call("GET", f"memories/{memory['id']}")[1]["metadata"] == {"a": [1, None]}


def test_the_reserved_object_is_lifted_out_of_the_metadata(call: Caller) -> None:
    own = {"id": ID, "type": "habit", "tags": ["t"]}
    memory = call.remember("tea", memory_type="context", tags=["no"], metadata={"kronmem": own, "mine": 1})
    assert (memory["id"], memory["memory_type"], memory["tags"]) == (ID, "habit", ["t"])
    assert memory["metadata"] == {"mine": 1}


def test_a_users_own_metadata_of_that_name_is_kept(call: Caller) -> None:
    assert call.remember("tea", metadata={"kronmem": "mine"})["metadata"] == {"kronmem": "mine"}


def test_the_same_text_is_one_memory(call: Caller) -> None:
    first = call.remember("tea at five", tags=["a"], metadata={"v": 1}, ttl_days=1)
    again = call.remember("  tea at five\n", tags=["b", "a"], metadata={"v": 2}, ttl_days=3, pinned=True)
    assert again["deduplicated"]
    assert again["id"] == first["id"]
    assert (again["tags"], again["metadata"], again["pinned"]) == (["a", "b"], {"v": 2}, True)
    assert again["expires_at"] is None
    assert again["agent_memory_count"] == 1
    assert call.recall("tea", tags=["b"]) == ["tea at five"]


def test_a_repeat_that_says_less_takes_nothing_away(call: Caller) -> None:
    call.remember("tea at five", tags=["a"], metadata={"v": 1}, pinned=True)
    again = call.remember("tea at five", ttl_seconds=60)
    assert (again["tags"], again["metadata"], again["pinned"], again["expires_at"]) == (["a"], {"v": 1}, True, None)


@pytest.mark.parametrize(("first", "second", "days"), [(1, 5, 5), (5, 1, 5), (None, 1, None), (1, None, None)])
def test_a_repeat_takes_the_later_expiry(call: Caller, first: int | None, second: int | None, days: int | None) -> None:
    call.remember("tea", ttl_days=first)
    expires = call.remember("tea", ttl_days=second)["expires_at"]
    assert expires == (None if days is None else "2027-01-20T08:00:00.000000Z")


def test_the_same_text_in_another_session_or_agent_is_another_memory(call: Caller) -> None:
    ids = {call.remember("tea")["id"], call.remember("tea", session_id="s")["id"]}
    ids.add(call.as_(agent="other").remember("tea")["id"])
    ids.add(call.as_(owner="someone").remember("tea")["id"])
    assert len(ids) == 4


def test_the_same_client_id_is_one_memory(call: Caller) -> None:
    first = call("POST", "remember", with_id(ID))
    assert call("POST", "remember", with_id(ID)) == first
    assert first[1]["id"] == ID
    assert not first[1]["deduplicated"]
    assert call.contents() == ["tea at five"]


def test_an_idempotency_key_is_a_client_id_too(call: Caller) -> None:
    headers = [("Idempotency-Key", "order-17")]
    first = call("POST", "remember", {"content": "tea"}, headers=headers)
    assert call("POST", "remember", {"content": "tea"}, headers=headers) == first
    assert call("POST", "remember", {"content": "coffee"}, headers=headers)[0] == 409


@pytest.mark.parametrize(
    "change",
    [
        {"content": "coffee"},
        {"memory_type": "context"},
        {"session_id": "s"},
        {"tags": ["x"]},
        {"pinned": True},
        {"metadata": {"kronmem": {"id": ID}, "more": 1}},
    ],
)
def test_the_same_client_id_with_another_body_is_a_conflict(call: Caller, change: dict[str, object]) -> None:
    call("POST", "remember", with_id(ID))
    status, reply = call("POST", "remember", {**with_id(ID), **change})
    assert status == 409
    assert "already used" in reply["detail"]
    assert call.contents() == ["tea at five"]


def test_a_retry_after_a_forget_creates_nothing(call: Caller) -> None:
    call("POST", "remember", with_id(ID))
    assert call("DELETE", f"memories/{ID}")[0] == 204
    status, reply = call("POST", "remember", with_id(ID))
    assert (status, reply["detail"]) == (409, FORGOTTEN)
    assert call.contents() == []


def test_a_retry_after_the_agent_was_deleted_creates_nothing(call: Caller) -> None:
    call("POST", "remember", with_id(ID))
    call("DELETE", "/api/v1/agents/bot")
    assert call("POST", "remember", with_id(ID))[0] == 409
    assert call("GET", "/api/v1/agents") == (200, [])


def test_a_retry_of_a_deduplicated_memory_answers_the_same(call: Caller) -> None:
    old = call.remember("tea at five")
    first = call("POST", "remember", with_id(ID))
    assert first[1]["deduplicated"]
    assert first[1]["id"] == old["id"]
    assert call("POST", "remember", with_id(ID)) == first


def test_a_memory_is_forgotten_by_the_id_it_was_sent_under(call: Caller) -> None:
    call.remember("tea at five")
    call("POST", "remember", with_id(ID))
    assert call("GET", f"memories/{ID}")[1]["content"] == "tea at five"
    assert call("DELETE", f"memories/{ID}")[0] == 204
    assert call.contents() == []


def test_receipts_are_swept_and_the_memory_still_guards_its_id(call: Caller) -> None:
    call("POST", "remember", with_id(ID))
    call.clock.pass_days(31)
    call.remember("a write that sweeps")
    assert call("POST", "remember", with_id(ID))[1]["id"] == ID
    assert call("POST", "remember", with_id(ID, "coffee"))[0] == 409
    assert sorted(call.contents()) == ["a write that sweeps", "tea at five"]


def test_an_expired_memory_vanishes_at_once_everywhere(call: Caller) -> None:
    memory = call.remember("tea at five", session_id="s", ttl_seconds=60, tags=["x"])
    call.clock.time += 59
    assert call.recall("tea") == ["tea at five"]
    call.clock.time += 1
    assert call.recall("tea") == call.recall("tea", tags=["x"]) == call.contents() == []
    assert call("GET", f"memories/{memory['id']}")[0] == 404
    assert call("DELETE", f"memories/{memory['id']}")[0] == 404
    assert call("PATCH", f"memories/{memory['id']}", {"pinned": True})[0] == 404
    assert call("GET", "sessions")[1] == {"sessions": []}
    assert call("GET", "memories")[1]["total"] == 0
    assert call("GET", "/api/v1/agents")[1][0]["memory_count"] == 0
    assert call("DELETE", "memories")[1] == {"deleted": 0}


def test_an_expired_text_or_id_can_be_used_again(call: Caller) -> None:
    call("POST", "remember", with_id(ID, ttl_seconds=60))
    call.clock.time += 61
    again = call.remember("tea at five")
    assert not again["deduplicated"]
    assert again["id"] != ID
    assert call.recall("tea") == ["tea at five"]


def test_expired_rows_do_not_hide_live_ones(call: Caller) -> None:
    call.remember("tea is kept")
    for n in range(200):
        call.remember(f"tea {n}", ttl_seconds=60)
    call.clock.time += 61
    assert call.recall("tea") == ["tea is kept"]


def test_expired_memories_are_swept_by_writes_in_bounded_steps(call: Caller) -> None:
    for n in range(50):
        call.remember(f"short {n}", ttl_seconds=60)
    call.clock.pass_days(1)
    assert [call.remember(f"long {n}")["agent_memory_count"] for n in range(3)] == [1, 2, 3]
    assert len(call.contents()) == 3


@pytest.mark.parametrize(
    ("fields", "expires"),
    [
        ({"ttl_days": 1}, "2027-01-16T08:00:00.000000Z"),
        ({"ttl_days": 9, "ttl_seconds": 60}, "2027-01-15T08:01:00.000000Z"),
        ({"ttl_days": 1, "pinned": True}, None),
        ({}, None),
    ],
)
def test_seconds_beat_days_and_a_pin_beats_both(call: Caller, fields: dict[str, object], expires: str | None) -> None:
    assert call.remember("tea", **fields)["expires_at"] == expires


def test_a_clock_that_jumps_back_loses_nothing(call: Caller) -> None:
    call.remember("before", ttl_days=10)
    call.clock.pass_days(-100)
    call.remember("after", ttl_days=1)
    assert sorted(call.contents()) == ["after", "before"]
    call.clock.pass_days(2)
    assert call.contents() == ["before"]
    call.clock.pass_days(200)
    assert call.contents() == []


def test_a_batch_keeps_its_order_and_is_all_or_nothing(call: Caller) -> None:
    memories = [{"content": f"tea {n % 3}"} for n in range(5)]
    status, reply = call("POST", "memories/batch", {"memories": memories})
    assert status == 201
    assert [m["content"] for m in reply["memories"]] == ["tea 0", "tea 1", "tea 2", "tea 0", "tea 1"]
    assert [m["deduplicated"] for m in reply["memories"]] == [False, False, False, True, True]
    call("POST", "remember", with_id(ID, "first"))
    assert call("POST", "memories/batch", {"memories": [{"content": "new"}, with_id(ID, "second")]})[0] == 409
    assert "new" not in call.contents()


def test_identical_texts_from_many_threads_are_one_memory(path: str) -> None:
    with calling(path) as call, ThreadPoolExecutor(8) as pool:
        memories = list(pool.map(lambda _: call.remember("tea at five"), range(40)))
        assert len({m["id"] for m in memories}) == 1
        assert sum(not m["deduplicated"] for m in memories) == 1
        assert call.contents() == ["tea at five"]


def test_one_client_id_from_many_threads_is_one_memory(path: str) -> None:
    with calling(path) as call, ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: call("POST", "remember", with_id(ID)), range(40)))
        assert {status for status, _ in replies} == {201}
        assert {m["id"] for _, m in replies} == {ID}
        assert call.contents() == ["tea at five"]


def test_the_same_client_id_with_less_of_its_lifetime_left_is_the_same_memory(call: Caller) -> None:
    call("POST", "remember", with_id(ID, ttl_days=2))
    status, _ = call("POST", "remember", with_id(ID, ttl_seconds=86_400))
    assert status == 201
    assert call.contents() == ["tea at five"]
