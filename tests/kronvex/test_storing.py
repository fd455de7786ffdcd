"""Storing at a server that folds a text into any like row: stored beside it or refused, and killed at every step."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kronmem import ConflictError, DeadlineError, InvalidInputError, Retry, ServerError
from kronmem.core import calls
from tests.kronvex.stepping import Killed, Process, draft
from tests.kronvex.stores import counted, mark, row
from tests.services import KronvexServer
from tests.services.raw import RawServer, respond
from tests.services.rows import Agent, Row
from tests.shells import shell

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[KronvexServer]:
    with KronvexServer(clock=lambda: NOW) as server:
        yield server


@pytest.fixture
def client(server: KronvexServer, kind: str) -> Iterator[Any]:
    with shell(kind, server.url, api_key=server.key) as client:
        yield client


@pytest.fixture
def alice(server: KronvexServer, client: Any) -> Agent:
    """An agent that the client knows already."""
    client.remember("alice", "the very first memory")
    return server.agents[0]


def shown(row: Row) -> tuple[Any, ...]:
    """Everything that a store of another memory must leave as it was."""
    return (row.content, row.session_id, row.metadata, row.superseded_by, row.pinned, row.expires_at, row.deleted)


def contents(hits: Any) -> list[str]:
    return [hit.content for hit in hits]


# ── a row of another memory ──────────────────────────────────────────────────────────────────────────────────────

LONG = "the long story of {} and how it was told again and again with many more words about one two three four five"
NOT_PLAIN: list[dict[str, Any]] = [{"session_id": "ours"}, {"pinned": True}, {"ttl_seconds": 600}]


@pytest.mark.parametrize("mine", NOT_PLAIN)
def test_a_text_that_the_server_has_for_another_session_is_refused_and_named(
    server: KronvexServer, client: Any, alice: Agent, mine: Any
) -> None:
    client.remember("alice", "alpha bravo", session_id="theirs", metadata={"secret": 1}, tags=["x"])
    before = shown(alice.rows[-1])
    with counted(server) as sent, pytest.raises(ConflictError, match="'alpha bravo'") as caught:
        client.remember("alice", "Alpha, bravo!", **mine)
    assert "secret" not in str(caught.value)
    assert "theirs" not in str(caught.value)
    assert (shown(alice.rows[-1]), len(alice.rows)) == (before, 2)
    assert sent == ["POST remember", "GET memories"]


def test_a_plain_text_that_the_server_has_for_a_session_is_stored_beside_it(
    server: KronvexServer, client: Any, alice: Agent
) -> None:
    theirs = client.remember("alice", "alpha bravo", session_id="theirs", metadata={"secret": 1}, tags=["x"])
    before = shown(alice.rows[-1])
    with counted(server) as sent:
        ours = client.remember("alice", "alpha bravo", "decision", metadata={"n": 1}, ttl_days=3)
    assert sent == ["POST remember", "GET memories", "POST bulk-import", "GET memories"]
    assert (ours.session_id, ours.metadata, ours.tags, ours.memory_type) == (None, {"n": 1}, (), "decision")
    assert (ours.expires_at, ours.deduplicated) == (NOW + timedelta(days=3), False)
    assert client.get("alice", ours.id).content == "alpha bravo"
    client.forget("alice", ours.id)
    assert [one.id for one in client.memories("alice") if one.content == "alpha bravo"] == [theirs.id]
    assert shown(alice.rows[1]) == before


def test_a_text_that_was_stored_beside_another_is_forgotten_by_the_id_it_was_given(client: Any, alice: Agent) -> None:
    own = "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"
    client.remember("alice", "alpha bravo", session_id="theirs")
    client.remember("alice", "alpha bravo", memory_id=own)
    client.forget("alice", own)
    assert [one.session_id for one in client.memories("alice") if one.content == "alpha bravo"] == ["theirs"]


@pytest.mark.parametrize("session_id", [None, "ours"])
def test_a_text_that_the_own_session_has_is_found_behind_that_of_another(
    server: KronvexServer, client: Any, alice: Agent, session_id: str | None
) -> None:
    row(alice, "alpha bravo", session_id="theirs", metadata=mark("k1"))
    ours = row(alice, "alpha bravo", session_id=session_id, metadata=mark("k2"))
    with counted(server) as sent:
        again = client.remember("alice", "Alpha bravo!", session_id=session_id)
    assert (again.id, again.session_id, again.deduplicated) == (ours.id, session_id, True)
    assert sent == ["POST remember", "GET memories"]


@pytest.mark.parametrize(("old", "new"), [("port 80", "port 81"), ("Anna", "Hannah")])
def test_a_text_with_one_other_word_is_stored_beside_the_first(client: Any, alice: Agent, old: str, new: str) -> None:
    first = client.remember("alice", LONG.format(old))
    second = client.remember("alice", LONG.format(new))
    assert (second.content, second.deduplicated) == (LONG.format(new), False)
    assert {first.id, second.id} <= {one.id for one in client.memories("alice")}
    with pytest.raises(ConflictError, match="'the long story of"):
        client.remember("alice", LONG.format(old[:-1] + "x"), session_id="s")


@pytest.mark.parametrize("content", ["alpha bravo", "bravo alpha"])
@pytest.mark.parametrize("mine", [{}, *NOT_PLAIN])
def test_a_row_that_kronmem_did_not_store_is_never_touched(client: Any, alice: Agent, content: str, mine: Any) -> None:
    foreign = row(alice, content, session_id="theirs", metadata={"secret": "tell nobody"})
    before = shown(foreign)
    if mine:
        with pytest.raises(ConflictError, match=repr(content)):
            client.remember("alice", "alpha bravo", **mine)
    else:
        assert client.remember("alice", "alpha bravo").metadata == {}
    assert shown(foreign) == before
    assert len(alice.kept()) == (2 if mine else 3)


# ── a dead row ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_paris_berlin_paris_again_is_paris_and_its_history_stays(client: Any, alice: Agent) -> None:
    for city in ("Paris", "Berlin", "Paris"):
        last = client.remember("alice", f"The user lives in {city}")
    assert not last.deduplicated
    assert contents(client.recall("alice", "The user lives in Paris", 1)) == ["The user lives in Paris"]
    assert contents(client.memories("alice"))[0] == "The user lives in Paris"
    assert [one.content for one in alice.kept() if one.superseded_by] == ["The user lives in Paris"]


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
    client: Any, alice: Agent, session_id: str | None, first: Any, again: Any, after: Any
) -> None:
    old = client.remember("alice", "alpha bravo", session_id=session_id, **first)
    new = client.remember("alice", "alpha bravo", session_id=session_id, **again)
    (kept,) = [one for one in client.memories("alice") if one.content == "alpha bravo"]
    for one in (new, kept):
        assert {name: getattr(one, name) for name in after} == after
    assert new.deduplicated
    client.forget("alice", old.id)
    assert [one for one in client.memories("alice") if one.content == "alpha bravo"] == []


class Stalled(Process):
    """Its clock runs to the deadline of every store that follows a delete."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.time = 0.0
        self.link.now = lambda: self.time

    def _do(self, step: Any) -> Any:
        if self.server.agents[0].rows[0].deleted and getattr(step, "path", "").endswith("/remember"):
            self.time += step.timeout
            raise DeadlineError("too slow")
        return super()._do(step)


