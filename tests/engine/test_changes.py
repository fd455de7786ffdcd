"""Memory that changes its mind: keys, supersedes, updates, history, times and erasure, asked of both stores."""

from __future__ import annotations

import random
import sqlite3
import threading
import uuid
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kronmem.engine.handlers import timestamp
from kronmem.engine.postings import first_shown, to_microseconds
from kronmem.engine.remembering import SWEPT
from tests.engine.calling import START, Caller, Clock, calling

A, B, C = "Ada lives in Paris", "Ada lives in Berlin", "Ada lives in Rome"


def when(seconds: float) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).isoformat()


def read_back(seconds: float) -> float:
    """A time after its way through a reply."""
    return datetime.fromisoformat(timestamp(seconds).replace("Z", "+00:00")).timestamp()


def raw(path: str) -> Any:
    """Plain SQL beside the store."""
    return pytest.importorskip("psycopg").connect(path) if path.startswith("postgresql:") else sqlite3.connect(path)


def memories_table(path: str) -> str:
    return "kronmem.memories" if path.startswith("postgresql:") else "memories"


def late(seconds: float, **fields: Any) -> dict[str, Any]:
    """The metadata of a memory that was said so many seconds after the start and waited in an outbox since."""
    return {"kronmem": {"said_at": when(START + seconds), **fields}}


def history(call: Caller, memory_id: str) -> list[tuple[str, str | None]]:
    status, reply = call("GET", f"memories/{memory_id}/history")
    assert status == 200, reply
    return [(memory["content"], memory["superseded_by"]) for memory in reply["memories"]]


def test_a_later_memory_of_the_same_key_takes_the_place_of_the_old_one(call: Caller) -> None:
    paris = call.remember(A, key="home_city")
    berlin = call.remember(B, key="home_city")
    assert call.contents() == [B]
    assert call.recall("Where does Ada live?") == [B]
    assert berlin["key"] == "home_city"
    assert history(call, berlin["id"]) == history(call, paris["id"]) == [(B, None), (A, berlin["id"])]
    _, page = call("GET", "memories", query=[("history", "true")])
    assert [(m["content"], m["superseded"]) for m in page["memories"]] == [(B, False), (A, True)]
    assert page["total"] == 2


def walked(call: Caller, *query: tuple[str, str]) -> list[str]:
    """The texts of a list with history, page by page, two memories a page."""
    texts: list[str] = []
    after: list[tuple[str, str]] = []
    while True:
        _, page = call("GET", "memories", query=[("history", "true"), ("per_page", "2"), *query, *after])
        texts += [memory["content"] for memory in page["memories"]]
        if page["next"] is None:
            return texts
        after = [("after", page["next"])]


def test_a_list_with_history_is_newest_first_and_a_memory_comes_before_its_former_texts(call: Caller) -> None:
    city = call.remember(A, key="city")
    call.clock.time += 1
    call.remember("one")
    call.clock.time += 1
    call.remember("two")
    for text in (B, C):
        call.clock.time += 1
        assert call("PATCH", f"memories/{city['id']}", {"content": text})[0] == 200
    expected = ["two", "one", C, B, A]
    assert walked(call) == expected
    assert walked(call, ("sort", "oldest")) == expected[::-1]
    assert walked(call, ("search", "ada")) == [C, B, A]
    call.remember("D", key="city")
    assert walked(call) == ["D", *expected]


def test_a_list_with_history_goes_on_after_a_memory_that_was_forgotten_and_from_an_id(call: Caller) -> None:
    made = [call.remember(f"{number}") for number in range(5)]  # all of them in one moment
    _, page = call("GET", "memories", query=[("history", "true"), ("per_page", "2")])
    assert [memory["content"] for memory in page["memories"]] == ["4", "3"]
    call("DELETE", f"memories/{made[3]['id']}")
    after = [("history", "true"), ("after", page["next"])]
    assert [memory["content"] for memory in call("GET", "memories", query=after)[1]["memories"]] == ["2", "1", "0"]
    after[1] = ("after", made[2]["id"])
    assert [memory["content"] for memory in call("GET", "memories", query=after)[1]["memories"]] == ["1", "0"]
    after[1] = ("after", "~3~0")
    assert call("GET", "memories", query=after)[0] == 422


