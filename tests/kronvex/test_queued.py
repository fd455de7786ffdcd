"""The same through the outbox, and what a repair of 0.2 has left in its file."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client
from kronmem.outbox import deliver
from tests.kronvex.stores import START, counted, mark, row
from tests.outbox.services import until
from tests.services import KronvexServer
from tests.services.rows import Agent, Row
from tests.shells import shell

WAIT = 30.0


@pytest.fixture
def client(server: KronvexServer, kind: str, tmp_path: Path) -> Iterator[Any]:
    with shell(kind, server.url, api_key=server.key, outbox=tmp_path / "o.db", timeout=WAIT) as client:
        yield client


@pytest.fixture
def alice(server: KronvexServer, client: Any) -> Agent:
    client.remember("alice", "the very first memory")
    return server.agents[0]


def kept(agent: Agent) -> list[tuple[str, str | None]]:
    return sorted((one.content, one.session_id) for one in agent.kept() if not one.superseded_by)[:-1]


def test_a_queued_text_that_another_session_has_is_a_dead_letter(client: Any, alice: Agent) -> None:
    for session in ("one", "two"):
        client.remember_later("alice", "alpha bravo", session_id=session)
    client.remember_later("alice", "alpha bravo")
    assert client.outbox.flush(WAIT) == 0
    assert [(one.content, one.session_id) for one in alice.kept()[1:]] == [
        ("alpha bravo", "one"),
        ("alpha bravo", None),
    ]
    (dead,) = client.outbox.dead()
    assert (dead.content, "'alpha bravo'" in dead.error) == ("alpha bravo", True)


def test_a_hasty_client_has_its_queued_memories_stored_beside_others_too(server: KronvexServer, tmp_path: Path) -> None:
    """That takes several requests: the thread gives it the time, since nobody waits."""
    with Client(server.url, api_key=server.key, outbox=tmp_path / "o.db", timeout=1.5) as client:
        client.remember("alice", "alpha bravo", session_id="one")
        client.remember_later("alice", "alpha bravo")
        assert client.outbox.flush(WAIT) == 0
        assert {one.session_id for one in server.agents[0].kept()} == {"one", None}


def test_queued_paris_berlin_paris_is_paris(client: Any, alice: Agent) -> None:
    for city in ("Paris", "Berlin", "Paris"):
        client.remember_later("alice", f"The user lives in {city}")
    assert client.outbox.flush(WAIT) == 0
    assert next(iter(client.memories("alice"))).content == "The user lives in Paris"
    assert len(alice.kept()) == 4


def test_a_queued_text_behind_a_row_of_somebody_else_is_a_dead_letter(client: Any, alice: Agent) -> None:
    foreign = row(alice, "alpha bravo", session_id="theirs")
    client.remember_later("alice", "alpha bravo", session_id="ours")
    client.remember_later("alice", "charlie delta")
    assert client.outbox.flush(WAIT) == 0
    (dead,) = client.outbox.dead()
    assert (dead.content, "'alpha bravo'" in dead.error) == ("alpha bravo", True)
    assert not foreign.deleted
    assert "charlie delta" in [one.content for one in alice.kept()]


def test_forgetting_a_queued_memory_forgets_no_one_elses(client: Any, alice: Agent) -> None:
    theirs = row(alice, "alpha bravo", session_id="theirs", metadata=mark("k1"))
    queued = client.remember_later("alice", "alpha bravo")
    assert client.outbox.flush(WAIT) == 0
    assert client.outbox.dead() == []
    client.forget("alice", queued)
    assert not theirs.deleted
    assert kept(alice) == [("alpha bravo", "theirs")]


def test_a_queued_text_that_can_never_be_embedded_is_set_aside_soon(
    server: KronvexServer, client: Any, alice: Agent
) -> None:
    client.remember_later("alice", "記" * 9000)
    client.remember_later("alice", "charlie delta")
    assert client.outbox.flush(WAIT) == 0
    assert ["8,192 tokens" in one.error for one in client.outbox.dead()] == [True]
    assert "charlie delta" in [one.content for one in alice.kept()]
    assert len([one for one in server.requests if one.path.endswith("/remember")]) <= 5


def test_queued_memories_of_two_sessions_do_not_hide_each_other(client: Any, alice: Agent) -> None:
    for name in ("Anna", "Bert"):
        client.remember_later("alice", f"The user lives in {name} town", session_id=name)
    assert client.outbox.flush(WAIT) == 0
    assert [(one.pinned, one.superseded_by) for one in alice.rows[1:]] == [(True, None), (True, None)]
    assert {one.pinned for one in client.memories("alice") if one.session_id} == {False}


def test_the_first_memory_of_a_fresh_demo_key_may_be_queued(kind: str, tmp_path: Path) -> None:
    with KronvexServer(plan="demo") as server:
        with shell(kind, server.url, api_key=server.key, outbox=tmp_path / "o.db", timeout=WAIT) as client:
            client.remember_later("alice", "alpha bravo")
            assert client.outbox.flush(WAIT) == 0
            client.remember_later("bob", "charlie delta")
            assert client.outbox.flush(0.5) == 1
            assert [one.content for one in client.recall("alice", "alpha bravo")] == ["alpha bravo"]
            assert client.outbox.dead() == []
            assert [one.agent_id for one in client.outbox.list()] == ["bob"]  # it waits for another plan
        assert [agent.name for agent in server.agents if agent.owner == server.key] == ["alice"]


def test_a_uuid_of_the_users_own_is_a_name_for_the_queue_too(client: Any, server: KronvexServer) -> None:
    own = "6f9619ff8b86d011b42d00c04fc964ff"
    client.remember_later(own, "alpha bravo")
    assert client.outbox.flush(WAIT) == 0
    assert [hit.content for hit in client.recall(own, "alpha bravo")] == ["alpha bravo"]
    assert [agent.name for agent in server.agents] == [own]


def test_a_queued_memory_is_forgotten_by_its_id_on_another_machine(
    client: Any, alice: Agent, server: KronvexServer, kind: str, tmp_path: Path
) -> None:
    queued = client.remember_later("alice", "alpha bravo")
    assert client.outbox.flush(WAIT) == 0
    with shell(kind, server.url, api_key=server.key, outbox=tmp_path / "elsewhere.db", timeout=WAIT) as other:
        other.forget("alice", queued)
    assert kept(alice) == []


def test_what_a_queued_repeat_adds_is_applied(client: Any, alice: Agent) -> None:
    client.remember("alice", "alpha bravo", tags=["x"])
    client.remember_later("alice", "alpha bravo", tags=["y"], metadata={"n": 1})
    client.remember_later("alice", "alpha bravo", pinned=True)
    assert client.outbox.flush(WAIT) == 0
    assert client.outbox.dead() == []
    (one,) = [one for one in client.memories("alice") if one.content == "alpha bravo"]
    assert (set(one.tags), one.metadata, one.pinned) == ({"x", "y"}, {"n": 1}, True)
    assert len(alice.kept()) == 2


@pytest.mark.slow  # a store that runs into its deadline
def test_what_a_stalled_store_of_the_queue_left_twice_is_one_memory_and_forgotten_by_its_id(
    kind: str, tmp_path: Path
) -> None:
    """The first store is finished by the server when its repeat has been stored."""
    stores, repeated = count(1), threading.Event()

    def stall(handler: str) -> None:
        if handler == "remember":
            if next(stores) == 1:
                repeated.wait(WAIT)
            else:
                repeated.set()

    with KronvexServer(habits=["races"], gap=stall) as server:
        with shell(kind, server.url, api_key=server.key, outbox=tmp_path / "o.db", timeout=2.0) as client:
            queued = client.remember_later("alice", "alpha bravo")
            assert client.outbox.flush(WAIT) == 0
            (alice,) = server.agents
            until(lambda: len(alice.rows) == 2, WAIT)
            assert [one.metadata["kronmem"]["id"] for one in alice.rows] == [queued] * 2
            assert [one.content for one in client.memories("alice")] == ["alpha bravo"]
            client.forget("alice", queued)
            assert alice.kept() == []


REPAIR = Path(__file__).parent.parent / "samples" / "outbox-0.2-repair.sql"
"""Written by 0.2, which was killed while it stored a queued text: the row of another session that it had deleted for
a moment is noted in the file."""


@pytest.fixture
def halfway(server: KronvexServer, tmp_path: Path) -> Row:
    """The server and the outbox as 0.2 has left them."""
    server.key = "kv-" + "0" * 32
    server.agents.append(alice := Agent("alice", server.key, START))
    theirs = row(alice, "charlie delta", session_id="theirs", metadata=mark("k2"), deleted=True)
    theirs.id = "22222222-2222-4222-8222-222222222222"
    with closing(sqlite3.connect(tmp_path / "o.db")) as db:
        db.executescript(REPAIR.read_text("utf-8").replace("http://kronvex.test", server.url))
    return theirs


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as db:
        return {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_a_row_that_a_repair_of_0_2_left_deleted_is_restored_once(
    server: KronvexServer, tmp_path: Path, halfway: Row, kind: str
) -> None:
    with shell(kind, server.url, api_key=server.key, outbox=tmp_path / "o.db", timeout=WAIT) as client:
        assert client.outbox.flush(WAIT) == 0
        assert [one.session_id for one in client.memories("alice")] == ["theirs"]
        (dead,) = client.outbox.dead()  # the text that 0.2 was about to store for another session
        assert (dead.content, "'charlie delta'" in dead.error) == ("charlie delta", True)
        client.forget("alice", halfway.id)
    assert "set_aside" not in tables(tmp_path / "o.db")
    with shell(kind, server.url, api_key=server.key, outbox=tmp_path / "o.db", timeout=WAIT) as client:
        with counted(server) as sent:
            client.outbox.flush(WAIT)
    assert halfway.deleted
    assert "POST restore" not in sent


@pytest.mark.parametrize("change", ["forgotten = 1", "mark = 'of another key'"])
def test_a_row_that_was_forgotten_or_is_anothers_is_not_restored(
    server: KronvexServer, tmp_path: Path, halfway: Row, change: str
) -> None:
    with closing(sqlite3.connect(tmp_path / "o.db")) as db:
        db.execute(f"UPDATE set_aside SET {change}")
        db.commit()
    with Client(server.url, api_key=server.key, outbox=tmp_path / "o.db", timeout=WAIT) as client:
        assert client.outbox.flush(WAIT) == 0
    assert halfway.deleted
    assert ("set_aside" in tables(tmp_path / "o.db")) == (change != "forgotten = 1")


def test_a_row_that_cannot_be_restored_now_is_restored_later(
    server: KronvexServer, tmp_path: Path, halfway: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "RESTORE_AGAIN", 0.0)
    server.on_request = lambda request: server.refuse.add("POST") if request.path.endswith("/restore") else None
    with Client(server.url, api_key=server.key, outbox=tmp_path / "o.db", timeout=WAIT) as client:
        client.outbox.flush(0.5)
        assert halfway.deleted
        server.on_request, server.refuse = None, set()
        assert client.outbox.flush(WAIT) == 0
    assert (halfway.deleted, "set_aside" in tables(tmp_path / "o.db")) == (False, False)