def test_the_own_row_is_back_by_the_deadline_when_it_cannot_be_stored_again(server: KronvexServer) -> None:
    server.agents.append(agent := Agent("alice", server.key, NOW))
    wanted = own_row_of_a_session(agent)
    process = Stalled(server)
    with pytest.raises(DeadlineError, match="too slow"):
        process.call(calls.remember(wanted))
    assert [(one.content, one.deleted) for one in agent.rows] == [("alpha bravo", False)]
    assert process.time <= 9.0


def test_the_own_row_is_back_with_the_next_call_when_the_server_fails(
    server: KronvexServer, alice: Agent, kind: str
) -> None:
    row(alice, "alpha bravo", session_id="ours", metadata=mark("k1"))
    server.on_request = lambda request: server.refuse.add("POST") if request.method == "DELETE" else None
    with shell(kind, server.url, api_key=server.key, outbox=False, retry=Retry(attempts=1)) as here:
        with pytest.raises(ServerError):
            here.remember("alice", "alpha bravo", session_id="ours", tags=["x"])
        assert [one.content for one in alice.kept()] == ["the very first memory"]
        server.on_request, server.refuse = None, set()
        assert [one.session_id for one in here.memories("alice") if one.content == "alpha bravo"] == ["ours"]


def test_the_own_row_stays_when_another_one_is_in_its_way(client: Any, alice: Agent) -> None:
    row(alice, "alpha bravo", session_id="theirs", metadata=mark("k1"))
    ours = row(alice, "alpha bravo", session_id="ours", metadata=mark("k2"))
    before = [shown(one) for one in alice.rows]
    with pytest.raises(ConflictError, match="'alpha bravo'"):
        client.remember("alice", "alpha bravo", session_id="ours", tags=["x"])
    assert [shown(one) for one in alice.rows] == before
    assert client.get("alice", ours.id).tags == ()


def test_one_id_with_two_texts_is_a_conflict_when_the_server_folds_them(client: Any, alice: Agent) -> None:
    own = "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"
    client.remember("alice", LONG.format("Anna"), memory_id=own)
    with pytest.raises(ConflictError, match="already used"):
        client.remember("alice", LONG.format("Hannah"), memory_id=own)


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
        if self.held is not None and not known_ids(self)["alice"]:
            self.held[self.newest] = (frozenset(), 0)
        return super()._do(step)


