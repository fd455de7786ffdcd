"""Reading and deleting at a server that leaves duplicates, cuts at 20 and knows only ids of its own."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest

from kronmem import NotFoundError
from kronmem.core import calls
from tests.kronvex.stepping import Killed, Process
from tests.kronvex.stores import START, counted, mark, row
from tests.services import KronvexServer
from tests.services.raw import RawServer, respond
from tests.services.rows import Agent
from tests.shells import shell

UNKNOWN = "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"


@pytest.fixture
def alice(server: KronvexServer, client: Any) -> Agent:
    """An agent that the client knows already."""
    client.remember("alice", "the very first memory")
    client.forget("alice", next(iter(client.memories("alice"))).id)
    return server.agents[0]


def contents(hits: Any) -> list[str]:
    return [hit.content for hit in hits]


# ── as many requests as need be ──────────────────────────────────────────────────────────────────────────────────


def test_a_new_memory_and_a_plain_recall_are_one_request_each(server: KronvexServer, client: Any, alice: Agent) -> None:
    with counted(server) as sent:
        client.remember("alice", "alpha bravo", tags=["t"], session_id="s", pinned=True)
        client.remember("alice", "charlie delta", "decision", ttl_days=3)
        client.recall("alice", "alpha bravo")
        client.recall("alice", "alpha bravo", session_id="s", memory_type="fact")
        client.inject_context("alice", "alpha bravo", fill=False)
        list(client.memories("alice"))
    assert sent == [
        "POST remember",
        "POST remember",
        "POST recall",
        "POST recall",
        "POST inject-context",
        "GET memories",
    ]


# ── contexts ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_context_holds_no_superseded_text(client: Any, alice: Agent) -> None:
    row(alice, "Billing listens on port eighty", superseded_by="x")
    assert client.inject_context("alice", "What about Billing") == ""
    row(alice, "Billing listens on port ninety")
    block = client.inject_context("alice", "What about Billing")
    assert "ninety" in block
    assert "eighty" not in block


def test_a_context_shows_a_duplicate_once_and_deletes_the_surplus(client: Any, alice: Agent) -> None:
    for content in ("alpha bravo", "charlie delta"):  # one that answers, and one that fills up
        for _ in range(2):
            row(alice, content, metadata=mark(content))
    block = client.inject_context("alice", "alpha bravo")
    assert (block.count("alpha bravo"), block.count("charlie delta")) == (1, 1)
    assert sorted(texts_of(alice)) == ["alpha bravo", "charlie delta"]


def test_a_context_is_filled_with_the_pinned_and_the_preferred_before_the_newest(client: Any, alice: Agent) -> None:
    row(alice, "the pinned one", pinned=True)
    row(alice, "the preferred one", memory_type="preference")
    for number in range(10):
        row(alice, f"{number} thing{number}")
    block = client.inject_context("alice", "zulu", limit=3)
    shown = [block.find(text) for text in ("the pinned one", "the preferred one", "9 thing9")]
    assert -1 not in shown
    assert shown == sorted(shown)
    assert "8 thing8" not in block


def test_a_reply_that_lists_no_memories_at_all_is_shown_as_it_came(kind: str) -> None:
    vendor = respond(200, {"x-kronvex-version": "0.4.0"}, {"context_block": "The user likes tea"})
    with RawServer([vendor]) as server, shell(kind, server.url, outbox=False) as client:
        assert "The user likes tea" in client.inject_context("alice", "tea")
        assert len(server.requests) == 1


def test_a_list_holds_no_superseded_memory(client: Any, alice: Agent) -> None:
    row(alice, "Billing listens on port eighty", superseded_by="x", session_id="s")
    row(alice, "Billing listens on port ninety", session_id="s")
    assert contents(client.memories("alice")) == ["Billing listens on port ninety"]
    assert client.clear("alice", session_id="s") == 2
    assert texts_of(alice) == []


def texts_of(agent: Agent) -> list[str]:
    return [one.content for one in agent.kept()]


# ── what the caller has, and standing notes ──────────────────────────────────────────────────────────────────────


def test_what_the_caller_has_is_left_out_and_others_take_its_place_without_the_listing(
    server: KronvexServer, client: Any, alice: Agent
) -> None:
    for number in range(30):
        row(alice, f"alpha bravo thing{number}", metadata=mark(f"0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b{number:02}"))
    had = client.recall("alice", "alpha bravo")
    mine = [one.metadata["kronmem"]["id"] for one in alice.rows if one.content == had[0].content]
    known = [*mine, *(hit.memory.id for hit in had[1:])]
    with counted(server) as sent:
        rest = client.recall("alice", "alpha bravo", exclude=known)
        assert client.recall("alice", "alpha bravo", exclude=known, tags=["none"]) == []
        block = client.inject_context("alice", "alpha bravo", exclude=known, fill=False)
    assert len(rest) == 5
    assert not {*contents(had)} & {*contents(rest)}
    assert not [text for text in contents(had) if f"{text}\n" in block]
    assert sent[0] == "POST recall"
    assert sent[1:] == ["POST recall", "GET memories", "POST inject-context"], "the filter walks, not what is left out"


def test_a_near_duplicate_of_what_the_caller_has_is_left_out_too(client: Any, alice: Agent) -> None:
    one = row(alice, "The user drinks green tea")
    row(alice, "Green tea the user drinks!")
    row(alice, "The user drinks no green tea")
    found = client.recall("alice", "user drinks green tea", exclude=[one.id])
    assert contents(found) == ["The user drinks no green tea"]


def test_standing_notes_come_first_and_are_listed_once_in_a_while(
    server: KronvexServer, client: Any, alice: Agent
) -> None:
    pinned = row(alice, "the pinned one", pinned=True)
    for number in range(6):
        row(alice, f"preference {number}", memory_type="preference")
    row(alice, "alpha bravo")
    row(alice, "preference " + "long " * 120, memory_type="preference")
    with counted(server) as sent:
        for limit, notes in ((10, 5), (4, 3)):
            found = client.recall("alice", "alpha bravo", limit=limit, fill="profile")
            assert contents(found)[: notes + 1][-1] == "alpha bravo"
            assert contents(found)[:3] == ["the pinned one", "preference 5", "preference 4"]
            assert [hit.standing for hit in found] == [True] * notes + [False]
        assert "preference 2" in client.inject_context("alice", "alpha bravo", limit=10, fill="profile")
    assert sent == ["POST recall", "GET memories", "POST recall", "POST inject-context"]
    assert "the pinned one" not in contents(client.recall("alice", "alpha", fill="profile", exclude=[pinned.id]))
    assert "the pinned one" not in contents(client.recall("alice", "alpha", fill="profile", memory_type="preference"))


def test_standing_notes_of_another_writer_stand_after_a_minute(
    server: KronvexServer, client: Any, alice: Agent
) -> None:
    process, now = Process(server), 0.0
    process.link.now = lambda: now
    noted = calls.recall("alice", "zulu", 5, calls.MemoryFilter(), None, most=20, fill="profile")
    assert process.call(noted) == []
    row(alice, "User likes tea", memory_type="preference")
    assert process.call(noted) == []
    now = 61.0
    assert contents(process.call(noted)) == ["User likes tea"]


def test_standing_notes_are_listed_again_after_a_write(client: Any, alice: Agent) -> None:
    assert client.recall("alice", "alpha bravo", fill="profile") == []
    stored = client.remember("alice", "User likes tea", "preference")
    assert contents(client.recall("alice", "alpha bravo", fill="profile")) == ["User likes tea"]
    client.forget("alice", stored.id)
    assert client.recall("alice", "alpha bravo", fill="profile") == []


def test_a_preference_behind_a_page_of_other_memories_stands_too(client: Any, alice: Agent) -> None:
    row(alice, "User likes tea", memory_type="preference")
    for number in range(100):
        row(alice, f"{number} thing{number}")
    assert contents(client.recall("alice", "zulu", fill="profile")) == ["User likes tea"]


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("memory_id", ["nope", "mem_123", UNKNOWN, UNKNOWN.replace("-", "")])
def test_an_id_that_the_server_does_not_know_is_not_found(client: Any, alice: Agent, memory_id: str) -> None:
    row(alice, "alpha bravo", metadata=mark("k1"))
    with pytest.raises(NotFoundError, match="may have merged it"):
        client.forget("alice", memory_id)
    assert texts_of(alice) == ["alpha bravo"]


def test_a_memory_is_forgotten_by_the_id_it_was_given_on_another_machine(
    server: KronvexServer, client: Any, alice: Agent
) -> None:
    own = str(uuid4())
    for number in range(250):
        row(alice, f"{number} thing{number}")
    row(alice, "alpha bravo", metadata=mark(own), created_at=alice.rows[0].created_at)
    client.forget("alice", own)
    assert "alpha bravo" not in texts_of(alice)
    assert len(alice.kept()) == 250
    with pytest.raises(NotFoundError):
        client.forget("alice", own)


def test_forgetting_twice_is_not_found_the_second_time(client: Any, alice: Agent) -> None:
    stored = client.remember("alice", "alpha bravo")
    client.forget("alice", stored.id)
    with pytest.raises(NotFoundError):
        client.forget("alice", stored.id)


# ── duplicates ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("read", ["recall", "memories"])
def test_what_a_stalled_store_left_twice_is_shown_once_and_the_surplus_deleted(
    client: Any, alice: Agent, read: str
) -> None:
    first, second, third = (row(alice, "alpha bravo", metadata=mark("k1")) for _ in range(3))
    row(alice, "alpha bravo", session_id="s", metadata=mark("k2"))
    row(alice, "charlie delta", metadata=mark("k1"))
    found = client.recall("alice", "alpha bravo") if read == "recall" else client.memories("alice")
    shown = [one.memory.id if read == "recall" else one.id for one in found if one.content == "alpha bravo"]
    assert (len(shown), shown.count(first.id)) == (2, 1)
    assert (second.deleted, third.deleted, first.deleted) == (True, True, False)
    assert len(alice.kept()) == 3


def test_a_surplus_that_cannot_be_deleted_does_not_spoil_the_answer(
    server: KronvexServer, client: Any, alice: Agent
) -> None:
    for _ in range(2):
        row(alice, "alpha bravo", metadata=mark("k1"))
    server.refuse.add("DELETE")
    assert contents(client.recall("alice", "alpha bravo")) == ["alpha bravo"]
    assert len(alice.kept()) == 2


def test_forgetting_one_of_two_forgets_both_and_nothing_else(client: Any, alice: Agent) -> None:
    first, second = (row(alice, "50% of alpha_bravo\nis \\ ours", metadata=mark("k1")) for _ in range(2))
    other = row(alice, "50% of alpha_bravo\nis \\ ours", session_id="s", metadata=mark("k2"))
    client.forget("alice", second.id)
    assert (first.deleted, second.deleted, other.deleted) == (True, True, False)


@pytest.mark.parametrize("how", ["forget", "recall"])
def test_a_kill_at_any_step_leaves_duplicates_that_the_next_process_removes(how: str) -> None:
    for kill_before in range(100):
        server = KronvexServer()
        server.agents.append(agent := Agent("alice", server.key, START))
        first, *_ = (row(agent, "alpha bravo", metadata=mark("k1")) for _ in range(3))
        theirs = row(agent, "alpha bravo", session_id="s", metadata=mark("k2"))
        everything = calls.recall("alice", "alpha bravo", 5, calls.MemoryFilter(), None, most=20)
        call = calls.forget("alice", first.id) if how == "forget" else everything
        doomed, heir = Process(server, kill_before), Process(server)
        try:
            doomed.call(call)
        except Killed:
            pass
        else:
            assert kill_before > 4
            break
        with suppress(NotFoundError):  # all are gone
            heir.call(call)
        left = [theirs] if how == "forget" else [first, theirs]
        assert agent.kept() == left, kill_before
    else:
        pytest.fail("it never came to its end")


def test_rows_of_others_that_look_alike_are_not_duplicates(client: Any, alice: Agent) -> None:
    for metadata in ({}, {}, {"kronmem": "no object"}, {"kronmem": {"id": 5}}):
        row(alice, "alpha bravo", metadata=metadata)
    assert len(client.recall("alice", "alpha bravo")) == 4
    assert len(client.memories("alice")) == 4
    assert len(alice.kept()) == 4


# ── filters ──────────────────────────────────────────────────────────────────────────────────────────────────────


def crowd(agent: Agent, count: int = 25) -> None:
    """Closer memories than any that a test looks for."""
    for number in range(count):
        row(agent, "where is the red car", metadata=mark(f"crowd{number}"), memory_type="fact")


def test_a_tag_is_found_behind_20_closer_memories(server: KronvexServer, client: Any, alice: Agent) -> None:
    row(alice, "nothing of the kind", metadata=mark("k0", tags=["mine"]))
    row(alice, "the red car is in the yard behind the house of mine", metadata=mark("k1", tags=["mine"]))
    row(alice, "the red one, superseded", metadata=mark("k2", tags=["mine"]), superseded_by="x")
    crowd(alice)
    with counted(server) as sent:
        found = client.recall("alice", "where is the red car", 1, tags=["mine"])
    assert contents(found) == ["the red car is in the yard behind the house of mine"]
    assert sent == ["POST recall", "GET memories"]
    both = client.recall("alice", "where is the red car", tags=["mine"])
    assert contents(both) == ["the red car is in the yard behind the house of mine", "nothing of the kind"]
    assert client.recall("alice", "where is the red car", tags=["mine"], session_id="s") == []


def test_an_own_type_is_found_behind_20_closer_memories(server: KronvexServer, client: Any, alice: Agent) -> None:
    row(alice, "the red car was sold", metadata=mark("k1", type="decision"), memory_type="fact")
    crowd(alice)
    with counted(server) as sent:
        assert contents(client.recall("alice", "where is the red car", memory_type="decision")) == [
            "the red car was sold"
        ]
    assert sent == ["POST recall", "GET memories"]
    assert [one.body["memory_type"] for one in server.requests if one.path.endswith("/recall")] == ["fact"]
    assert server.requests[-1].query["memory_type"] == "fact"


@pytest.mark.parametrize("threshold", [None, 0.0])
@pytest.mark.parametrize(
    ("mine", "within"),
    [
        ({"metadata": mark("k1", tags=["mine"])}, {"tags": ["mine"]}),
        ({"metadata": mark("k1", type="decision")}, {"memory_type": "decision"}),
        ({"metadata": mark("k1")}, {"memory_type": "fact"}),
        ({"metadata": mark("k1"), "created_at": START.replace(year=2020)}, {"until": "2021-01-01"}),
    ],
)
def test_a_memory_is_found_behind_30_closer_ones_by_any_filter_and_a_threshold_of_0(
    client: Any, alice: Agent, mine: Any, within: Any, threshold: float | None
) -> None:
    row(alice, "the red car is in the yard", memory_type="fact", **mine)
    for number in range(30):
        other = "decision" if within.get("memory_type") == "fact" else "recipe"
        row(alice, "where is the red car", memory_type="fact", metadata=mark(f"k2{number}", type=other))
    found = client.recall("alice", "where is the red car", threshold=threshold, **within)
    assert contents(found) == ["the red car is in the yard"]


def test_a_filter_with_a_threshold_shows_scored_memories_only(client: Any, alice: Agent) -> None:
    row(alice, "nothing of the kind", metadata=mark("k1", tags=["mine"]))
    crowd(alice)
    assert client.recall("alice", "where is the red car", tags=["mine"], threshold=0.6) == []


def test_a_context_with_a_tag_is_found_behind_20_closer_memories_too(client: Any, alice: Agent) -> None:
    row(alice, "the red car is in the yard", metadata=mark("k1", tags=["mine"]))
    crowd(alice)
    assert "in the yard" in client.inject_context("alice", "where is the red car", tags=["mine"])