def test_after_an_import_the_time_it_was_said_still_decides(call: Caller) -> None:
    paris = call.remember(A, key="city")
    call.clock.time += 100
    call("PATCH", f"memories/{paris['id']}", {"tags": ["home"]})  # changed, not said again
    _, exported = call("GET", "memories/export")
    there = call.as_(agent="copy")
    assert there("POST", "memories/restore", {"memories": exported["memories"]})[1] == {"restored": 1, "present": 0}
    for place in (call, there):
        berlin = place.remember(B, metadata=late(50, key="city"))
        assert berlin["superseded_by"] is None
        assert place.contents() == [B]
        rome = place.remember(C, metadata=late(20, key="city"))
        assert rome["superseded_by"] == berlin["id"]
        assert history(place, berlin["id"]) == [(B, None), (C, berlin["id"]), (A, berlin["id"])]


def test_a_key_stands_for_one_session_and_one_agent(call: Caller) -> None:
    call.remember(A, key="city")
    call.remember(B, key="city", session_id="s")
    call.as_(agent="other").remember(C, key="city")
    call.remember(C, key="city of birth")
    assert sorted(call.contents()) == [B, A, C]


def test_a_then_b_then_a_again_ends_with_a(call: Caller) -> None:
    for text in (A, B, A):
        last = call.remember(text, key="city")
    assert last["deduplicated"] is False
    assert call.contents() == [A]
    assert [text for text, _ in history(call, last["id"])] == [A, B, A]


def test_the_same_text_under_two_keys_is_two_memories_and_under_one_key_one(call: Caller) -> None:
    first = call.remember(A, key="home")
    assert call.remember(A, key="home")["id"] == first["id"]
    assert call.remember(A, key="work")["id"] != first["id"]
    assert call.remember(A)["key"] is None
    assert len(call.contents()) == 3


def test_what_was_said_earlier_and_arrives_later_buries_nothing(call: Caller) -> None:
    call.clock.time += 100
    berlin = call.remember(B, key="city")
    old = call.remember(A, metadata=late(10, key="city"))
    assert old["superseded_by"] == berlin["id"]
    assert old["created_at"] == "2027-01-15T08:00:10.000000Z"
    assert call.contents() == [B]
    assert history(call, berlin["id"]) == [(B, None), (A, berlin["id"])]


def test_a_text_that_is_there_and_arrives_late_with_a_memory_to_supersede_buries_nothing(call: Caller) -> None:
    rome, paris = call.remember(C), call.remember(A)
    call.clock.time += 100
    berlin = call.remember(B, supersedes=paris["id"])
    again = call.remember(C, metadata=late(50, supersedes=paris["id"]))  # before Berlin: as if it had come in time
    assert (again["id"], again["deduplicated"], again["superseded_by"]) == (rome["id"], True, berlin["id"])
    assert call.contents() == [B]
    assert call.recall("Where does Ada live?") == [B]
    assert history(call, rome["id"]) == [(B, None), (C, berlin["id"]), (A, berlin["id"])]


def test_a_text_said_anew_since_stays_beside_the_memory_that_a_late_one_names(call: Caller) -> None:
    paris = call.remember(A)
    call.clock.time += 100
    call.remember(B, supersedes=paris["id"])
    call.clock.time += 100
    call.remember(C)
    call.remember(C, metadata=late(50, supersedes=paris["id"]))
    assert sorted(call.contents()) == [B, C]


def test_a_text_that_was_said_again_is_as_young_as_that(call: Caller) -> None:
    call.remember(A, key="city")
    call.clock.time += 100
    paris = call.remember(A, key="city")  # said again: what was said in between is older
    berlin = call.remember(B, metadata=late(50, key="city"))
    assert berlin["superseded_by"] == paris["id"]
    assert call.contents() == [A]


def test_a_queued_memory_is_never_dated_after_its_arrival(call: Caller) -> None:
    made = call.remember(A, metadata=late(3600))
    assert made["created_at"] == "2027-01-15T08:00:00.000000Z"