def test_an_id_is_looked_for_to_the_end_beside_another_thread(server: KronvexServer) -> None:
    server.agents.append(agent := Agent("alice", server.key, NOW))
    row(agent, "alpha bravo", metadata=mark("mine"))
    for number in range(120):
        row(agent, f"{number} thing{number}")
    process = Beside(server)
    process.newest = agent.rows[-1].id
    process.call(calls.remember(draft("alice", "other", "echo foxtrot", own_id=True)))
    process.held = known_ids(process)["alice"]
    with pytest.raises(ConflictError, match="already used"):
        process.call(calls.remember(draft("alice", "mine", "charlie delta", own_id=True)))


def known_ids(process: Process) -> Any:
    return process.link.service.vendor.known_ids  # type: ignore[attr-defined] # of Kronvex


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
    service = client.inner._wiring.link.service
    service.vendor.ids.clear()
    service.vendor.known_ids.clear()
    service.is_vendor = False


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

Scene = Callable[[Agent], calls.Draft]


def of_a_session(agent: Agent) -> calls.Draft:
    row(agent, "alpha bravo", session_id="theirs", metadata=mark("k1"))
    return draft("alice", "mine", "alpha bravo")


def superseded(agent: Agent) -> calls.Draft:
    newer = row(agent, "something newer", metadata=mark("k2"))
    row(agent, "alpha bravo", metadata=mark("k1"), superseded_by=newer.id)
    return draft("alice", "mine", "alpha bravo")


def other_words(agent: Agent) -> calls.Draft:
    row(agent, "bravo alpha", metadata=mark("k1"))
    return draft("alice", "mine", "alpha bravo")


def ran_out(agent: Agent) -> calls.Draft:
    row(agent, "alpha bravo", metadata=mark("k1"), expires_at=NOW - timedelta(minutes=1))
    return draft("alice", "mine", "alpha bravo")


def own_row(agent: Agent) -> calls.Draft:
    row(agent, "alpha bravo", metadata=mark("k1", tags=["x"]))
    return draft("alice", "mine", "alpha bravo", tags=("y",))


def own_row_of_a_session(agent: Agent) -> calls.Draft:
    row(agent, "alpha bravo", metadata=mark("k1", tags=["x"]), session_id="ours")
    return draft("alice", "mine", "alpha bravo", tags=("y",), session_id="ours")


@pytest.mark.parametrize("scene", [of_a_session, superseded, other_words, ran_out, own_row])
def test_a_kill_at_any_step_loses_nothing_and_doubles_nothing(scene: Scene) -> None:
    for kill_before in range(100):
        server = KronvexServer(clock=lambda: NOW)
        server.agents.append(agent := Agent("alice", server.key, NOW))
        wanted = scene(agent)
        others = [one for one in agent.rows if scene is not own_row]
        before = copy.deepcopy([shown(one) for one in others])
        try:
            Process(server, kill_before).call(calls.remember(wanted))
        except Killed:
            pass
        else:
            assert kill_before > 4
            break
        heir = Process(server)
        everything = calls.recall("alice", "alpha bravo", 20, calls.MemoryFilter(), None, most=20)
        assert scene is not own_row or [hit.content for hit in heir.call(everything)] == ["alpha bravo"], kill_before
        heir.call(calls.remember(wanted))  # the outbox delivers the row once more
        heir.call(everything)
        assert [shown(one) for one in others] == before
        alive = [one for one in agent.live(NOW) if one not in others]
        assert [(one.content, one.session_id) for one in alive] == [("alpha bravo", wanted.session_id)], kill_before
        assert set(wanted.tags) <= set(alive[0].metadata["kronmem"].get("tags", []))
    else:
        pytest.fail("it never came to its end")


@pytest.mark.parametrize("scene", [own_row, own_row_of_a_session])
def test_an_own_row_that_a_cancelled_call_had_deleted_is_back_with_the_next_call(scene: Scene) -> None:
    for kill_before in range(100):
        server = KronvexServer(clock=lambda: NOW)
        server.agents.append(agent := Agent("alice", server.key, NOW))
        wanted = scene(agent)
        process = Process(server, kill_before, cancelled=True)
        try:
            process.call(calls.remember(wanted))
        except Killed:
            pass
        else:
            break
        process.kill_before = None
        found = process.call(calls.recall("alice", "alpha bravo", 20, calls.MemoryFilter(), None, most=20))
        assert [(hit.content, hit.memory.session_id) for hit in found] == [("alpha bravo", wanted.session_id)]
    else:
        pytest.fail("it never came to its end")
