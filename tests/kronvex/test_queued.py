"""The same repairs on the road through the outbox, and a process that is killed in the middle of one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client, StoreError
from kronmem.core.steps import Aside
from kronmem.outbox.lease import AHEAD
from kronmem.outbox.queue import OutboxFile
from kronmem.outbox.repair_journal import OutboxJournal
from tests.kronvex.stores import START, mark, row
from tests.outbox.services import until
from tests.services import KronvexServer
from tests.services.rows import Agent
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


def test_a_queued_text_of_two_sessions_is_two_memories(client: Any, alice: Agent) -> None:
    for session in ("one", "two"):
        client.remember_later("alice", "alpha bravo", session_id=session)
    assert client.outbox.flush(WAIT) == 0
    assert kept(alice) == [("alpha bravo", "one"), ("alpha bravo", "two")]
    assert client.outbox.dead() == []


def test_a_hasty_client_has_its_queued_memories_repaired_too(server: KronvexServer, tmp_path: Path) -> None:
    """A repair takes several requests: the thread gives it the time, since nobody waits."""
    with Client(server.url, api_key=server.key, outbox=tmp_path / "o.db", timeout=1.5) as client:
        client.remember("alice", "alpha bravo", session_id="one")
        client.remember_later("alice", "alpha bravo", session_id="two")
        assert client.outbox.flush(WAIT) == 0
        assert {one.session_id for one in server.agents[0].kept()} == {"one", "two"}


def test_queued_paris_berlin_paris_is_paris(client: Any, alice: Agent) -> None:
    for city in ("Paris", "Berlin", "Paris"):
        client.remember_later("alice", f"The user lives in {city}")
    assert client.outbox.flush(WAIT) == 0
    assert [hit.content for hit in client.recall("alice", "The user lives in", 1)] == ["The user lives in Paris"]
    assert len(alice.kept()) == 4


def test_a_queued_text_behind_a_row_of_somebody_else_is_a_dead_letter(client: Any, alice: Agent) -> None:
    foreign = row(alice, "alpha bravo", session_id="theirs")
    client.remember_later("alice", "alpha bravo", session_id="ours")
    client.remember_later("alice", "charlie delta")
    assert client.outbox.flush(WAIT) == 0
    (dead,) = client.outbox.dead()
    assert (dead.content, "not stored by kronmem" in dead.error) == ("alpha bravo", True)
    assert not foreign.deleted
    assert "charlie delta" in [one.content for one in alice.kept()]


def test_forgetting_a_queued_memory_forgets_no_one_elses(client: Any, alice: Agent) -> None:
    theirs = row(alice, "alpha bravo", session_id="theirs", metadata=mark("k1"))
    queued = client.remember_later("alice", "alpha bravo", session_id="ours")
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


def test_looking_for_unfinished_repairs_does_not_bring_a_closed_client_back(
    server: KronvexServer, tmp_path: Path
) -> None:
    with Client(server.url, api_key=server.key, outbox=tmp_path / "o.db", timeout=WAIT) as client:
        client.remember_later("alice", "alpha bravo")
        assert client.outbox.flush(WAIT) == 0
        writer = client._post
        assert writer is not None
        _, sender = writer.arrive()
    journal = sender.link.journal
    assert journal is not None
    with pytest.raises(StoreError, match="closed"):  # as in a thread that has not ended in time
        journal.unfinished()
    assert writer._joined is None


def test_a_repair_that_begins_while_the_thread_looks_for_unfinished_ones_is_left_alone(tmp_path: Path) -> None:
    """The thread starts with the journal's first entry: it took that entry for one of a clock set back."""
    file = OutboxFile(str(tmp_path / "o.db"))
    lane, entry = file.lane("http://a", "key"), Aside("alice", "m")
    repair = OutboxJournal(lambda: (file, lane))

    def begun_meanwhile() -> float:
        looked = time.time()
        repair.put(entry)
        return looked

    assert OutboxJournal(lambda: (file, lane), begun_meanwhile).unfinished() == []
    assert OutboxJournal(lambda: (file, lane), lambda: time.time() - AHEAD / 2).unfinished() == []
    assert OutboxJournal(lambda: (file, lane), lambda: time.time() - 3600).unfinished() == [entry]
    assert OutboxJournal(lambda: (file, lane), lambda: time.time() + 3600).unfinished() == [entry]
    file.close()


def test_two_repairs_with_the_same_row_in_their_way_end_their_own_entries_only(tmp_path: Path) -> None:
    """A kill of the second, when the first is done, would otherwise cost the row."""
    file = OutboxFile(str(tmp_path / "o.db"))
    lane = file.lane("http://a", "key")
    journal = OutboxJournal(lambda: (file, lane))
    later = OutboxJournal(lambda: (file, lane), lambda: time.time() + 3600)
    first, second = Aside("alice", "m", 1), Aside("alice", "m", 2)
    journal.put(first)
    journal.put(second)
    journal.clear(first)
    assert later.unfinished() == [second]
    OutboxJournal(lambda: (file, lane), lambda: time.time() - 3600).put(first)
    assert journal.unfinished() == []  # the second works on it
    journal.clear(second)
    assert journal.unfinished() == [first]
    file.close()


