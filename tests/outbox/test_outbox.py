"""remember_later: on disk when it returns, delivered once, in order, under its own key; and an agent that goes on."""

from __future__ import annotations

import math
import os
import platform
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest

from kronmem import (
    Client,
    ConfigError,
    NotFoundError,
    OutboxFullError,
    Retry,
    ServerError,
    StoreError,
    TransportError,
)
from kronmem.core.abilities import RemoteService
from kronmem.core.calls import Draft
from kronmem.core.policy import Breaker
from kronmem.kronvex import Kronvex
from kronmem.outbox.deliver import Delivery, Sender
from kronmem.outbox.policy import LEASE, Delay
from kronmem.outbox.queue import KEPT, OutboxFile, is_gone, me
from kronmem.transport.drive import Transport
from tests.outbox.services import NOBODY, until
from tests.services import KronvexServer, RawServer
from tests.services.raw import close, hang, reset_after, respond
from tests.shells import shell

FAST = Retry(attempts=1)


def stored(request: Any) -> dict[str, Any]:
    return {"id": f"service-{request.body['metadata']['kronmem']['id']}", "content": request.body["content"]}


def keeping(server: RawServer, connection: Any, request: Any) -> None:
    """Take everything, under ids of the service's own."""
    respond(
        *((204,) if request.method == "DELETE" else (201,)), body=b"" if request.method == "DELETE" else stored(request)
    )(server, connection, request)


def texts(server: RawServer) -> list[str]:
    return [request.body["content"] for request in server.requests if request.method == "POST"]


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Clock:
    time = 1_000_000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path, clock: Clock) -> Any:
    file = OutboxFile(str(tmp_path / "private" / "outbox.db"), now=clock, most_rows=20, most_bytes=5000)
    yield file
    file.close()


def draft(number: int, agent: str = "alice", **more: Any) -> Draft:
    return Draft(agent, f"id-{agent}-{number}", f"text {number}", **more)


def test_rows_of_one_agent_leave_in_order_and_a_lease_holds_the_others_back(file: OutboxFile) -> None:
    lane = file.lane("http://s", "k")
    file.put(lane, [draft(1), draft(2)])
    file.put(lane, [draft(3, "bob")])
    assert [row.draft.content for row in file.claim(lane)] == ["text 1", "text 2"]
    assert [row.draft.agent_id for row in file.claim(lane)] == ["bob"]
    assert file.claim(lane) == []