def test_a_clock_that_was_set_back_does_not_bury_the_new_one(call: Caller) -> None:
    call.remember(A, key="city")
    call.clock.time -= 3600
    call.remember(B, key="city")
    assert call.contents() == [B]


def test_supersedes_takes_the_place_by_id_and_inherits_the_key(call: Caller) -> None:
    paris = call.remember(A, key="city")
    berlin = call.remember(B, supersedes=paris["id"])
    assert berlin["key"] == "city"
    rome = call.remember(C, supersedes=paris["id"])  # whatever has taken its place by now
    assert call.contents() == [C]
    assert [text for text, _ in history(call, paris["id"])] == [C, B, A]
    assert rome["superseded_by"] is None


def test_superseding_by_a_text_that_is_there_leaves_that_one(call: Caller) -> None:
    paris, berlin = call.remember(A), call.remember(B)
    again = call.remember(B, supersedes=paris["id"])
    assert (again["id"], again["deduplicated"]) == (berlin["id"], True)
    assert call.contents() == [B]
    assert call.remember(B, supersedes=berlin["id"])["id"] == berlin["id"]
    assert call.contents() == [B]


@pytest.mark.parametrize("wrong", ["unknown", "other session", "other agent", "forgotten"])
def test_superseding_what_is_not_there_is_refused_and_stores_nothing(call: Caller, wrong: str) -> None:
    other = call.as_(agent="other") if wrong == "other agent" else call
    there = other.remember(A, session_id="s" if wrong == "other session" else None)["id"]
    if wrong == "forgotten":
        call("DELETE", f"memories/{there}")
    named = "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d" if wrong == "unknown" else there
    status, _ = call("POST", "remember", {"content": B, "supersedes": named})
    assert status == 404
    assert B not in call.contents()


def test_an_update_changes_a_memory_in_place_and_keeps_the_former_text(call: Caller) -> None:
    before = call.remember("the port is 8080", tags=["net"])
    call.remember("an other one")
    call.clock.time += 60
    status, after = call("PATCH", f"memories/{before['id']}", {"content": "the port is 9090", "tags": ["net", "new"]})
    assert status == 200
    assert (after["id"], after["created_at"]) == (before["id"], before["created_at"])
    assert after["updated_at"] == "2027-01-15T08:01:00.000000Z"
    assert call.recall("port 9090")[0] == "the port is 9090"
    assert "the port is 8080" not in call.recall("8080", threshold=0)
    assert call.contents() == ["an other one", "the port is 9090"]
    assert history(call, before["id"]) == [("the port is 9090", None), ("the port is 8080", before["id"])]


@pytest.mark.parametrize("change", ["update", "key"])
def test_what_expires_with_its_history_is_counted_once(call: Caller, change: str) -> None:
    for text in ("one", "two"):
        call.remember(text)
    first = call.remember(A, key="city", ttl_days=1)
    for text in (B, C):
        if change == "update":
            assert call("PATCH", f"memories/{first['id']}", {"content": text})[0] == 200
        else:
            call.remember(text, key="city", ttl_days=1)
    call.clock.pass_days(2)
    assert call.remember("three")["agent_memory_count"] == 3
    assert call.remember("four")["agent_memory_count"] == len(call.contents()) == 4
    assert call("GET", "/api/v1/agents")[1][0]["memory_count"] == 4


def test_an_update_of_anything_else_makes_no_history(call: Caller) -> None:
    memory = call.remember("tea at five", ttl_days=1)
    changes = {"memory_type": "preference", "tags": ["drink"], "metadata": {"n": 1}, "ttl_days": 0}
    status, after = call("PATCH", f"memories/{memory['id']}", changes)
    assert status == 200
    assert [after[name] for name in ("memory_type", "tags", "metadata", "expires_at")] == [
        "preference",
        ["drink"],
        {"n": 1},
        None,
    ]
    assert history(call, memory["id"]) == [("tea at five", None)]
    assert call.contents(memory_type="preference") == ["tea at five"]
    assert call.contents(memory_type="fact") == []
    assert call.recall("five", tags=["drink"]) == ["tea at five"]


