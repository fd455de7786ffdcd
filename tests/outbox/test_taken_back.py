"""What was taken back is neither delivered nor left behind, and an id that is in use buries nothing in silence."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client, ConflictError, Retry
from kronmem.core.calls import Draft
from kronmem.outbox import policy
from kronmem.outbox.file import Lane
from kronmem.outbox.queue import OutboxFile, me
from tests.outbox.services import NOBODY, ONCE, Switched, asked, change, failing_on, keeping, stored, texts, until
from tests.services import RawServer
from tests.services.raw import close, respond
from tests.shells import shell

SAME = "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"


def deleted(server: RawServer) -> list[str]:
    return [request.path.rsplit("/", 1)[1] for request in server.requests if request.method == "DELETE"]


# ── one id, two memories ─────────────────────────────────────────────────────────────────────────────────────────


def test_an_id_that_waits_for_another_memory_is_a_conflict(kind: str, tmp_path: Path) -> None:
    with shell(kind, NOBODY, outbox=tmp_path / "o.db", retry=ONCE) as client:
        client.remember_later("alice", "one text", memory_id=SAME)
        client.remember_later("alice", "one text", memory_id=SAME)  # told twice
        with pytest.raises(ConflictError, match=f"{SAME}.*another text"):
            client.remember_later("alice", "another text", memory_id=SAME)
        with pytest.raises(ConflictError, match="another agent"):
            client.remember_later("bob", "one text", memory_id=SAME)
        assert [(row.agent_id, row.content) for row in asked(client, "list")] == [("alice", "one text")]


@pytest.mark.parametrize("other", [{"api_key": "kv-new"}, {"url": "http://127.0.0.1:1"}])
def test_an_id_that_waits_under_another_key_or_url_is_a_conflict(tmp_path: Path, other: dict[str, str]) -> None:
    first: dict[str, str] = {"url": NOBODY, "api_key": "kv-old"}
    with Client(**first, outbox=tmp_path / "o.db", retry=ONCE) as client:
        client.remember_later("alice", "one text", memory_id=SAME)
    with Client(**{**first, **other}, outbox=tmp_path / "o.db", retry=ONCE) as client:
        with pytest.raises(ConflictError, match=f"another agent, key or url .{NOBODY}"):
            client.remember_later("alice", "one text", memory_id=SAME)
        assert client.outbox.pending() == 0


def test_a_dead_letter_makes_way_for_its_corrected_text(tmp_path: Path) -> None:
    with (
        RawServer([failing_on(b"wrong", respond(422))]) as server,
        Client(server.url, outbox=tmp_path / "o.db") as client,
    ):
        client.remember_later("alice", "wrong", memory_id=SAME)
        until(client.outbox.dead)
        client.remember_later("alice", "right", memory_id=SAME)
        assert client.outbox.flush(20.0) == 0
        assert client.outbox.dead() == []
        assert texts(server) == ["wrong", "right"]


# ── sent, but unheard ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_memory_whose_reply_was_lost_is_forgotten_at_the_service_too(kind: str, tmp_path: Path) -> None:
    service = Switched(reset_after_storing)
    with RawServer([service]) as server, shell(kind, server.url, outbox=tmp_path / "o.db", retry=ONCE) as client:
        queued = client.remember("alice", "second thoughts")
        assert queued.queued
        client.forget("alice", queued.id)
        service.action = keeping
        assert asked(client, "flush", 20.0) == 0
        assert deleted(server) == [f"service-{queued.id}"]


@pytest.mark.parametrize("then", [respond(503), respond(429), close()])
def test_a_lost_reply_is_not_forgotten_over_the_attempts_after_it(tmp_path: Path, then: Any) -> None:
    """A service that stored and went down: the last attempt says that it did nothing, the first may have."""

    def answer(server: RawServer, connection: Any, request: Any) -> None:
        (then if len(server.requests) > 1 else reset_after_storing)(server, connection, request)

    service = Switched(answer)
    with RawServer([service]) as server, Client(server.url, outbox=tmp_path / "o.db", retry=Retry(2, 0.01)) as client:
        queued = client.remember("alice", "second thoughts")
        assert queued.queued
        assert len(texts(server)) == 2
        client.forget("alice", queued.id)
        service.action = keeping
        assert client.outbox.flush(20.0) == 0
        assert deleted(server) == [f"service-{queued.id}"]


def reset_after_storing(_server: RawServer, connection: Any, _request: Any) -> None:
    """The reply is lost: the service has the memory."""
    connection.reset()


def test_a_memory_that_could_not_be_sent_is_not_delivered_to_be_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "delay", lambda *_: policy.Delay(3600.0))  # forgotten between two tries, not in one
    with Client(NOBODY, outbox=tmp_path / "o.db", retry=ONCE) as client:
        queued = client.remember_later("alice", "second thoughts")
        until(lambda: client.outbox.list()[0].attempts > 0)
        client.forget("alice", queued)
        assert client.outbox.pending() == 0


TAKEN_BACK: dict[str, Callable[[Any, str], object]] = {
    "forgotten": lambda client, queued: client.forget("alice", queued),
    "cleared": lambda client, queued: client.clear("alice", session_id="s"),
    "dropped": lambda client, queued: asked(client, "drop", queued),
}


@pytest.mark.parametrize("how", TAKEN_BACK)
@pytest.mark.parametrize("status", [503, 401, 422])
def test_a_memory_taken_back_during_a_try_that_stores_nothing_is_never_sent_again(
    kind: str, how: str, status: int, tmp_path: Path
) -> None:
    tried, taken_back = threading.Event(), threading.Event()

    def answer(server: RawServer, connection: Any, request: Any) -> None:
        if request.path.endswith("/remember"):
            tried.set()
            assert taken_back.wait(60)
            respond(status, {"retry-after": "3600"})(server, connection, request)
        else:  # a clear finds nothing
            respond(200, body={"deleted": 0})(server, connection, request)

    service = Switched(answer)
    with RawServer([service]) as server, shell(kind, server.url, outbox=tmp_path / "o.db", timeout=60.0) as client:
        queued = client.remember_later("alice", "second thoughts", session_id="s")
        assert tried.wait(60)
        TAKEN_BACK[how](client, queued)
        taken_back.set()
        until(lambda: asked(client, "pending") == 0)
        service.action = keeping
        assert asked(client, "flush", 20.0) == 0
        assert (texts(server), asked(client, "dead")) == (["second thoughts"], [])
        assert not [one for one in deleted(server) if how != "cleared"]


def test_a_memory_that_was_never_sent_is_not_delivered_to_be_forgotten(kind: str, tmp_path: Path) -> None:
    service = Switched(respond(503, {"retry-after": "3600"}))
    with RawServer([service]) as server, shell(kind, server.url, outbox=tmp_path / "o.db", retry=ONCE) as client:
        queued = client.remember("alice", "second thoughts")
        assert asked(client, "flush", 0.5) == 1
        client.forget("alice", queued.id)
        before = len(texts(server))
        service.action = keeping
        assert asked(client, "flush", 20.0) == 0
        assert (len(texts(server)), deleted(server)) == (before, [])


def test_a_dead_letter_that_the_service_may_have_is_forgotten_there_and_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "LONGEST_BACKOFF", 0.01)
    with (
        RawServer([failing_on(b"poison", respond(500))]) as server,
        Client(server.url, outbox=tmp_path / "o.db") as client,
    ):
        bad = client.remember_later("alice", "poison")
        until(client.outbox.dead)
        client.forget("alice", bad)
        assert client.outbox.dead() == []
        assert deleted(server) == [bad]


# ── dropped, expired, erased ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "take_back", [lambda client, id: client.forget("alice", id), lambda client, id: client.outbox.drop(id)]
)
def test_a_memory_taken_back_while_it_is_sent_is_forgotten_on_arrival(
    tmp_path: Path, take_back: Callable[[Client, str], object]
) -> None:
    arrived, go_on = threading.Event(), threading.Event()

    def answer(server: RawServer, connection: Any, request: Any) -> None:
        if request.method == "POST":
            arrived.set()
            go_on.wait(20)
        keeping(server, connection, request)

    with RawServer([answer]) as server, Client(server.url, outbox=tmp_path / "o.db") as client:
        queued = client.remember_later("alice", "second thoughts")
        assert arrived.wait(20)
        take_back(client, queued)
        assert not client.outbox.drop(queued)
        go_on.set()
        assert client.outbox.flush(20.0) == 0
        assert [(request.method, request.path.rsplit("/", 1)[1]) for request in server.requests] == [
            ("POST", "remember"),
            ("DELETE", f"service-{queued}"),
        ]


class Meanwhile(OutboxFile):
    """Something else happens right after its next look."""

    work: Callable[[], None] | None = None

    def read(self, work: Any) -> Any:
        answer = super().read(work)
        then, self.work = self.work, None
        if then is not None:
            then()
        return answer


def test_a_memory_that_becomes_a_dead_letter_while_it_is_taken_back_is_forgotten_at_the_service(tmp_path: Path) -> None:
    file = Meanwhile(str(tmp_path / "o.db"))
    lane = file.lane("http://a", "key")
    file.put(lane, [Draft("alice", SAME, "second thoughts")], sent=True)
    (row,) = file.claim(lane)
    file.work = lambda: file.bury(row, "the service fails on this memory", sent=True)
    assert file.cancel(lane, "alice", SAME) is None  # removed here, and the service may have it
    assert (file.dead(lane), file.pending(lane)) == ([], 0)
    file.close()


def test_what_was_taken_back_can_be_dropped_as_a_dead_letter_and_under_another_key(tmp_path: Path) -> None:
    file = OutboxFile(str(tmp_path / "o.db"))
    old, new = file.lane("http://s", "old"), file.lane("http://s", "new")
    for number, lane in enumerate((old, new)):
        draft = Draft("alice", f"id-{number}", f"text {number}")
        file.put(lane, [draft], sent=True)
        assert file.cancel(lane, "alice", draft.client_id)
    (row,) = file.claim(new)
    file.bury(row, "refused", sent=False)
    assert len(file.dead(new)) == len(file.stranded(new)) == 1
    assert file.remove(new, "id-0")
    assert file.remove(new, "id-1")
    assert file.dead(new) == file.stranded(new) == []
    file.close()


def cancelled(file: OutboxFile, lane: Lane) -> list[bool]:
    """Take the one row back, and see whether the service will be told."""
    assert file.cancel(lane, "alice", SAME)
    return [row.cancelled for row in file.claim(lane)]


def test_a_row_that_was_sent_under_another_key_is_forgotten_at_the_service_too(tmp_path: Path) -> None:
    with closing(OutboxFile(str(tmp_path / "o.db"))) as file:
        old, new = file.lane("http://s", "old"), file.lane("http://s", "new")
        file.put(old, [Draft("alice", SAME, "text")])
        assert file.claim(old)  # by a process that ends now: it may have sent the row
        assert file.adopt(new, "http://s") == 1
        assert cancelled(file, new) == [True]


def test_a_dead_letter_that_the_service_may_have_is_forgotten_there_though_it_was_told_anew(tmp_path: Path) -> None:
    with closing(OutboxFile(str(tmp_path / "o.db"))) as file:
        lane = file.lane("http://s", "")
        file.put(lane, [Draft("alice", SAME, "text")])
        file.bury(*file.claim(lane), "fails", sent=True)
        file.put(lane, [Draft("alice", SAME, "text")])
        assert cancelled(file, lane) == [True]


def test_a_row_that_becomes_a_dead_letter_by_a_lost_reply_is_forgotten_at_the_service_too(tmp_path: Path) -> None:
    with RawServer([failing_on(b"poison", respond(500))]) as server:
        with closing(OutboxFile(str(tmp_path / "o.db"))) as file:
            file.put(file.lane(server.url, ""), [Draft("alice", SAME, "poison")])
        change(tmp_path / "o.db", "UPDATE waiting SET refused = 2")  # by 503, which stores nothing
        with Client(server.url, outbox=tmp_path / "o.db") as client:
            client.recall("alice", "anything")
            until(client.outbox.dead)
            client.forget("alice", SAME)
            assert client.outbox.dead() == []
        assert deleted(server) == [SAME]


def test_a_row_of_a_process_that_ended_is_erased_or_dropped_at_once(tmp_path: Path) -> None:
    node = me().split("|")[0]
    with closing(OutboxFile(str(tmp_path / "o.db"))) as file:
        lane = file.lane("http://s", "")
        for agent in ("alice", "bob"):
            file.put(lane, [Draft(agent, f"id-{agent}", "text")])
            assert file.claim(lane)
        assert not file.erase(lane, "alice")  # this process may be sending it
        change(tmp_path / "o.db", f"UPDATE waiting SET holder = '{node}|999999999|1'")
        assert file.erase(lane, "alice")
        assert file.remove(lane, "id-bob")
        assert file.pending(lane) == 0


def test_who_only_looks_at_the_outbox_sends_nothing(kind: str, tmp_path: Path) -> None:
    with Client(NOBODY, outbox=tmp_path / "o.db", retry=ONCE) as client:
        kept, dropped = client.remember_later("alice", "kept"), client.remember_later("alice", "dropped")
    with RawServer([keeping]) as server:
        change(tmp_path / "o.db", f"UPDATE waiting SET service = '{server.url}', lease = 0, backoff = 0")
        with shell(kind, server.url, outbox=tmp_path / "o.db") as client:
            assert asked(client, "pending") == 2
            assert [row.id for row in asked(client, "list")] == [kept, dropped]
            assert asked(client, "dead") == asked(client, "stranded") == []
            assert client.health().pending == 2
        assert texts(server) == []
        with shell(kind, server.url, outbox=tmp_path / "o.db") as client:
            assert asked(client, "drop", dropped)  # before anything is sent
            assert asked(client, "flush", 20.0) == 0
        assert texts(server) == ["kept"]


def test_a_memory_that_expired_in_the_queue_is_not_sent_before_the_next(tmp_path: Path) -> None:
    service = Switched(respond(503))
    with RawServer([service]) as server, Client(server.url, outbox=tmp_path / "o.db", retry=ONCE) as client:
        client.remember("alice", "old", ttl_days=1)
        ago = time.time() - 3 * 86_400
        change(tmp_path / "o.db", f"UPDATE waiting SET created = {ago}, backoff = {time.time() + 3600}")
        del server.requests[:]
        service.action = lambda server, connection, request: respond(201, body=stored(request))(
            server, connection, request
        )
        assert not client.remember("alice", "new").queued
        assert texts(server) == ["new"]
        assert client.outbox.pending() == 0


def test_an_erasure_says_so_when_rows_of_the_agent_wait_under_another_key(kind: str, tmp_path: Path) -> None:
    with Client(NOBODY, api_key="kv-old", outbox=tmp_path / "o.db", retry=ONCE) as client:
        client.remember_later("alice", "old key")

    def answer(server: RawServer, connection: Any, request: Any) -> None:
        respond(200, body={"complete": True})(server, connection, request)

    with RawServer([answer]) as server:
        change(tmp_path / "o.db", f"UPDATE waiting SET service = '{server.url}'")
        with shell(kind, server.url, api_key="kv-new", outbox=tmp_path / "o.db") as client:
            assert client.erase("bob").complete
            assert not client.erase("alice").complete
            (row,) = asked(client, "stranded")
            assert asked(client, "drop", row.id)
            assert client.erase("alice").complete