def test_a_row_of_a_process_that_ended_is_free_at_once(file: OutboxFile) -> None:
    lane = file.lane("http://s", "k")
    file.put(lane, [draft(1)])
    child = os.fork()
    if child == 0:
        os._exit(len(file.claim(lane)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert len(file.claim(lane)) == 1


def test_who_holds_a_lease_is_known() -> None:
    assert not is_gone(me())
    node, pid, started = me().rsplit("|", 2)
    assert is_gone(f"{node}|{pid}|{started}0")  # the number is ours, the process was another
    assert not is_gone(f"elsewhere|{pid}|1")
    assert not is_gone(f"{platform.node()} pid:[1]|{pid}|1")  # another container of the same name
    assert not is_gone("")


def test_a_claim_that_another_process_took_over_is_not_renewed(file: OutboxFile, clock: Clock) -> None:
    """Or both would send the rows: one that was forgotten after its delivery would be back."""
    lane = file.lane("http://s", "k")
    file.put(lane, [draft(1), draft(2), draft(3)])
    slept = file.claim(lane)
    clock.time += LEASE + 1
    first, *_ = file.claim(lane)
    assert file.renew(slept) == []
    file.done(lane, first, "stored")
    assert file.renew(slept) == []
    assert file.claim(lane) == []


def test_claimed_rows_are_held_for_another_lease(file: OutboxFile, clock: Clock) -> None:
    lane = file.lane("http://s", "k")
    file.put(lane, [draft(1), draft(2)])
    claimed = file.claim(lane)
    clock.time += LEASE - 1
    renewed = file.renew(claimed)
    clock.time += LEASE - 1
    assert (len(renewed), file.claim(lane)) == (2, [])
    file.release(renewed)
    assert len(file.claim(lane)) == 2


def test_rows_handed_back_to_a_busy_file_are_released_later(file: OutboxFile) -> None:
    lane = file.lane("http://s", "k")
    file.put(lane, [draft(1)])
    (row,) = file.claim(lane)
    busy = [StoreError("database is locked")]

    class Busy(OutboxFile):
        def release(self, claimed: Any) -> None:
            for error in busy:
                raise error
            super().release(claimed)

    delivery = Delivery(Busy(file.path))
    sender = Sender("http://s", "k", cast("Transport", None), Breaker(), 1.0, RemoteService(Kronvex()), math.inf)
    delivery.hand_back([row])
    delivery._serve(sender)
    assert file.claim(lane) == []
    busy.clear()
    delivery._serve(sender)
    assert len(file.claim(lane)) == 1
    delivery.close()


IN_A_CONTAINER = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
HOLDER = "import sys; from kronmem.outbox.queue import me; print(me(), flush=True); sys.stdin.read()"


@pytest.mark.slow
def test_a_process_in_another_container_of_the_same_name_is_not_taken_for_one_that_ended() -> None:
    if shutil.which("unshare") is None or subprocess.run([*IN_A_CONTAINER, "true"], capture_output=True).returncode:
        pytest.skip("no containers may be made here")
    with subprocess.Popen(
        [*IN_A_CONTAINER, sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert not is_gone(process.stdout.readline().strip())
        process.communicate()


def test_a_row_of_a_silent_process_elsewhere_is_free_after_its_lease(file: OutboxFile, clock: Clock) -> None:
    lane = file.lane("http://s", "k")
    file.put(lane, [draft(1)])
    assert len(file.claim(lane)) == 1
    clock.time += LEASE - 1
    assert file.claim(lane) == []
    assert file.next_due(lane) == 1.0
    clock.time += 1
    assert len(file.claim(lane)) == 1


@pytest.mark.parametrize("jump", [-10_000_000.0, 10_000_000.0])
def test_a_clock_that_jumps_leaves_nothing_stuck(file: OutboxFile, clock: Clock, jump: float) -> None:
    lane = file.lane("http://s", "k")
    file.put(lane, [draft(1), draft(2, "bob")])
    (row,) = file.claim(lane)
    file.later(lane, row, "down", Delay(60.0), refused=0, sent=False)
    file.claim(lane)
    clock.time += jump
    assert {row.draft.agent_id for _ in range(2) for row in file.claim(lane)} == {"alice", "bob"}


def test_a_claim_respects_backoff_and_named_times_and_a_person_skips_them(file: OutboxFile, clock: Clock) -> None:
    lane = file.lane("http://s", "k")
    file.put(lane, [draft(1)])
    (row,) = file.claim(lane)
    file.later(lane, row, "slow down", Delay(1.0, 3600.0), refused=0, sent=False)
    clock.time += 3599
    assert file.claim(lane) == []
    assert file.agent_after(lane, b"") == b"alice"
    (row,) = file.claim_agent(lane, b"alice") or []
    assert row.attempts == 1
    file.tried(lane, row, "again", Delay(60.0), sent=False)
    assert file.agent_after(lane, b"alice") == b""
    assert file.claim(lane) == []
    clock.time += 1
    (row,) = file.claim(lane)
    assert row.attempts == 1  # the try out of turn counted towards nothing
    assert file.claim_agent(lane, b"alice") is None  # under a lease
    assert file.claim_agent(lane, b"bob") == []


def test_a_lane_belongs_to_one_service_and_one_key(file: OutboxFile) -> None:
    mine, other, elsewhere = file.lane("http://s", "k1"), file.lane("http://s", "k2"), file.lane("http://t", "k1")
    file.put(mine, [draft(1)])
    assert len({mine, other, elsewhere}) == 3
    assert (file.claim(other), file.claim(elsewhere)) == ([], [])
    assert (file.pending(mine), file.pending(other)) == (1, 0)
    assert not file.cancel(other, "alice", "id-alice-1")
    assert file.lane("http://s", "k1") == mine


def test_a_full_outbox_says_so_and_drops_nothing(file: OutboxFile) -> None:
    lane = file.lane("http://s", "k")
    file.put(lane, [draft(n) for n in range(20)])
    with pytest.raises(OutboxFullError, match="20 memories"):
        file.put(lane, [draft(21)])
    (row, *_) = file.claim(lane)
    file.done(lane, row, "m")
    file.put(lane, [draft(21)])
    with pytest.raises(OutboxFullError):
        file.put(lane, [draft(1, "bob", metadata={"x": "y" * 6000})])
    assert file.pending(lane) == 20


def test_the_size_of_an_outbox_is_counted_in_bytes_whatever_the_language(file: OutboxFile) -> None:
    lane = file.lane("http://s", "key")
    with pytest.raises(OutboxFullError):
        file.put(lane, [Draft("alice", "id", "\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 2000)])
    assert file.pending(lane) == 0


def test_where_a_delivered_memory_is_kept_is_known_for_thirty_days(file: OutboxFile, clock: Clock) -> None:
    lane = file.lane("http://s", "k")
    file.put(lane, [draft(1), draft(2)])
    for number, row in enumerate(file.claim(lane)):
        file.done(lane, row, f"m{number}")
    assert file.delivered(lane, "alice", "id-alice-1") == "m0"
    assert file.delivered(lane, "bob", "id-alice-1") is None
    clock.time += KEPT + 1
    file.put(lane, [draft(3)])
    file.done(lane, file.claim(lane)[0], "m3")
    assert file.delivered(lane, "alice", "id-alice-1") is None


def test_the_file_is_private_and_holds_no_key(file: OutboxFile) -> None:
    lane = file.lane("http://s", "kv-top-secret")
    file.put(lane, [draft(1)])
    place = Path(file.path)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert all(b"kv-top-secret" not in part.read_bytes() for part in place.parent.iterdir())


def test_a_symlink_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.db").touch()
    (tmp_path / "outbox.db").symlink_to(tmp_path / "other.db")
    with (
        Client(NOBODY, outbox=tmp_path / "outbox.db", retry=FAST) as client,
        pytest.raises(StoreError, match="symbolic link"),
    ):
        client.remember_later("alice", "text")


# ── the clients ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_queued_is_delivered_behind_the_callers_back(kind: str, tmp_path: Path) -> None:
    with RawServer([keeping]) as server, shell(kind, server.url, outbox=tmp_path / "o.db") as client:
        ids = [client.remember_later("alice", f"text {n}", "decision", tags=["t"], metadata={"n": n}) for n in range(5)]
        assert client.inner.outbox is not None
        assert flushed(client) == 0
        assert texts(server) == [f"text {n}" for n in range(5)]
        assert [request.headers["idempotency-key"] for request in server.requests] == ids
        metadata = server.requests[0].body["metadata"]
        assert datetime.fromisoformat(metadata["kronmem"].pop("said_at")).tzinfo is not None
        assert metadata["kronmem"].pop("age") >= 0
        assert metadata == {"n": 0, "kronmem": {"id": ids[0], "type": "decision", "tags": ["t"]}}
        client.forget("alice", ids[2])
        assert server.requests[-1].path == f"/api/v1/agents/alice/memories/service-{ids[2]}"


def flushed(client: Any, timeout: float = 20.0) -> int:
    outbox = client.inner.outbox
    if hasattr(client, "portal"):
        return int(client.portal.call(outbox.flush, timeout))
    return int(outbox.flush(timeout))


def asked(client: Any, name: str) -> Any:
    method = getattr(client.inner.outbox, name)
    return client.portal.call(method) if hasattr(client, "portal") else method()


def test_an_unreachable_service_queues_and_the_result_says_so(kind: str, tmp_path: Path) -> None:
    with shell(kind, NOBODY, outbox=tmp_path / "o.db", retry=FAST) as client:
        memory = client.remember(
            "alice", "text", "decision", session_id="s", tags=["t"], metadata={"a": 1}, pinned=True
        )
        assert memory.queued
        assert (memory.content, memory.memory_type, memory.session_id, memory.tags) == ("text", "decision", "s", ("t",))
        assert [one.queued for one in client.remember_many("alice", ["one", "two"])] == [True, True]
        assert asked(client, "pending") == 3
        assert client.health().pending == 3
        with pytest.raises(TransportError):
            client.recall("alice", "text")


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_failing_service_queues_too(kind: str, tmp_path: Path, status: int) -> None:
    with (
        RawServer([respond(status)]) as server,
        shell(kind, server.url, outbox=tmp_path / "o.db", retry=FAST) as client,
    ):
        assert client.remember("alice", "text").queued


@pytest.mark.parametrize("status", [400, 401, 402, 404, 409, 422])
def test_a_refusal_is_the_callers_to_hear(kind: str, tmp_path: Path, status: int) -> None:
    with RawServer([respond(status)]) as server, shell(kind, server.url, outbox=tmp_path / "o.db") as client:
        with pytest.raises(Exception, match=str(status)):
            client.remember("alice", "text")
        assert not (tmp_path / "o.db").exists()


def test_a_memory_does_not_overtake_those_that_wait(tmp_path: Path) -> None:
    with Client(NOBODY, outbox=tmp_path / "o.db", retry=FAST) as client:
        client.remember_later("alice", "the old fact")
    down = threading.Event()

    def answer(server: RawServer, connection: Any, request: Any) -> None:
        (respond(503) if not down.is_set() and b"old" in request.content else keeping)(server, connection, request)

    with RawServer([answer]) as server:
        relocate(tmp_path / "o.db", server.url)
        with Client(server.url, outbox=tmp_path / "o.db", retry=FAST) as client:
            assert client.remember("alice", "the new fact").queued
            assert not client.remember("bob", "something else").queued
            down.set()
            assert client.outbox.flush(20.0) == 0
            assert not client.remember("alice", "the newest fact").queued
        taken = [r.body["content"] for r in server.requests if r.body["content"] != "the old fact"]
        assert taken.index("the new fact") < taken.index("the newest fact")
        assert texts(server).index("the old fact") < texts(server).index("the new fact")


def relocate(path: Path, url: str) -> None:
    """Let rows that waited for one address wait for another: a service that moved."""
    with sqlite3.connect(path) as db:
        db.execute("UPDATE waiting SET service = ?, backoff = 0, asked = 0, lease = 0", (url,))
    db.close()


ASKS: dict[str, Callable[[Any], object]] = {
    "recall": lambda client: client.recall("alice", "anything"),
    "recall_many": lambda client: client.recall_many("alice", ["anything"]),
    "recall_across": lambda client: client.recall_across(["alice"], "anything"),
    "memories": lambda client: list(client.memories("alice")),
}


@pytest.mark.parametrize("ask", ASKS)
def test_what_one_process_left_the_next_delivers_by_itself(kind: str, tmp_path: Path, ask: str) -> None:
    with Client(NOBODY, outbox=tmp_path / "o.db", retry=FAST) as client:
        client.remember_later("alice", "left behind")
    delivered = threading.Event()

    def answer(server: RawServer, connection: Any, request: Any) -> None:
        keeping(server, connection, request) if request.path.endswith("remember") else respond(
            200, body={"results": [], "memories": [], "total": 0}
        )(server, connection, request)
        if request.path.endswith("remember"):
            delivered.set()

    with RawServer([answer]) as server:
        relocate(tmp_path / "o.db", server.url)
        with shell(kind, server.url, outbox=tmp_path / "o.db") as client:
            ASKS[ask](client)
            assert delivered.wait(20)


def test_forgetting_while_queued_means_never_delivered(kind: str, tmp_path: Path) -> None:
    with shell(kind, NOBODY, outbox=tmp_path / "o.db", retry=FAST) as client:
        keep = client.remember_later("alice", "keep this")
        drop = client.remember_later("alice", "drop this")
        client.remember_later("alice", "drop that", session_id="s")
        client.forget("alice", drop)
        with pytest.raises(TransportError):
            client.clear("alice", session_id="s")
        with pytest.raises(TransportError):
            client.forget("bob", keep)
    with RawServer([keeping]) as server:
        relocate(tmp_path / "o.db", server.url)
        with Client(server.url, outbox=tmp_path / "o.db") as client:
            client.outbox.flush(20.0)
            assert client.outbox.pending() == 0
        kept = {r.body["content"] for r in server.requests if r.method == "POST"}
        forgotten = {r.path.rsplit("/", 1)[1] for r in server.requests if r.method == "DELETE"}
        # The row that was being tried when it was taken back may have arrived unheard: it is forgotten there.
        assert "keep this" in kept
        assert {f"service-{r.headers['idempotency-key']}" for r in server.requests if b"drop" in r.content} <= forgotten


def test_a_refused_memory_is_kept_listed_and_can_be_retried(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = threading.Event()

    def answer(server: RawServer, connection: Any, request: Any) -> None:
        refuse = b"bad memory" in request.content and not good.is_set()
        (respond(422, body={"detail": "no such type"}) if refuse else keeping)(server, connection, request)

    with RawServer([answer]) as server, shell(kind, server.url, outbox=tmp_path / "o.db") as client:
        bad = client.remember_later("alice", "bad memory")
        client.remember_later("alice", "good memory")
        assert flushed(client) == 0
        (letter,) = asked(client, "dead")
        assert (letter.id, letter.agent_id, letter.content) == (bad, "alice", "bad memory")
        assert letter.error == "422: no such type"
        assert "good memory" in texts(server)
        good.set()
        assert asked(client, "retry_dead") == 1
        assert flushed(client) == 0
        assert asked(client, "dead") == []
    assert sum("dead letter" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("status", [401, 402, 403, 307])
def test_a_refused_key_or_plan_pauses_the_queue_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    with RawServer([respond(status), respond(status), respond(status), keeping]) as server:
        with Client(server.url, api_key="kv-x", outbox=tmp_path / "o.db") as client:
            for agent in ("alice", "bob"):
                client.remember_later(agent, "text")
            until(lambda: "refuses everything" in caplog.text)  # by the thread; each flush after it asks once more
            assert [client.outbox.flush(5.0) for _ in range(2)] == [2, 2]
            assert len(server.requests) == 3
            assert client.outbox.dead() == []
            assert client.outbox.flush(20.0) == 0
    assert sum("refuses everything" in record.message for record in caplog.records) == 1


@pytest.mark.slow
def test_a_reply_lost_after_the_commit_is_one_memory_at_kronvex(tmp_path: Path) -> None:
    with KronvexServer() as server, Client(server.url, api_key=server.key, outbox=tmp_path / "o.db") as client:
        client.remember("alice", "first words")
        server.lose_next(2)
        queued = client.remember_later("alice", "alpha bravo charlie")
        assert client.outbox.flush(20.0) == 0
        assert sorted(memory.content for memory in client.memories("alice")) == ["alpha bravo charlie", "first words"]
        client.forget("alice", queued)
        assert [memory.content for memory in client.memories("alice")] == ["first words"]
        with pytest.raises(NotFoundError):
            client.forget("alice", queued)


def test_closing_delivers_what_can_be_delivered_and_a_dead_service_holds_nobody(kind: str, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with RawServer([keeping]) as server:
        with shell(kind, server.url, outbox=tmp_path / "o.db") as client:
            client.remember_later("alice", "text")
        assert texts(server) == ["text"]
    with shell(kind, NOBODY, outbox=tmp_path / "p.db") as client:
        client.remember_later("alice", "text")
    assert not any(thread.name == "kronmem-outbox" for thread in set(threading.enumerate()) - before)


def test_a_client_closed_while_its_thread_looks_for_repairs_leaves_no_thread_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, looking, restore = set(threading.enumerate()), threading.Event(), Sender.restore
    client = Client(NOBODY, outbox=tmp_path / "o.db")

    def late(self: Sender, file: OutboxFile, timeout: float) -> None:
        looking.set()
        until(lambda: client._post is not None and client._post._joined is None)
        restore(self, file, timeout)

    monkeypatch.setattr(Sender, "restore", late)
    client.remember_later("alice", "text")
    assert looking.wait(20)
    client.close()
    assert not any(thread.name == "kronmem-outbox" for thread in set(threading.enumerate()) - before)
    with pytest.raises(ConfigError, match="closed"):
        client.remember_later("alice", "too late")


def test_two_keys_share_a_file_and_nothing_crosses(tmp_path: Path) -> None:
    with RawServer([keeping]) as server:
        clients = [Client(server.url, api_key=f"kv-{n}", outbox=tmp_path / "o.db") for n in range(2)]
        for number, client in enumerate(clients):
            for turn in range(10):
                client.remember_later("shared", f"key {number} turn {turn}")
        assert [client.outbox.flush(20.0) for client in clients] == [0, 0]
        for client in clients:
            client.close()
        assert all(r.body["content"].startswith(f"key {r.headers['x-api-key'][-1]}") for r in server.requests)
        assert len(server.requests) == 20


def test_the_delivery_starts_again_after_a_fork(tmp_path: Path) -> None:
    with RawServer([keeping]) as server, Client(server.url, outbox=tmp_path / "o.db") as client:
        client.remember_later("alice", "from the parent")
        assert client.outbox.flush(20.0) == 0
        child = os.fork()
        if child == 0:
            client.remember_later("alice", "from the child")
            os._exit(client.outbox.flush(20.0))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        client.remember_later("alice", "from the parent again")
        assert client.outbox.flush(20.0) == 0
        assert sorted(texts(server)) == ["from the child", "from the parent", "from the parent again"]


def test_a_file_that_is_no_database_is_not_replaced(tmp_path: Path) -> None:
    garbage = b"this is no database at all" * 100
    (tmp_path / "o.db").write_bytes(garbage)
    with RawServer([keeping]) as server, Client(server.url, outbox=tmp_path / "o.db") as client:
        with pytest.raises(StoreError, match=r"\.recover"):
            client.remember_later("alice", "text")
        assert not client.remember("alice", "stored").queued
    assert (tmp_path / "o.db").read_bytes() == garbage


def test_an_outbox_that_cannot_be_written_is_an_explicit_error_and_the_agent_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with RawServer([keeping]) as server, Client(server.url, outbox=tmp_path / "file" / "o.db", retry=FAST) as client:
        with pytest.raises(StoreError):
            client.remember_later("alice", "text")
        assert not client.remember("alice", "text").queued
    with Client(NOBODY, outbox=tmp_path / "file" / "o.db", retry=FAST) as client, pytest.raises(TransportError):
        client.remember("alice", "text")


def test_a_full_disk_is_an_explicit_error_and_what_was_queued_stays(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        with Client(NOBODY, outbox=small / "o.db", retry=FAST) as client:
            accepted = [client.remember_later("alice", "first")]
            with pytest.raises(StoreError, match="full"):
                for number in range(2000):
                    accepted.append(client.remember_later("alice", f"{number} " + "words " * 200))
            assert client.outbox.pending() == len(accepted)
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_without_an_outbox_an_outage_is_an_error(kind: str) -> None:
    with shell(kind, NOBODY, outbox=False, retry=FAST) as client:
        with pytest.raises(ConfigError, match="outbox"):
            client.remember_later("alice", "text")
        with pytest.raises(TransportError):
            client.remember("alice", "text")
    with RawServer([respond(500)]) as server, shell(kind, server.url, outbox=False, retry=FAST) as client:
        with pytest.raises(ServerError):
            client.remember("alice", "text")


def test_an_embedded_client_writes_directly(kind: str) -> None:
    with shell(kind, "sqlite://") as client:
        queued = client.remember_later("alice", "alpha bravo charlie")
        assert [hit.memory.id for hit in client.recall("alice", "alpha bravo")] == [queued]
        assert (asked(client, "pending"), flushed(client), asked(client, "dead"), asked(client, "retry_dead")) == (
            0,
            0,
            [],
            0,
        )


def test_the_lifetime_of_a_queued_memory_counts_from_when_it_was_said(tmp_path: Path) -> None:
    with Client(NOBODY, outbox=tmp_path / "o.db", retry=FAST) as client:
        client.remember_later("alice", "lives long", ttl_days=1)
        client.remember_later("alice", "is over", ttl_seconds=60)
    with sqlite3.connect(tmp_path / "o.db") as db:
        db.execute("UPDATE waiting SET created = created - 3600")
    db.close()
    with RawServer([keeping]) as server:
        relocate(tmp_path / "o.db", server.url)
        with Client(server.url, outbox=tmp_path / "o.db") as client:
            assert client.outbox.flush(20.0) == 0
        (request,) = server.requests
        assert 82_000 < request.body["ttl_seconds"] < 82_900


@pytest.mark.parametrize("action", [hang(), close(), reset_after(lambda request: None)])
def test_a_service_that_hangs_or_breaks_costs_the_caller_nothing(kind: str, tmp_path: Path, action: Any) -> None:
    with RawServer([action]) as server, shell(kind, server.url, outbox=tmp_path / "o.db", timeout=0.3) as client:
        for number in range(20):
            client.remember_later("alice", f"text {number}")
        assert asked(client, "pending") == 20


def test_redaction_reaches_the_outbox(tmp_path: Path) -> None:
    hide = lambda text: text.replace("4111", "[card]")  # noqa: E731 -- as a user would write it
    with Client(NOBODY, outbox=tmp_path / "o.db", retry=FAST, redact=hide) as client:
        client.remember_later("alice", "card 4111", metadata={"m": "4111"}, tags=["4111"])
    assert all(b"4111" not in part.read_bytes() for part in tmp_path.glob("o.db*"))
