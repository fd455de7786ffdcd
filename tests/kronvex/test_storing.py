"""Storing at a server that folds a text into any like row: repaired, refused or said, and killed at every step."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from kronmem import ConflictError, DeadlineError, InvalidInputError, QuotaError, Retry, ServerError
from kronmem.core import calls, flows
from kronmem.core.steps import Aside
from kronmem.core.wire import Reply
from tests.kronvex.stepping import Disk, Killed, Process, draft
from tests.kronvex.stores import counted, mark, row
from tests.services import KronvexServer
from tests.services.raw import RawServer, respond
from tests.services.rows import Agent, Row
from tests.shells import shell

NOW = datetime(2026, 6, 1, tzinfo=timezone.utc)


@pytest.fixture
def server() -> Iterator[KronvexServer]:
    with KronvexServer(clock=lambda: NOW) as server:
        yield server


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def client(server: KronvexServer, kind: str, disk: Disk) -> Iterator[Any]:
    with shell(kind, server.url, api_key=server.key) as client:
        client.inner._wiring.link.journal = disk
        yield client


@pytest.fixture
def alice(server: KronvexServer, client: Any) -> Agent:
    """An agent that the client knows already."""
    client.remember("alice", "the very first memory")
    return server.agents[0]


def shown(row: Row) -> tuple[Any, ...]:
    """Everything that a repair must leave as it was."""
    return (row.content, row.session_id, row.metadata, row.superseded_by, row.pinned, row.expires_at, row.deleted)


def contents(hits: Any) -> list[str]:
    return [hit.content for hit in hits]


# ── a row of somebody else ───────────────────────────────────────────────────────────────────────────────────────


def test_the_same_text_in_two_sessions_is_two_memories(client: Any, alice: Agent, disk: Disk) -> None:
    theirs = client.remember("alice", "alpha bravo", session_id="theirs", metadata={"secret": 1}, tags=["x"])
    ours = client.remember("alice", "alpha bravo", session_id="ours")
    assert (ours.session_id, ours.metadata, ours.tags, ours.deduplicated) == ("ours", {}, (), False)
    assert ours.id != theirs.id
    client.forget("alice", ours.id)
    assert contents(client.recall("alice", "alpha bravo", session_id="theirs")) == ["alpha bravo"]
    assert contents(client.recall("alice", "alpha bravo", session_id="ours")) == []
    assert disk.entries == []


def test_a_text_that_the_own_session_has_is_found_behind_that_of_another(
    server: KronvexServer, client: Any, alice: Agent
) -> None:
    client.remember("alice", "alpha bravo", session_id="theirs")
    ours = client.remember("alice", "alpha bravo", session_id="ours")
    with counted(server) as sent:
        again = client.remember("alice", "Alpha bravo!", session_id="ours")
    assert (again.id, again.session_id, again.deduplicated) == (ours.id, "ours", True)
    assert sent == ["POST remember", "GET memories"]


@pytest.mark.parametrize(("old", "new"), [("port 80", "port 81"), ("Anna", "Hannah")])
def test_a_text_with_one_other_word_is_stored_beside_the_first(client: Any, alice: Agent, old: str, new: str) -> None:
    long = "the long story of {} and how it was told again and again with many more words about one two three four five"
    first = client.remember("alice", long.format(old))
    second = client.remember("alice", long.format(new))
    assert (second.content, second.deduplicated) == (long.format(new), False)
    assert {first.id, second.id} <= {one.id for one in client.memories("alice")}


@pytest.mark.parametrize("content", ["alpha bravo", "bravo alpha"])
def test_a_row_that_kronmem_did_not_store_is_never_touched(client: Any, alice: Agent, content: str) -> None:
    foreign = row(alice, content, session_id="theirs", metadata={"secret": "tell nobody"})
    before = shown(foreign)
    with pytest.raises(ConflictError, match="not stored by kronmem") as caught:
        client.remember("alice", "alpha bravo", session_id="ours")
    assert "secret" not in str(caught.value)
    assert "theirs" not in str(caught.value)
    assert shown(foreign) == before
    assert len(alice.kept()) == 2


def test_without_a_journal_nothing_is_set_aside(client: Any, alice: Agent) -> None:
    client.inner._wiring.link.journal = None
    client.remember("alice", "alpha bravo", session_id="theirs")
    with pytest.raises(ConflictError, match="outbox"):
        client.remember("alice", "alpha bravo", session_id="ours")
    assert len(alice.kept()) == 2


def test_five_rows_in_the_way_are_set_aside_and_a_sixth_is_a_conflict(client: Any, alice: Agent, disk: Disk) -> None:
    for number in range(5):
        client.remember("alice", "alpha bravo", session_id=f"s{number}")
    client.remember("alice", "alpha bravo", session_id="s5")
    before = [shown(one) for one in alice.rows]
    with pytest.raises(ConflictError, match="more than 5"):
        client.remember("alice", "alpha bravo", session_id="s6")
    assert ([shown(one) for one in alice.rows], disk.entries) == (before, [])


def test_what_was_set_aside_is_restored_when_the_store_fails(
    server: KronvexServer, client: Any, alice: Agent, disk: Disk
) -> None:
    theirs = client.remember("alice", "alpha bravo", session_id="theirs")
    stores = iter([1])

    def fail_second(request: Any) -> None:
        if request.path.endswith("/remember") and next(stores, None) is None:
            server.limits.month = 0

    server.on_request = fail_second
    with pytest.raises(Exception, match="402"):
        client.remember("alice", "alpha bravo", session_id="ours")
    assert [one.id for one in client.memories("alice", session_id="theirs")] == [theirs.id]
    assert disk.entries == []


def test_a_row_that_is_forgotten_before_it_is_set_aside_is_not_restored(
    server: KronvexServer, client: Any, alice: Agent, disk: Disk
) -> None:
    """Only the call that deleted a row may bring it back; one that finds it gone does not know why."""
    theirs = client.remember("alice", "alpha bravo", session_id="theirs")

    def forget_and_fail(request: Any) -> None:
        if request.method == "DELETE":
            next(one for one in alice.rows if one.id == theirs.id).deleted = True
            server.limits.month = 0

    server.on_request = forget_and_fail
    with pytest.raises(QuotaError):
        client.remember("alice", "alpha bravo", session_id="ours")
    assert ([one.content for one in alice.kept()], disk.entries) == (["the very first memory"], [])


@pytest.mark.parametrize(
    ("take_back", "stays"),
    [
        (lambda client, theirs, own: client.forget("alice", theirs), False),
        (lambda client, theirs, own: client.forget("alice", own), False),
        (lambda client, theirs, own: client.clear("alice"), False),
        (lambda client, theirs, own: client.clear("alice", session_id="theirs"), False),
        (lambda client, theirs, own: client.clear("alice", session_id="somebody else's"), True),
    ],
)
def test_what_is_forgotten_while_it_is_set_aside_does_not_come_back(
    server: KronvexServer, client: Any, alice: Agent, disk: Disk, take_back: Any, stays: bool
) -> None:
    own = "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"
    theirs = client.remember("alice", "alpha bravo", session_id="theirs", memory_id=own)
    second = iter([False, True])

    def on_request(request: Any) -> None:
        if request.path.endswith("/remember") and next(second, False):
            thread = threading.Thread(target=lambda: answers.append(take_back(client, theirs.id, own)))
            thread.start()
            thread.join()

    answers: list[int | None] = []
    server.on_request = on_request
    assert client.remember("alice", "alpha bravo", session_id="ours").session_id == "ours"
    found = {one.session_id for one in alice.kept() if one.content == "alpha bravo"}
    assert found == ({"ours", "theirs"} if stays else {"ours"})
    assert (len(answers), disk.entries) == (1, [])
    assert answers[0] in ([0] if stays else [None, 1, 2])  # `clear` counts it


# ── a dead row ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_paris_berlin_paris_again_is_paris_and_its_history_stays(client: Any, alice: Agent, disk: Disk) -> None:
    for city in ("Paris", "Berlin", "Paris"):
        last = client.remember("alice", f"The user lives in {city}")
    assert not last.deduplicated
    assert contents(client.recall("alice", "The user lives in Paris", 1)) == ["The user lives in Paris"]
    assert contents(client.memories("alice"))[0] == "The user lives in Paris"
    old = [one for one in alice.kept() if one.superseded_by]
    assert sorted(one.content for one in old) == ["The user lives in Berlin", "The user lives in Paris"]
    assert disk.entries == []


def test_a_memory_that_ran_out_can_be_told_again(kind: str) -> None:
    now = NOW
    with KronvexServer(clock=lambda: now) as server, shell(kind, server.url, api_key=server.key) as client:
        client.remember("alice", "the code is 1234", ttl_seconds=60)
        now += timedelta(seconds=61)
        again = client.remember("alice", "the code is 1234", ttl_seconds=600)
        assert not again.deduplicated
        assert contents(client.recall("alice", "the code is 1234")) == ["the code is 1234"]


# ── the own row ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_plain_repeat_is_the_memory_itself_and_one_request(server: KronvexServer, client: Any, alice: Agent) -> None:
    first = client.remember("alice", "alpha bravo", tags=["x"], metadata={"a": 1}, pinned=True, session_id="s")
    with counted(server) as sent:
        again = client.remember("alice", "alpha bravo", session_id="s")
    assert (again.id, again.tags, again.metadata, again.deduplicated) == (first.id, ("x",), {"a": 1}, True)
    assert sent == ["POST remember"]


def test_a_pin_that_comes_later_is_set(server: KronvexServer, client: Any, alice: Agent) -> None:
    first = client.remember("alice", "alpha bravo", ttl_days=1)
    with counted(server) as sent:
        again = client.remember("alice", "alpha bravo", pinned=True)
    assert (again.id, again.pinned, again.expires_at) == (first.id, True, None)
    assert sent == ["POST remember", f"PATCH {first.id}"]


@pytest.mark.parametrize("session_id", [None, "s"])
@pytest.mark.parametrize(
    ("first", "again", "after"),
    [
        ({"tags": ["x"]}, {"tags": ["y"]}, {"tags": ("x", "y")}),
        ({"metadata": {"a": 1}}, {"metadata": {"b": 2}}, {"metadata": {"b": 2}}),
        ({"ttl_days": 1}, {"ttl_days": 3}, {"expires_at": NOW + timedelta(days=3)}),
        ({"ttl_days": 3}, {"ttl_days": 1}, {"expires_at": NOW + timedelta(days=3)}),
        ({"ttl_days": 3}, {}, {"expires_at": None}),
        ({}, {"ttl_days": 3}, {"expires_at": None}),
        ({"tags": ["x"]}, {"pinned": True}, {"pinned": True, "tags": ("x",)}),
        ({"memory_type": "decision"}, {"tags": ["y"], "memory_type": "fact"}, {"memory_type": "decision"}),
    ],
)
def test_what_a_repeat_adds_is_applied(
    client: Any, alice: Agent, disk: Disk, session_id: str | None, first: Any, again: Any, after: Any
) -> None:
    old = client.remember("alice", "alpha bravo", session_id=session_id, **first)
    new = client.remember("alice", "alpha bravo", session_id=session_id, **again)
    (kept,) = [one for one in client.memories("alice") if one.content == "alpha bravo"]
    for one in (new, kept):
        assert {name: getattr(one, name) for name in after} == after
    assert new.deduplicated
    assert disk.entries == []
    client.forget("alice", old.id)
    assert [one for one in client.memories("alice") if one.content == "alpha bravo"] == []


def test_without_a_journal_the_own_row_is_not_deleted_either(server: KronvexServer, client: Any, alice: Agent) -> None:
    client.inner._wiring.link.journal = None
    first = client.remember("alice", "alpha bravo", tags=["x"])
    with counted(server) as sent, pytest.raises(ConflictError, match="without an outbox"):
        client.remember("alice", "alpha bravo", tags=["y"])
    assert sent == ["POST remember"]
    assert client.remember("alice", "alpha bravo").id == first.id


class Stalled(Process):
    """Its clock runs to the deadline of every store that follows a delete."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.time = 0.0
        self.link.now = lambda: self.time

    def _do(self, step: Any) -> Any:
        if self.disk and self.disk.entries and getattr(step, "path", "").endswith("/remember"):
            self.time += step.timeout
            raise DeadlineError("too slow")
        return super()._do(step)