def test_an_unfinished_repair_is_taken_over_by_one_process_only(tmp_path: Path) -> None:
    """The slower one of two would restore a memory behind a forget."""
    file = OutboxFile(str(tmp_path / "o.db"))
    lane, entry = file.lane("http://a", "key"), Aside("alice", "m", 1)
    journal = OutboxJournal(lambda: (file, lane))
    OutboxJournal(lambda: (file, lane), lambda: time.time() - 3600).put(entry)
    (left,) = journal.unfinished()
    first, second = Aside("alice", "m", 2), Aside("alice", "m", 3)
    assert [journal.take_over(left, first), journal.take_over(left, second)] == [True, False]
    assert journal.unfinished() == []
    journal.give_back(first)
    assert journal.unfinished() == [first]
    journal.clear(first)
    assert not journal.take_over(first, second)
    file.close()


def test_an_entry_of_the_journal_can_be_marked_as_forgotten_by_any_process(tmp_path: Path) -> None:
    file = OutboxFile(str(tmp_path / "o.db"))
    lane, other = file.lane("http://a", "key"), file.lane("http://a", "another key")
    journal, entry = OutboxJournal(lambda: (file, lane)), Aside("alice", "m", 1)
    assert (journal.noted("alice"), journal.is_forgotten(entry), journal.forget(entry)) == ([], False, False)
    journal.put(entry)
    assert journal.noted("bob") == OutboxJournal(lambda: (file, other)).noted("alice") == []
    assert journal.noted("alice") == [entry]
    read, entry = entry, Aside("alice", "m", 2)
    journal.take_over(read, entry)  # since it was read
    assert [journal.forget(read), journal.forget(read), journal.is_forgotten(entry)] == [True, False, True]
    assert [journal.clear(entry), journal.clear(entry)] == [True, False]
    assert OutboxJournal(lambda: (file, lane), exists=lambda: False).noted("alice") == []
    file.close()


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


CHILD = """
    import sys
    from kronmem import Client
    with Client(sys.argv[1], api_key=sys.argv[2], outbox=sys.argv[3], timeout=30) as client:
        client.remember_later("alice", "alpha bravo", session_id="ours", tags=["y"])
        client.outbox.flush(30)
"""


CHANGE = """
    import sys
    from kronmem import Client
    with Client(sys.argv[1], api_key=sys.argv[2], outbox=sys.argv[3], timeout=30) as client:
        client.update("alice", sys.argv[4], pinned=True)
"""


@pytest.mark.slow  # a process each; the same is stepped through in test_changing.py
@pytest.mark.parametrize("where", ["DELETE", "/remember", "/restore"])
def test_a_process_killed_in_a_change_costs_nothing(server: KronvexServer, tmp_path: Path, where: str) -> None:
    server.agents.append(alice := Agent("alice", server.key, START))
    theirs = row(alice, "alpha bravo", session_id="theirs", metadata=mark("k2"), pinned=True)
    ours = row(alice, "alpha bravo", session_id="ours", metadata=mark("k1", pinned=False), pinned=True)
    child: list[subprocess.Popen[bytes]] = []

    def kill(request: Any) -> None:
        if child and (request.method == where or request.path.endswith(where)):
            os.kill(child.pop().pid, signal.SIGKILL)

    arguments = [server.url, server.key, str(tmp_path / "o.db"), ours.id]
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(CHANGE), *arguments])
    child.append(process)
    server.on_request = kill
    assert process.wait(WAIT) == -signal.SIGKILL
    server.on_request = None
    with Client(server.url, api_key=server.key, outbox=tmp_path / "o.db", timeout=WAIT) as client:
        assert client.outbox.flush(WAIT) == 0
        found = {(one.content, one.session_id) for one in client.memories("alice")}
        assert found == {("alpha bravo", "theirs"), ("alpha bravo", "ours")}
        assert client.update("alice", ours.id, pinned=True).pinned
    assert not theirs.deleted
    assert len(alice.kept()) == 2


@pytest.mark.slow  # a process each; the same is stepped through in test_storing.py
@pytest.mark.parametrize("where", ["DELETE", "second remember", "restore"])
def test_a_process_killed_in_a_repair_costs_nothing(server: KronvexServer, tmp_path: Path, where: str) -> None:
    alice = Agent("alice", server.key, START)
    server.agents.append(alice)
    theirs = row(alice, "alpha bravo", session_id="theirs", metadata=mark("k1"))
    child: list[subprocess.Popen[bytes]] = []

    def kill(request: Any) -> None:
        second = request.path.endswith("/remember") and len(alice.kept()) == 0
        now = {"DELETE": request.method == "DELETE", "second remember": second}.get(
            where, request.path.endswith("/restore")
        )
        if now and child:
            os.kill(child.pop().pid, signal.SIGKILL)

    server.on_request = kill
    arguments = [server.url, server.key, str(tmp_path / "o.db")]
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(CHILD), *arguments])
    child.append(process)
    assert process.wait(WAIT) == -signal.SIGKILL
    server.on_request = None
    with Client(server.url, api_key=server.key, outbox=tmp_path / "o.db", timeout=WAIT) as client:
        assert client.outbox.flush(WAIT) == 0
        found = {(one.content, one.session_id) for one in client.memories("alice")}
    assert found == {("alpha bravo", "theirs"), ("alpha bravo", "ours")}
    assert not theirs.deleted
    assert len(alice.kept()) == 2