def test_an_update_to_a_text_that_is_there_or_of_what_was_superseded_is_a_conflict(call: Caller) -> None:
    paris, berlin = call.remember(A), call.remember(B)
    assert call("PATCH", f"memories/{paris['id']}", {"content": B})[0] == 409
    assert call("PATCH", f"memories/{paris['id']}", {"content": A})[0] == 200  # its own
    call.remember(C, supersedes=berlin["id"])
    assert call("PATCH", f"memories/{berlin['id']}", {"content": "x"})[0] == 409
    assert call("PATCH", "memories/unknown", {"content": "x"})[0] == 404


def test_forgetting_the_current_one_forgets_its_history_and_revives_nothing(call: Caller) -> None:
    call.remember(A, key="city")
    call.remember(B, key="city")
    rome = call.remember(C, key="city")
    call("PATCH", f"memories/{rome['id']}", {"content": "Ada lives in Oslo"})
    assert call("DELETE", f"memories/{rome['id']}")[0] == 204
    _, page = call("GET", "memories", query=[("history", "true")])
    assert page["memories"] == []
    assert call("GET", f"memories/{rome['id']}/history")[0] == 404


def test_forgetting_one_of_the_history_leaves_the_rest_linked(call: Caller) -> None:
    ids = [call.remember(text, key="city")["id"] for text in (A, B, C)]
    assert call("DELETE", f"memories/{ids[1]}")[0] == 204
    assert history(call, ids[2]) == [(C, None), (A, ids[2])]


def test_history_is_cleared_with_its_session_and_by_time(call: Caller) -> None:
    for text in (A, B):
        call.remember(text, key="city", session_id="s")
        call.clock.time += 10
    call.remember("kept")
    assert call("POST", "memories/clear", {"before": when(START + 5)}) == (200, {"deleted": 0})
    assert [m["content"] for m in call("GET", "memories", query=[("history", "true")])[1]["memories"]] == ["kept", B]
    assert call("POST", "memories/clear", {"session_id": "s", "before": when(START + 15)}) == (200, {"deleted": 1})
    assert call.contents() == ["kept"]
    assert call("POST", "memories/clear", {}) == (200, {"deleted": 1})


def test_since_is_included_and_until_is_not(call: Caller) -> None:
    for n in range(4):
        call.remember(f"tea number {n}")
        call.clock.time += 10
    times = {"since": when(START + 10), "until": when(START + 30)}
    assert call.contents(**times) == ["tea number 2", "tea number 1"]
    assert sorted(call.recall("tea number", kronmem=times, threshold=0)) == ["tea number 1", "tea number 2"]
    assert call.recall("tea number", kronmem={"since": when(START + 31)}, threshold=0) == []


FINE = [START + n / 7 + n * 2**-22 for n in range(1, 13)]
"""Times with more digits than microseconds, some of which are shown too late and some too early."""


def check_bounds(call: Caller) -> None:
    """Every memory that is listed is within the times from its own on, and not before it."""
    _, page = call("GET", "memories", query=[("sort", "oldest"), ("per_page", "100")])
    texts = [memory["content"] for memory in page["memories"]]
    for at, memory in enumerate(page["memories"]):
        assert call.contents(since=memory["created_at"], sort="oldest") == texts[at:]
        assert call.contents(until=memory["created_at"], sort="oldest") == texts[:at]
        hits = call.recall("tea number", limit=100, threshold=0, kronmem={"since": memory["created_at"]})
        assert sorted(hits) == sorted(texts[at:])
    for at, memory in enumerate(page["memories"]):
        deleted = call("POST", "memories/clear", {"before": memory["created_at"]})[1]
        assert deleted == {"deleted": min(at, 1)}
        assert call.contents(sort="oldest") == texts[at:]


def test_a_memory_is_not_older_than_it_says(call: Caller) -> None:
    for n, time in enumerate(FINE):
        call.clock.time = time
        call.remember(f"tea number {n}")
    check_bounds(call)


def test_a_memory_that_was_stored_with_a_finer_time_is_not_older_than_it_says(path: str) -> None:
    with calling(path) as call:
        for n in range(len(FINE)):
            call.remember(f"tea number {n}")
        with closing(raw(path)) as db, db:
            for n, time in enumerate(FINE):
                db.execute(f"UPDATE {memories_table(path)} SET created = {time!r} WHERE content = 'tea number {n}'")
        check_bounds(call)