def test_the_own_row_is_back_by_the_deadline_when_it_cannot_be_stored_anew(server: KronvexServer) -> None:
    server.agents.append(agent := Agent("alice", server.key, NOW))
    wanted, _ = own_row(agent)
    process = Stalled(server, disk := Disk())
    with pytest.raises(DeadlineError, match="too slow"):
        process.call(calls.remember(wanted))
    assert [(one.content, one.deleted) for one in agent.rows] == [("alpha bravo", False)]
    assert (disk.entries, process.link.abandoned) == ([], [])
    assert process.time <= 9.0


def test_one_id_with_two_texts_is_a_conflict_when_the_server_folds_them(client: Any, alice: Agent) -> None:
    own = "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"
    long = "the long story of {} and how it was told again and again with many more words about one two three four five"
    client.remember("alice", long.format("Anna"), memory_id=own)
    with pytest.raises(ConflictError, match="already used"):
        client.remember("alice", long.format("Hannah"), memory_id=own)


def test_one_id_with_two_texts_is_a_conflict_on_any_machine(server: KronvexServer, kind: str) -> None:
    own, other = "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d", "1b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"
    with shell(kind, server.url, api_key=server.key) as here:
        here.recall("alice", "nobody is there yet")
        assert here.remember("alice", "the very first", memory_id="2" + own[1:]).content == "the very first"
        for number in range(120):
            here.remember("alice", f"{number} thing{number}")
        here.remember("alice", "alpha bravo", memory_id=own)
        forget_all_names(here)
        with pytest.raises(ConflictError, match="already used"):
            here.remember("alice", "charlie delta", memory_id=own)
        assert here.remember("alice", "alpha bravo", memory_id=own).deduplicated
        with counted(server) as sent:
            here.remember("alice", "echo foxtrot", memory_id=other)
        assert sent == ["GET memories", "POST remember"]
        here.forget("alice", own)
        assert here.remember("alice", "charlie delta", memory_id=own).content == "charlie delta"


