"""One memory read and changed at a server that reads out deleted rows, knows only ids of its own and can only PATCH."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kronmem import Client, ConflictError, NotFoundError, UnsupportedError
from kronmem.core import calls, flows
from tests.kronvex.stepping import Killed, Process
from tests.kronvex.stores import START, counted, mark, row
from tests.services import KronvexServer
from tests.services.rows import Agent
from tests.shells import shell

ASKED = ("get", "history", "update")


@pytest.fixture
def alice(server: KronvexServer, client: Any) -> Agent:
    """An agent that the client knows already."""
    client.remember("alice", "the very first memory")
    return server.agents[0]


def asked(client: Any, how: str, memory_id: str, agent_id: str = "alice") -> Any:
    if how == "update":
        return client.update(agent_id, memory_id, pinned=True)
    found = getattr(client, how)(agent_id, memory_id)
    return found[0] if how == "history" else found


# ── which memory ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ASKED)
def test_a_forgotten_memory_is_not_read_out(client: Any, alice: Agent, how: str) -> None:
    secret = client.remember("alice", "the secret is 42")
    foreign = row(alice, "not stored by kronmem", deleted=True)
    client.forget("alice", secret.id)
    for memory_id in (secret.id, foreign.id):
        with pytest.raises(NotFoundError):
            asked(client, how, memory_id)
    assert not any(one.pinned for one in alice.rows)


@pytest.mark.parametrize("how", ASKED)
def test_a_memory_is_found_by_every_id_it_has_on_any_machine(
    server: KronvexServer, client: Any, alice: Agent, kind: str, how: str
) -> None:
    own = str(uuid4())
    stored = client.remember("alice", "zebra pudding", memory_id=own)
    with shell(kind, server.url, api_key=server.key, outbox=False) as elsewhere:
        for memory_id in (own, stored.id):
            assert asked(elsewhere, how, memory_id).content == "zebra pudding"


@pytest.mark.parametrize("how", ASKED)
@pytest.mark.parametrize("memory_id", ["nope", "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"])
@pytest.mark.parametrize("agent_id", ["alice", "nobody"])
def test_an_unknown_memory_or_agent_is_not_found_and_no_path_is_left_unfilled(
    server: KronvexServer, client: Any, alice: Agent, how: str, memory_id: str, agent_id: str
) -> None:
    with pytest.raises(NotFoundError):
        asked(client, how, memory_id, agent_id)
    assert not [one.path for one in server.requests if "agent}" in one.path or "%7B" in one.path]
    assert [agent.name for agent in server.agents] == ["alice"]


def test_a_memory_that_was_stored_twice_is_read_by_the_id_of_either_and_changed_where_it_stays(
    client: Any, alice: Agent
) -> None:
    older, newer = (row(alice, "alpha bravo", metadata=mark("k1")) for _ in range(2))
    assert client.get("alice", newer.id).id == older.id
    assert (older.deleted, newer.deleted) == (False, True)
    client.update("alice", newer.id, pinned=True)
    assert [(one.id, one.pinned) for one in client.memories("alice") if one.content == "alpha bravo"] == [
        (older.id, True)
    ]


def test_the_first_call_of_a_client_finds_nothing_that_was_forgotten(server: KronvexServer, kind: str) -> None:
    with shell(kind, server.url, api_key=server.key, outbox=False) as client:
        gone = client.remember("alice", "the secret is 42")
        client.forget("alice", gone.id)
    agent = server.agents[0]
    with KronvexServer() as other, shell(kind, other.url, api_key=other.key, outbox=False) as fresh:
        agent.owner = other.key
        other.agents.append(agent)
        with pytest.raises(NotFoundError):
            fresh.update(agent.id, gone.id, pinned=True)  # by the service's own id, so that nothing is looked up
    assert not agent.rows[0].pinned


# ── pin and type ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("session_id", [None, "s"])
@pytest.mark.parametrize(
    ("first", "change"),
    [
        ({}, {"pinned": True}),
        ({"pinned": True}, {"pinned": False}),
        ({"ttl_days": 3}, {"pinned": True}),
        ({}, {"memory_type": "preference"}),
        ({}, {"memory_type": "decision"}),
        ({"memory_type": "decision"}, {"memory_type": "fact"}),
        ({"memory_type": "decision"}, {"memory_type": "recipe"}),
        ({"memory_type": "recipe", "pinned": True}, {"memory_type": "context", "pinned": False}),
        ({"memory_type": "recipe", "ttl_days": 3}, {"memory_type": "decision"}),
        ({"memory_type": "preference"}, {"memory_type": "episodic"}),
    ],
)
def test_a_changed_pin_or_type_is_what_every_read_shows(
    client: Any, alice: Agent, session_id: str | None, first: Any, change: Any
) -> None:
    own = str(uuid4())
    given = {"session_id": session_id, "tags": ["x"], "metadata": {"a": 1}, "role": "user", "memory_id": own}
    old = client.remember("alice", "quartz bicycle lamp", **given, **first)
    new = client.update("alice", old.id, **change)
    (listed,) = [one for one in client.memories("alice") if one.content == "quartz bicycle lamp"]
    (hit,) = client.recall("alice", "quartz bicycle lamp", memory_type=change.get("memory_type"), tags=["x"])
    wanted = {"pinned": first.get("pinned", False), "memory_type": first.get("memory_type", "fact"), **change}
    for one in (new, listed, hit.memory, client.get("alice", old.id), client.get("alice", own)):
        assert {name: getattr(one, name) for name in wanted} == wanted
        assert (one.id, one.session_id, one.tags, one.metadata) == (new.id, session_id, ("x",), {"a": 1})
        assert (one.role, one.deduplicated) == ("user", False)
        assert (one.expires_at is None) == ("ttl_days" not in first or "pinned" in change)
    assert [one.pinned for one in alice.kept() if one.content == "quartz bicycle lamp"] == [
        wanted["pinned"] or (session_id is not None and one.expires_at is None) for one in (new,)
    ]
    client.forget("alice", old.id)
    assert "quartz bicycle lamp" not in [one.content for one in alice.kept()]


def test_a_session_row_whose_pin_was_taken_off_is_not_hidden_by_another_session(client: Any, alice: Agent) -> None:
    ours = client.remember("alice", "one two three four five", session_id="ours", pinned=True)
    client.update("alice", ours.id, pinned=False)
    client.remember("alice", "one two three four six", session_id="theirs")
    assert [one.pinned for one in client.memories("alice", session_id="ours")] == [False]


def test_a_change_that_cannot_be_kept_is_refused_and_nothing_is_sent_that_changes(
    server: KronvexServer, client: Any, alice: Agent
) -> None:
    foreign = row(alice, "not stored by kronmem", session_id="s")
    ours = client.remember("alice", "quartz bicycle lamp", session_id="s")
    before = [(one.pinned, one.memory_type, one.deleted) for one in alice.rows]
    with pytest.raises(UnsupportedError, match="not stored by kronmem"):
        client.update("alice", foreign.id, memory_type="decision")
    assert [(one.pinned, one.memory_type, one.deleted) for one in alice.rows] == before
    assert client.update("alice", foreign.id, memory_type="preference", pinned=True).pinned
    with counted(server) as sent:
        assert not client.update("alice", ours.id, pinned=False, memory_type="fact").pinned  # as it is
    assert sent == [f"PATCH {ours.id}", "GET memories"]


def test_a_change_never_hides_another_memory_nor_revives_a_superseded_one(client: Any, alice: Agent) -> None:
    pinned = client.remember("alice", "one two three four five", pinned=True)
    newer = client.remember("alice", "one two three four six")
    with pytest.raises(UnsupportedError, match="hide"):
        client.update("alice", pinned.id, memory_type="decision")
    assert {one.id for one in client.memories("alice")} >= {pinned.id, newer.id}
    assert client.update("alice", newer.id, memory_type="decision").memory_type == "decision"
    newer = next(one for one in client.memories("alice") if one.content == newer.content)
    client.remember("alice", "one two three four seven")
    with pytest.raises(ConflictError, match="superseded"):
        client.update("alice", newer.id, pinned=True)


def test_a_kill_at_any_step_of_a_change_loses_nothing_and_doubles_nothing() -> None:
    changed = calls.MemoryChange(memory_type="decision")
    for kill_before in range(100):
        server = KronvexServer(clock=lambda: START)
        server.agents.append(agent := Agent("alice", server.key, START))
        theirs = row(agent, "alpha bravo", metadata=mark("k2"), session_id="theirs", pinned=True)
        ours = row(agent, "alpha bravo", metadata=mark("k1"))
        doomed = Process(server, kill_before)
        try:
            doomed.drive(flows.update("alice", ours.id, doomed.link, 10.0, changed))
        except Killed:
            pass
        else:
            assert kill_before > 8
            break
        heir = Process(server)
        heir.call(calls.recall("alice", "alpha bravo", 20, calls.MemoryFilter(), None, most=20))
        (left,) = [one for one in agent.kept() if one is not theirs]
        assert (left.content, left.session_id, theirs.deleted) == ("alpha bravo", None, False), kill_before
        done = heir.drive(flows.update("alice", ours.id, heir.link, 10.0, changed))
        assert done.memory_type == "decision"
        assert (theirs.deleted, len(agent.kept())) == (False, 2)
    else:
        pytest.fail("it never came to its end")


def test_a_change_that_cannot_be_stored_leaves_the_memory_as_it_is(client: Any, alice: Agent) -> None:
    theirs = row(alice, "alpha bravo", session_id="theirs", metadata=mark("k2"))
    ours = row(alice, "alpha bravo", session_id="ours", metadata=mark("k1", pinned=False), pinned=True)
    with pytest.raises(ConflictError, match="'alpha bravo'"):
        client.update("alice", ours.id, pinned=True)
    assert (theirs.deleted, ours.deleted, len(alice.kept())) == (False, False, 3)


def test_what_a_cancelled_change_had_deleted_is_back_with_the_next_call() -> None:
    change = calls.MemoryChange(pinned=True)
    for kill_before in range(100):
        server = KronvexServer(clock=lambda: START)
        server.agents.append(agent := Agent("alice", server.key, START))
        ours = row(agent, "alpha bravo", session_id="ours", metadata=mark("k1", pinned=False), pinned=True)
        process = Process(server, kill_before, cancelled=True)
        try:
            process.drive(flows.update("alice", ours.id, process.link, 10.0, change))
        except Killed:
            pass
        else:
            break
        process.kill_before = None
        found = process.call(calls.recall("alice", "alpha bravo", 20, calls.MemoryFilter(), None, most=20))
        assert [hit.memory.session_id for hit in found] == ["ours"], kill_before
        assert process.drive(flows.update("alice", ours.id, process.link, 10.0, change)).pinned
        assert len(agent.kept()) == 1
    else:
        pytest.fail("it never came to its end")


# ── two calls at the same moment ─────────────────────────────────────────────────────────────────────────────────


def meanwhile(server: KronvexServer, request: str, work: Callable[[], object]) -> None:
    """Let another thread finish its work before the next such request is answered."""
    left, wanted = [work], request

    def on_request(request: Any) -> None:
        if left and (request.method == wanted or request.path.endswith(wanted)):
            thread = threading.Thread(target=left.pop())
            thread.start()
            thread.join()

    server.on_request = on_request


@pytest.fixture
def other(server: KronvexServer, tmp_path: Path) -> Iterator[Client]:
    """Another client, as in another process."""
    with Client(server.url, api_key=server.key, outbox=tmp_path / "other.db") as client:
        yield client


@pytest.mark.parametrize("session_id", [None, "s"])
def test_what_is_forgotten_while_it_is_changed_does_not_come_back(
    server: KronvexServer, client: Any, alice: Agent, other: Client, session_id: str | None
) -> None:
    ours = client.remember("alice", "quartz bicycle lamp", session_id=session_id)
    meanwhile(server, "DELETE", lambda: other.forget("alice", ours.id))
    with pytest.raises(NotFoundError):
        client.update("alice", ours.id, memory_type="decision")
    assert "quartz bicycle lamp" not in [one.content for one in alice.kept()]


@pytest.mark.parametrize("content", ["alpha bravo", "Alpha, bravo!"])
def test_a_repeat_of_a_memory_that_is_forgotten_at_that_moment_is_stored(
    server: KronvexServer, client: Any, alice: Agent, other: Client, content: str
) -> None:
    first = client.remember("alice", "alpha bravo", tags=["x"])
    meanwhile(server, "DELETE", lambda: other.forget("alice", first.id))
    client.remember("alice", content, tags=["y"])
    assert [one.tags for one in client.memories("alice") if one.content == content] == [("y",)]


def test_of_two_changes_at_once_neither_is_lost(
    server: KronvexServer, client: Any, alice: Agent, other: Client
) -> None:
    ours = client.remember("alice", "quartz bicycle lamp", session_id="s")
    meanwhile(server, "DELETE", lambda: other.update("alice", ours.id, pinned=True))
    changed = client.update("alice", ours.id, memory_type="decision")
    (kept,) = [one for one in client.memories("alice") if one.content == "quartz bicycle lamp"]
    for one in (changed, kept):
        assert (one.pinned, one.memory_type) == (True, "decision")


def test_a_change_that_others_are_always_ahead_of_is_a_conflict(
    server: KronvexServer, client: Any, alice: Agent, other: Client
) -> None:
    ours = client.remember("alice", "quartz bicycle lamp", session_id="s")
    kinds, busy = count(), threading.Lock()

    def on_request(request: Any) -> None:
        if request.method == "DELETE" and busy.acquire(blocking=False):
            change = partial(other.update, "alice", ours.id, memory_type=f"kind{next(kinds)}")
            thread = threading.Thread(target=change)
            thread.start()
            thread.join()
            busy.release()

    server.on_request = on_request
    with pytest.raises(ConflictError, match="at the same moment"):
        client.update("alice", ours.id, pinned=True)
    assert [one.memory_type for one in client.memories("alice", session_id="s")] == ["kind2"]