def test_a_time_is_read_back_as_the_number_that_it_was() -> None:
    choose = random.Random(1)
    for low, high in ((0, 10), (1e9, 2.2e9), (2.0**32, 2.0**33)):
        for time in (choose.uniform(low, high) for _ in range(2000)):
            assert read_back(to_microseconds(time)) == to_microseconds(time)
            near = read_back(time)
            for step in range(-5, 6):
                other = time + step * 2**-22
                assert (other >= (first_shown(near) or 0)) == (read_back(other) >= near)


def test_times_without_a_zone_are_refused(call: Caller) -> None:
    assert call("GET", "memories", query=[("since", "2027-01-15T08:00:00")])[0] == 422


def test_looking_need_not_count_as_access(call: Caller) -> None:
    call.remember("tea at five")
    call.recall("tea", kronmem={"count_access": False})
    assert call("GET", "memories")[1]["memories"][0]["access_count"] == 0
    call.recall("tea")
    assert call("GET", "memories")[1]["memories"][0]["access_count"] == 1


def test_roles_are_kept_and_unknown_ones_refused(call: Caller) -> None:
    assert call.remember("tea at five", role="assistant")["role"] == "assistant"
    assert call("POST", "remember", {"content": "x", "role": "system"})[0] == 422


def test_a_summary_counts_exactly_what_is_current(call: Caller) -> None:
    call.remember(A, key="city", tags=["a", "b"], memory_type="preference")
    call.remember(B, key="city", tags=["b"], session_id="s")
    call.remember(C, key="city", tags=["b"], session_id="s")
    call.remember("gone soon", ttl_seconds=60, tags=["x"])
    call.clock.pass_days(1)
    call.remember("tea")
    assert call("GET", "summary")[1] == {
        "count": 3,
        "types": {"fact": 2, "preference": 1},
        "tags": {"a": 1, "b": 2},
        "sessions": {"s": 1},
        "days": {"2027-01-15": 2, "2027-01-16": 1},
    }


def test_erasing_counts_what_it_removed_and_a_late_retry_revives_nothing(call: Caller) -> None:
    call.remember(A, key="city")
    own = {"kronmem": {"id": "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d", "key": "city"}}
    call.remember(B, metadata=own)
    call("PUT", "state/k", {"value": 1})
    status, gone = call("POST", "erase")
    assert status == 200
    assert gone == {"memories": 1, "history": 1, "state": 1, "receipts": 1, "complete": True}
    assert call("GET", "/api/v1/agents")[1] == []
    late = call("POST", "remember", {"content": B, "metadata": own})  # the retry of a request whose reply was lost
    assert late[0] == 409
    assert call.contents() == []
    call.remember("something new")
    assert call.contents() == ["something new"]
    call.clock.pass_days(31)
    call.remember("a sweep")
    call.remember(B, metadata=own)
    assert B in call.contents()
    assert call("POST", "erase")[1]["memories"] == 3
    assert call("POST", "erase")[1] == {"memories": 0, "history": 0, "state": 0, "receipts": 0, "complete": True}


def test_numbers_of_an_erased_agent_are_not_given_out_again(call: Caller) -> None:
    call.remember(A)
    call("POST", "erase")
    call.remember(B)
    assert call.contents() == [B]
    assert call.recall("Where does Ada live?") == [B]