def test_an_id_is_looked_for_to_the_end_after_a_walk_that_broke_off(
    server: KronvexServer, alice: Agent, kind: str
) -> None:
    own = "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"
    row(alice, "alpha bravo", metadata=mark(own))
    for number in range(120):
        row(alice, f"{number} thing{number}")

    def break_off(request: Any) -> None:
        if request.query.get("page") == "2":
            server.refuse.add("GET")

    server.on_request = break_off
    with shell(kind, server.url, api_key=server.key, outbox=False, retry=Retry(attempts=1)) as here:
        with pytest.raises(ServerError):
            here.remember("alice", "charlie delta", memory_id=own)
        server.on_request, server.refuse = None, set()
        with pytest.raises(ConflictError, match="already used"):
            here.remember("alice", "charlie delta", memory_id=own)


class Beside(Process):
    """Another thread, in the middle of its own look, adds the newest row to the ids that both know."""

    held: dict[str, tuple[frozenset[str], int]] | None = None
    newest: str

    def _do(self, step: Any) -> Any:
        if self.held is not None and not self.link.names.known_ids["alice"]:
            self.held[self.newest] = (frozenset(), 0)
        return super()._do(step)


def test_an_id_is_looked_for_to_the_end_beside_another_thread(server: KronvexServer) -> None:
    server.agents.append(agent := Agent("alice", server.key, NOW))
    row(agent, "alpha bravo", metadata=mark("mine"))
    for number in range(120):
        row(agent, f"{number} thing{number}")
    process = Beside(server, Disk())
    process.newest = agent.rows[-1].id
    process.call(calls.remember(draft("alice", "other", "echo foxtrot", own_id=True)))
    process.held = process.link.names.known_ids["alice"]
    with pytest.raises(ConflictError, match="already used"):
        process.call(calls.remember(draft("alice", "mine", "charlie delta", own_id=True)))


def test_a_memory_keeps_the_newest_of_its_former_ids(client: Any, alice: Agent) -> None:
    known = [client.remember("alice", "alpha bravo", metadata={"n": number}).id for number in range(16)]
    (kept,) = [one for one in alice.kept() if one.content == "alpha bravo"]
    was = kept.metadata["kronmem"]["was"]
    assert (kept.id, len(was)) == (known[-1], 20)
    assert [one for one in was if one in known] == known[-2:-12:-1]  # one in two is an id of ours


@pytest.mark.parametrize("date", ["Mon, 01 Jan 99999999999 00:00:00 GMT", "Mon, 01 Jun 2026 00:00:00 -0000", "soon"])
def test_a_fold_is_read_by_any_date_and_any_end(kind: str, date: str) -> None:
    stored = {"id": "1", "content": "alpha bravo", "deduplicated": True, "expires_at": "2099-01-01T00:00:00"}
    vendor = respond(201, {"x-kronvex-version": "0.4.0", "date": date}, {**stored, "metadata": mark("k1")})
    with RawServer([vendor]) as server, shell(kind, server.url, outbox=False) as client:
        assert client.remember("alice", "alpha bravo", ttl_days=1).deduplicated
        assert len(server.requests) == 1


def forget_all_names(client: Any) -> None:
    """What another machine would not know."""
    names = client.inner._wiring.link.names
    names.ids.clear()
    names.known_ids.clear()
    names.vendor = False