def test_no_fragment_of_an_erased_text_is_left_in_the_files(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    secret = "zanzibar xylophone quixotic"
    with calling(str(path)) as call:
        ada = call.as_(agent="user-ada")
        for n in range(30):
            ada.remember(f"{secret} number {n} " + "padding " * 300, key="k" if n % 2 else None)
        forgotten = ada.remember(f"{secret} forgotten")
        ada("DELETE", f"memories/{forgotten['id']}")
        ada("PUT", "state/s", {"value": secret})
        call.as_(agent="user-bob").remember("Bob stays where he is")
        reply = ada("POST", "erase")[1]
        assert reply["complete"] is True
        raw = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert [word for word in (*secret.split(), "padding") if word.encode() in raw] == []
        assert "Bob stays where he is" in call.as_(agent="user-bob").contents()


def test_an_erasure_that_a_reader_holds_up_says_so(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with calling(str(path)) as call:
        call.remember("zanzibar")
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memories").fetchone()
        assert call("POST", "erase", timeout=0.2)[1]["complete"] is False
        reader.execute("COMMIT")
        reader.close()
        assert call("POST", "erase")[1]["complete"] is True
    assert b"zanzibar" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_a_state_is_written_only_over_the_value_that_was_read(call: Caller) -> None:
    assert call("PUT", "state/k", {"value": 1, "if_updated_at": None})[0] == 200
    assert call("PUT", "state/k", {"value": 2, "if_updated_at": None})[0] == 409
    seen = call("GET", "state/k")[1]["updated_at"]
    status, stored = call("PUT", "state/k", {"value": 2, "if_updated_at": seen})
    assert status == 200
    assert call("PUT", "state/k", {"value": 3, "if_updated_at": seen})[0] == 409
    assert call("PUT", "state/k", {"value": 3, "if_updated_at": stored["updated_at"]})[0] == 200
    assert call("PUT", "state/k", {"value": 4})[0] == 200
    assert call("GET", "state/k")[1]["value"] == 4


def test_exported_memories_are_restored_as_they_were_and_only_once(call: Caller) -> None:
    call.remember(A, key="city", tags=["x"], role="user")
    call.clock.time += 10
    berlin = call.remember(B, key="city", pinned=True, metadata={"n": 1})
    call("PATCH", f"memories/{berlin['id']}", {"content": "Ada lives in Bern"})
    call.recall("Ada")
    _, page = call("GET", "memories", query=[("history", "true"), ("per_page", "100")])
    exported = page["memories"][::-1]
    other = call.as_(agent="copy")
    assert other("POST", "memories/restore", {"memories": exported})[1] == {"restored": 3, "present": 0}
    assert other("POST", "memories/restore", {"memories": exported})[1] == {"restored": 0, "present": 3}
    _, copied = other("GET", "memories", query=[("history", "true"), ("per_page", "100")])
    strip = lambda one: {name: value for name, value in one.items() if name != "agent_id"}  # noqa: E731
    key = lambda one: one["id"]  # noqa: E731
    assert sorted(map(strip, copied["memories"]), key=key) == sorted(map(strip, exported), key=key)
    assert history(other, berlin["id"]) == history(call, berlin["id"])
    assert other.recall("Where does Ada live?") == ["Ada lives in Bern"]


def restored(call: Caller, memories: list[Any]) -> tuple[int, list[str]]:
    """How many were restored, and what is there after the next write has swept."""
    status, reply = call("POST", "memories/restore", {"memories": memories})
    assert status == 200, reply
    there = call.contents()
    call.remember("swept")
    assert call.contents() == ["swept", *there]
    return reply["restored"], there


@pytest.mark.parametrize("field", ["id", "superseded_by"])
def test_an_import_takes_uuids_alone_and_writes_them_in_one_way(call: Caller, field: str) -> None:
    known = str(uuid.uuid4())
    memory = {"id": str(uuid.uuid4()), "content": A, "created_at": when(START), "superseded_by": str(uuid.uuid4())}
    for wrong in ("note-1", known.replace("-", ""), f"{known}\n", f"{{{known}}}"):
        assert call("POST", "memories/restore", {"memories": [{**memory, field: wrong}]})[0] == 422
    assert call("POST", "memories/restore", {"memories": [{**memory, field: known.upper()}]})[0] == 200
    _, page = call("GET", "memories", query=[("history", "true")])
    assert [one[field] for one in page["memories"]] == [known]


@pytest.mark.parametrize("here", [{"content": A}, {"content": A, "key": "city"}, {"content": B, "key": "city"}])
def test_what_has_expired_does_not_stand_in_the_way_of_an_import(call: Caller, here: dict[str, Any]) -> None:
    call.clock.time += 100
    call.remember(**here, ttl_days=1)
    call.clock.pass_days(2)
    lasting = {"id": str(uuid.uuid4()), **here, "content": A, "created_at": when(START)}
    assert restored(call, [lasting]) == (1, [A])


def test_an_import_replaces_what_has_expired_under_its_ids_and_keeps_the_history(call: Caller) -> None:
    memory = call.remember(A, ttl_days=1)
    call("PATCH", f"memories/{memory['id']}", {"content": B})
    _, page = call("GET", "memories", query=[("history", "true"), ("sort", "oldest")])
    exported = [{**one, "expires_at": None} for one in page["memories"]]
    exported.sort(key=lambda one: one["superseded_by"] is None)
    call.clock.pass_days(2)
    assert restored(call, exported) == (2, [B])
    assert history(call, memory["id"]) == [(B, None), (A, memory["id"])]


def test_an_import_brings_no_history_back_whose_memory_has_expired(call: Caller) -> None:
    call.remember(A, key="city")
    call.clock.time += 1
    call.remember(B, key="city", ttl_days=1)
    _, page = call("GET", "memories", query=[("history", "true"), ("sort", "oldest")])
    call.clock.pass_days(2)
    assert restored(call, page["memories"]) == (0, [])
    call.remember("swept once more")
    _, page = call("GET", "memories", query=[("history", "true")])
    assert [one["content"] for one in page["memories"]] == ["swept once more", "swept"]


@pytest.mark.parametrize("key", [None, "city"])
def test_superseding_what_was_superseded_by_an_expired_memory_is_refused(call: Caller, key: str | None) -> None:
    first = call.remember(A, key=key)
    earlier = [{"content": f"swept before it {n}", "ttl_days": 1} for n in range(SWEPT)]
    assert call("POST", "memories/batch", {"memories": earlier})[0] == 201
    call.clock.time += 1
    call.remember(B, supersedes=first["id"], ttl_days=1)
    call.remember("kept")
    call.clock.pass_days(2)
    assert call("POST", "remember", {"content": C, "supersedes": first["id"]})[0] == 404
    assert call.remember("two")["agent_memory_count"] == len(call.contents()) == 2
    assert call.remember(C, key=key)["agent_memory_count"] == 3


def test_memories_that_an_import_puts_in_a_circle_have_an_end(call: Caller) -> None:
    ids = [str(uuid.uuid4()) for _ in range(2)]
    circle = [
        {"id": ids[n], "content": text, "created_at": when(START), "superseded_by": ids[1 - n]}
        for n, text in enumerate((A, B))
    ]
    assert call("POST", "memories/restore", {"memories": circle})[0] == 200
    assert {text for text, _ in history(call, ids[0])} == {A, B}
    assert call("POST", "remember", {"content": C, "supersedes": ids[0]})[0] == 404


def test_many_writers_of_one_key_end_with_one_current_memory_and_a_whole_history(call: Caller) -> None:
    call.clock = Clock()

    def write(writer: int) -> None:
        for n in range(5):
            call.remember(f"writer {writer} says {n}", key="mood")

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _, page = call("GET", "memories", query=[("per_page", "100")])
    (current,) = page["memories"]
    assert len(history(call, current["id"])) == 30


def test_a_state_is_taken_away_only_if_it_is_the_value_that_was_read(call: Caller) -> None:
    call("PUT", "state/k", {"value": 1})
    seen = call("GET", "state/k")[1]["updated_at"]
    call("PUT", "state/k", {"value": 2})
    assert call("PUT", "state/k", {"value": None, "if_updated_at": seen})[0] == 409
    now = call("GET", "state/k")[1]
    assert now["value"] == 2
    status, reply = call("PUT", "state/k", {"value": None, "if_updated_at": now["updated_at"]})
    assert (status, reply) == (200, {"key": "k", "stored": False, "updated_at": None})
    assert call("GET", "state/k")[0] == 404
    assert call("PUT", "state/k", {"value": None, "if_updated_at": now["updated_at"]})[0] == 409
    assert call("PUT", "state/k", {"value": None})[0] == 200  # without a condition null is a value as it was
    assert call("GET", "state/k")[1]["value"] is None