# ── sessions do not bury each other ──────────────────────────────────────────────────────────────────────────────


def test_a_session_does_not_hide_the_like_memory_of_another(client: Any, alice: Agent) -> None:
    for name in ("Anna", "Bert"):
        client.remember("alice", f"The user lives in {name} town", session_id=name)
    assert contents(client.recall("alice", "The user lives in Anna town", session_id="Anna")) == [
        "The user lives in Anna town"
    ]
    kept = [one for one in client.memories("alice") if one.session_id]
    assert [one.pinned for one in kept] == [False, False]
    assert [one.pinned for one in alice.rows[1:]] == [True, True]


def test_a_pin_of_the_users_own_and_a_lifetime_are_kept_as_they_are(client: Any, alice: Agent) -> None:
    pinned = client.remember("alice", "alpha bravo", session_id="s", pinned=True)
    brief = client.remember("alice", "charlie delta", session_id="s", ttl_days=3)
    assert (pinned.pinned, brief.pinned, brief.expires_at) == (True, False, NOW + timedelta(days=3))
    assert [one.pinned for one in alice.rows[1:]] == [True, False]


def test_the_first_memory_of_a_new_agent_is_pinned_too(server: KronvexServer, client: Any) -> None:
    assert not client.remember("bob", "alpha bravo", session_id="s").pinned
    assert server.agents[-1].rows[0].pinned


# ── a text that can never be embedded ────────────────────────────────────────────────────────────────────────────


def test_a_text_that_can_never_be_embedded_is_refused_and_an_outage_is_not(server: KronvexServer, kind: str) -> None:
    quick = Retry(first=0.0)
    with shell(kind, server.url, api_key=server.key, outbox=False, retry=quick) as client:
        client.remember("alice", "alpha bravo")
        with pytest.raises(InvalidInputError, match="8,192 tokens"):
            client.remember("alice", "記" * 9000)
        server.embedding_down = True
        with pytest.raises(ServerError):
            client.remember("alice", "charlie delta")


# ── a kill between any two steps ─────────────────────────────────────────────────────────────────────────────────

Scene = Callable[[Agent], tuple[calls.Draft, list[Row]]]


def other_session(agent: Agent) -> tuple[calls.Draft, list[Row]]:
    theirs = row(agent, "alpha bravo", session_id="theirs", metadata=mark("k1"))
    return draft("alice", "mine", "alpha bravo", session_id="ours"), [theirs]


def two_other_sessions(agent: Agent) -> tuple[calls.Draft, list[Row]]:
    both = [row(agent, "alpha bravo", session_id=name, metadata=mark(name)) for name in ("one", "two")]
    return draft("alice", "mine", "alpha bravo", session_id="ours"), both


def superseded(agent: Agent) -> tuple[calls.Draft, list[Row]]:
    newer = row(agent, "something newer", metadata=mark("k2"))
    dead = row(agent, "alpha bravo", metadata=mark("k1"), superseded_by=newer.id)
    return draft("alice", "mine", "alpha bravo"), [newer, dead]


def other_words(agent: Agent) -> tuple[calls.Draft, list[Row]]:
    return draft("alice", "mine", "alpha bravo"), [row(agent, "bravo alpha", metadata=mark("k1"))]


def ran_out(agent: Agent) -> tuple[calls.Draft, list[Row]]:
    row(agent, "alpha bravo", metadata=mark("k1"), expires_at=NOW - timedelta(minutes=1), deleted=False)
    return draft("alice", "mine", "alpha bravo"), []


def own_row(agent: Agent) -> tuple[calls.Draft, list[Row]]:
    row(agent, "alpha bravo", metadata=mark("k1", tags=["x"]))
    return draft("alice", "mine", "alpha bravo", tags=("y",)), []


def own_row_and_another(agent: Agent) -> tuple[calls.Draft, list[Row]]:
    row(agent, "alpha bravo", metadata=mark("k1", tags=["x"]), session_id="ours")
    theirs = row(agent, "alpha bravo", session_id="theirs", metadata=mark("k2"))
    return draft("alice", "mine", "alpha bravo", tags=("y",), session_id="ours"), [theirs]


@pytest.mark.parametrize(
    "scene", [other_session, two_other_sessions, superseded, ran_out, other_words, own_row, own_row_and_another]
)
def test_a_kill_at_any_step_loses_nothing_and_doubles_nothing(scene: Scene) -> None:
    for kill_before in range(100):
        server, disk = KronvexServer(clock=lambda: NOW), Disk()
        agent = Agent("alice", server.key, NOW)
        server.agents.append(agent)
        wanted, others = scene(agent)
        before = copy.deepcopy([shown(one) for one in others])
        doomed = Process(server, disk, kill_before)
        try:
            doomed.call(calls.remember(wanted))
        except Killed:
            pass
        else:
            assert kill_before > 5
            break
        heir = Process(server, disk)
        heir.call(calls.agents())
        heir.recover()
        assert [shown(one) for one in others] == before
        heir.call(calls.remember(wanted))  # the outbox delivers the row once more
        heir.call(calls.recall("alice", "alpha bravo", 20, calls.MemoryFilter(), None, most=20))
        assert [shown(one) for one in others] == before
        assert disk.entries == []
        alive = [one for one in agent.live(NOW) if one not in others and not one.superseded_by]
        assert [(one.content, one.session_id) for one in alive] == [("alpha bravo", wanted.session_id)], kill_before
        assert set(wanted.tags) <= set(alive[0].metadata["kronmem"].get("tags", []))
    else:
        pytest.fail("it never came to its end")


def test_what_two_processes_bring_back_at_once_can_be_forgotten_by_the_first() -> None:
    server, disk = KronvexServer(clock=lambda: NOW), Disk()
    server.agents.append(agent := Agent("alice", server.key, NOW))
    theirs = row(agent, "alpha bravo", metadata=mark("k1"), deleted=True)
    disk.put(Aside("alice", theirs.id))
    first, second = Process(server, disk), Process(server, disk)
    slower = flows.recover(second.link, 10.0)
    look = next(slower)
    second._do(look)
    first.recover()
    first.call(calls.forget("alice", theirs.id))
    with pytest.raises(StopIteration):
        step = slower.send(Reply(0))
        while True:
            step = slower.send(second._do(step))
    assert theirs.deleted


class Emptied(list[Any]):
    """A list that another thread empties right after the look."""

    def __bool__(self) -> bool:
        return True


def test_two_calls_may_bring_back_what_a_cancelled_one_left(server: KronvexServer) -> None:
    process = Process(server, Disk())
    process.link.abandoned = Emptied()
    assert process.call(calls.agents()) == []


def test_what_a_killed_process_had_set_aside_or_was_about_to_can_be_forgotten_by_the_next_one() -> None:
    for kill_before in range(100):
        server, disk = KronvexServer(clock=lambda: NOW), Disk()
        server.agents.append(agent := Agent("alice", server.key, NOW))
        wanted, (theirs,) = other_session(agent)
        doomed = Process(server, disk, kill_before)
        try:
            doomed.call(calls.remember(wanted))
        except Killed:
            pass
        else:
            break
        heir = Process(server, disk)
        heir.call(calls.forget("alice", theirs.id))
        heir.recover()
        assert (theirs.deleted, disk.entries) == (True, []), kill_before
    else:
        pytest.fail("it never came to its end")


@pytest.mark.parametrize("session_id", [None, "theirs"])
def test_what_a_killed_process_had_set_aside_can_be_cleared_by_the_next_one(session_id: str | None) -> None:
    for kill_before in range(100):
        server, disk = KronvexServer(clock=lambda: NOW), Disk()
        server.agents.append(agent := Agent("alice", server.key, NOW))
        wanted, (theirs,) = other_session(agent)
        doomed = Process(server, disk, kill_before)
        try:
            doomed.call(calls.remember(wanted))
        except Killed:
            pass
        else:
            break
        heir = Process(server, disk)
        heir.drive(flows.clear("alice", session_id, None, heir.link, 10.0))
        heir.recover()
        assert (theirs.deleted, disk.entries) == (True, []), kill_before
    else:
        pytest.fail("it never came to its end")


@pytest.mark.parametrize("scene", [other_session, superseded, own_row, own_row_and_another])
def test_what_a_cancelled_call_had_set_aside_is_back_with_the_next_call(scene: Scene) -> None:
    for kill_before in range(100):
        server, disk = KronvexServer(clock=lambda: NOW), Disk()
        agent = Agent("alice", server.key, NOW)
        server.agents.append(agent)
        wanted, _ = scene(agent)
        before = [one for one in agent.rows if not one.superseded_by]
        process = Process(server, disk, kill_before, cancelled=True)
        try:
            process.call(calls.remember(wanted))
        except Killed:
            pass
        else:
            break
        process.kill_before = None
        found = process.call(calls.recall("alice", "alpha bravo", 20, calls.MemoryFilter(), None, most=20))
        assert {one.session_id for one in before if one.content == "alpha bravo"} <= {
            hit.memory.session_id for hit in found
        }
        assert (disk.entries, process.link.abandoned) == ([], []), kill_before
        assert not any(one.deleted for one in agent.rows if one.session_id != wanted.session_id)
    else:
        pytest.fail("it never came to its end")
