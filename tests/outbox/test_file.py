"""The outbox file locked, damaged, full, huge, old or newer: calls keep their deadlines and every other row goes on."""

from __future__ import annotations

import inspect
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from kronmem import AsyncClient, Client, DeadlineError, KronmemError, StoreError, TransportError
from kronmem.core.calls import Draft
from kronmem.outbox import file as disk
from kronmem.outbox.file import Lane, Waiting
from kronmem.outbox.outbox import Outbox
from kronmem.outbox.policy import Delay
from kronmem.outbox.queue import OutboxFile
from kronmem.sqlite_file import SqliteFile
from tests.outbox.services import NOBODY, ONCE, Switched, asked, change, keeping, texts, until
from tests.services import RawServer
from tests.services.raw import respond
from tests.shells import Awaiting, Blocking, shell

SAMPLE = Path(__file__).parent.parent / "samples" / "outbox-0.2.sql"
LONGEST = 60.0
"""Room for a busy machine: the lock is never released, so that a call without a deadline ends with the test's timeout."""


# ── locked ───────────────────────────────────────────────────────────────────────────────────────────────────────────

LOCK = """
import os, signal, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    db.execute(statement)
print("locked", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""
LOCKS = [("BEGIN IMMEDIATE",), ("BEGIN EXCLUSIVE",), ("PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE")]


@contextmanager
def locked(path: Path, *statements: str) -> Iterator[None]:
    """While a stopped process holds the lock."""
    process = subprocess.Popen([sys.executable, "-c", LOCK, str(path), *statements], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "locked\n"
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()


SLOW_LOCKS = [LOCKS[0], *(pytest.param(lock, marks=pytest.mark.slow) for lock in LOCKS[1:])]


@pytest.fixture(params=SLOW_LOCKS, ids=["immediate", "exclusive", "exclusive-mode"])
def lock(request: pytest.FixtureRequest) -> tuple[str, ...]:
    statements: tuple[str, ...] = request.param
    return statements


def begun(path: Path, url: str) -> None:
    """Make an outbox with one delivered row."""
    with Client(url, outbox=path) as client:
        client.remember_later("alice", "before")
        assert client.outbox.flush(20.0) == 0


def patient(client: Any) -> Any:
    """The same client for calls that are to succeed on a busy machine too."""
    inner = client.inner.with_timeout(LONGEST)
    return Awaiting(inner, client.portal) if isinstance(client, Awaiting) else Blocking(inner)


@pytest.mark.slow
def test_a_locked_outbox_breaks_no_deadline_and_recall_does_not_touch_it(
    kind: str, tmp_path: Path, lock: tuple[str, ...]
) -> None:
    unreadable = lock[0] == "PRAGMA locking_mode = EXCLUSIVE"
    with RawServer([keeping]) as server:
        begun(tmp_path / "o.db", server.url)
        with locked(tmp_path / "o.db", *lock):
            with shell(kind, server.url, outbox=tmp_path / "o.db", timeout=1.0) as client:
                for _ in range(3):
                    with pytest.raises(DeadlineError, match=r"o\.db is busy"):
                        client.remember_later("alice", "later")
                assert patient(client).recall("alice", "question") == []
                assert not patient(client).remember("alice", "stored").queued
                health = patient(client).health()
                assert health.ok
                assert (health.outbox_error is None) == (not unreadable)
                if not unreadable:  # else nobody can tell whether it is queued
                    patient(client).forget("alice", "some-id")
        with Client(server.url, outbox=tmp_path / "o.db") as client:
            client.remember_later("alice", "after")
            assert client.outbox.flush(LONGEST) == 0


@pytest.mark.slow
def test_a_thread_that_outlives_its_client_in_a_locked_file_keeps_no_row_of_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kronmem.sqlite_file.file.SLICE", 30.0)  # the thread waits inside SQLite all the while
    with RawServer([keeping]) as server:
        begun(tmp_path / "o.db", server.url)
        with locked(tmp_path / "o.db", "BEGIN IMMEDIATE"):
            with Client(server.url, outbox=tmp_path / "o.db", timeout=0.5) as client, pytest.raises(DeadlineError):
                client.remember_later("alice", "later")
        with closing(OutboxFile(str(tmp_path / "o.db"))) as file:
            file.put(file.lane(server.url, ""), [Draft("alice", "id", "after")])
            time.sleep(1.0)  # that thread gets its turn
        with Client(server.url, outbox=tmp_path / "o.db") as client:
            assert client.outbox.flush(20.0) == 0
            assert texts(server)[-1] == "after"


@pytest.mark.slow
def test_a_lock_found_once_is_not_waited_for_at_every_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "BUSY", 3600.0)
    waits: list[float] = []
    real, here = SqliteFile.transaction, threading.get_ident()

    def noting(self: SqliteFile, begin: str, timeout: float, **options: Any) -> Any:
        if threading.get_ident() == here and begin != "BEGIN":
            waits.append(timeout)
        return real(self, begin, timeout, **options)

    with RawServer([keeping]) as server:
        begun(tmp_path / "o.db", server.url)
        with locked(tmp_path / "o.db", "BEGIN IMMEDIATE"):
            with Client(server.url, outbox=tmp_path / "o.db", timeout=1.0) as client:
                monkeypatch.setattr(SqliteFile, "transaction", noting)
                for number in range(5):
                    with pytest.raises(DeadlineError):
                        client.remember_later("alice", f"text {number}")
                assert len(waits) == 5
                assert max(waits[1:]) <= disk.TRY


EVERY: dict[str, Callable[[Client], object]] = {
    "remember": lambda c: c.remember("alice", "text"),
    "remember_later": lambda c: c.remember_later("alice", "text"),
    "remember_many": lambda c: c.remember_many("alice", ["one", "two"]),
    "recall": lambda c: c.recall("alice", "question"),
    "recall_many": lambda c: c.recall_many("alice", ["question"]),
    "recall_across": lambda c: c.recall_across(["alice"], "question"),
    "inject_context": lambda c: c.inject_context("alice", "question"),
    "memories": lambda c: list(c.memories("alice")),
    "get": lambda c: c.get("alice", "some-id"),
    "update": lambda c: c.update("alice", "some-id", pinned=True),
    "history": lambda c: c.history("alice", "some-id"),
    "forget": lambda c: c.forget("alice", "some-id"),
    "clear": lambda c: c.clear("alice"),
    "erase": lambda c: c.erase("alice"),
    "restore": lambda c: c.restore("alice", []),
    "agents": lambda c: c.agents(),
    "describe": lambda c: c.describe("alice", description="a person"),
    "sessions": lambda c: c.sessions("alice"),
    "state": lambda c: c.state("alice").set("k", 1),
    "health": lambda c: c.health(),
    "close": lambda c: c.close(),
    "outbox.pending": lambda c: c.outbox.pending(),
    "outbox.list": lambda c: c.outbox.list(),
    "outbox.flush": lambda c: c.outbox.flush(SHORT),
    "outbox.dead": lambda c: c.outbox.dead(),
    "outbox.retry_dead": lambda c: c.outbox.retry_dead(),
    "outbox.drop": lambda c: c.outbox.drop("some-id"),
    "outbox.stranded": lambda c: c.outbox.stranded(),
    "outbox.elsewhere": lambda c: c.outbox.elsewhere(),
    "outbox.adopt": lambda c: c.outbox.adopt(),
}
SHORT = 0.2


def methods(of: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(of, inspect.isfunction) if not name.startswith("_")}


def test_every_method_is_tried_on_a_locked_outbox() -> None:
    without_service = {"agent", "with_timeout"}
    assert {*EVERY} == methods(Client) - without_service | {f"outbox.{name}" for name in methods(Outbox)}


@pytest.mark.slow
@pytest.mark.parametrize("away", [False, True], ids=["well", "away"])
@pytest.mark.parametrize("statements", [LOCKS[0], LOCKS[2]], ids=["immediate", "exclusive-mode"])
def test_no_method_waits_for_a_locked_outbox_longer_than_its_deadline(
    away: bool, statements: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    real, here = SqliteFile.transaction, threading.get_ident()

    def noting(self: SqliteFile, begin: str, timeout: float, **options: Any) -> Any:
        if threading.get_ident() == here:
            waits.append(timeout)
        return real(self, begin, timeout, **options)

    monkeypatch.setattr(SqliteFile, "transaction", noting)
    with RawServer([keeping]) as server:
        url = NOBODY if away else server.url
        with Client(url, outbox=tmp_path / "o.db") as client:
            client.remember_later("alice", "before")
        with locked(tmp_path / "o.db", *statements):
            for name, call in EVERY.items():
                client = Client(url, outbox=tmp_path / "o.db", timeout=SHORT)
                del waits[:]
                with suppress(KronmemError):  # and nothing else
                    call(client)
                # Of several waits all but the first are short: the lock was found. The rest is what a call keeps back.
                assert max(waits, default=0.0) <= 2 * SHORT, name
                client.close()


@pytest.mark.slow
def test_a_shorter_deadline_than_the_clients_holds_at_a_locked_outbox_too(kind: str, tmp_path: Path) -> None:
    with closing(OutboxFile(str(tmp_path / "o.db"))) as file:
        file.put(file.lane(NOBODY, ""), [Draft("alice", "id", "waiting")], Delay(backoff=3600.0))
    with shell(kind, NOBODY, outbox=tmp_path / "o.db", timeout=3600.0) as client:
        quick = client.inner.with_timeout(SHORT)
        with locked(tmp_path / "o.db", "BEGIN IMMEDIATE"):
            for call in (quick.clear, quick.erase):
                with pytest.raises(DeadlineError, match=r"o\.db is busy"):
                    client.portal.call(call, "alice") if isinstance(client, Awaiting) else call("alice")


def without_memories(server: RawServer, connection: Any, request: Any) -> None:
    """Take everything and find nothing again."""
    missing = respond(404, body={"detail": "Memory not found"})
    (missing if request.method == "GET" else keeping)(server, connection, request)


@pytest.mark.slow
def test_rows_in_a_locked_outbox_keep_nobody_from_a_service_that_is_well(kind: str, tmp_path: Path) -> None:
    with RawServer([without_memories]) as server:
        begun(tmp_path / "o.db", server.url)
        with closing(OutboxFile(str(tmp_path / "o.db"))) as file:
            file.put(file.lane(server.url, ""), [Draft("alice", "id", "waiting")], Delay(backoff=3600.0))
        with shell(kind, server.url, outbox=tmp_path / "o.db", timeout=8.0) as client:
            with locked(tmp_path / "o.db", "BEGIN IMMEDIATE"):
                assert not client.remember("alice", "fresh").queued
                with pytest.raises(TransportError, match="still waits"):
                    client.get("alice", "id")
            assert asked(client, "flush", LONGEST) == 0
        assert texts(server) == ["before", "fresh", "waiting"]


def test_a_locked_outbox_holds_no_cancellation(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever cancels goes on while the call's own thread still waits for the lock, as long as the deadline allows."""
    if kind == "sync":
        pytest.skip("nothing cancels a blocking call")
    waiting: list[str] = []
    real = SqliteFile.transaction

    @contextmanager
    def noting(self: SqliteFile, begin: str, timeout: float, **options: Any) -> Iterator[sqlite3.Connection]:
        name = threading.current_thread().name
        waiting.append(name)
        try:
            with real(self, begin, timeout, **options) as db:
                yield db
        finally:
            waiting.remove(name)

    def of_calls() -> list[str]:
        return [name for name in waiting if name != "kronmem-outbox"]  # which delivers

    with RawServer([keeping]) as server:
        begun(tmp_path / "o.db", server.url)
        with locked(tmp_path / "o.db", "BEGIN IMMEDIATE"):
            monkeypatch.setattr(SqliteFile, "transaction", noting)

            async def cancelled() -> None:
                client = AsyncClient(server.url, outbox=tmp_path / "o.db", timeout=60.0)
                for ask in (lambda: client.remember_later("alice", "text"), client.outbox.adopt):
                    with anyio.move_on_after(0.2) as scope:
                        await ask()
                    assert scope.cancelled_caught
                    assert of_calls()
                await client.with_timeout(0.5).close()
                await client._transport.aclose()

            anyio.run(cancelled, backend=kind)
        until(lambda: not waiting)
    until(lambda: threading.active_count() < 40)


# ── unreadable rows, missing tables, damage ──────────────────────────────────────────────────────────────────────────

UNREADABLE = {
    "not JSON": b"this is not JSON",
    "not UTF-8": b'{"content": "\xff\xfe"}',
    "not an object": b"[1, 2]",
    "no content": b'{"memory_type": "fact"}',
    "of another shape": b'{"content": "x", "tags": {"of": "a newer version"}}',
    "too deep": b"[" * 100_000,
}


@pytest.mark.parametrize("raw", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_row_is_set_aside_alone_with_its_bytes(kind: str, tmp_path: Path, raw: bytes) -> None:
    with Client(NOBODY, outbox=tmp_path / "o.db", retry=ONCE) as client:
        ids = [client.remember_later("alice", f"text {number}") for number in range(3)]
        client.remember_later("bob", "of another agent")
    with RawServer([keeping]) as server:
        db = sqlite3.connect(tmp_path / "o.db")
        with db:
            # Not due before somebody flushes: the thread would set the row aside before it is listed.
            later = (server.url, time.time() + 3600)
            db.execute("UPDATE waiting SET service = ?, backoff = 0, lease = 0, asked = ?", later)
            db.execute("UPDATE waiting SET body = CAST(? AS TEXT) WHERE id = ?", (raw, ids[1]))
        db.close()
        with shell(kind, server.url, outbox=tmp_path / "o.db") as client:
            assert [row.id for row in asked(client, "list")][1] == ids[1]
            assert asked(client, "flush", 20.0) == 0
            assert sorted(texts(server)) == ["of another agent", "text 0", "text 2"]
            (letter,) = asked(client, "dead")
            assert (letter.id, letter.agent_id, letter.raw) == (ids[1], "alice", raw)
            assert "unreadable" in letter.error
            assert letter.model_validate_json(letter.model_dump_json()) == letter
            assert asked(client, "retry_dead") == 1
            asked(client, "flush", 20.0)
            assert len(asked(client, "dead")) == 1


def test_a_field_of_a_newer_version_stays_in_the_row_and_the_row_is_delivered(tmp_path: Path) -> None:
    with RawServer([respond(422)]) as server:
        with Client(server.url, outbox=tmp_path / "o.db") as client:
            client.remember_later("alice", "text")
            assert client.outbox.flush(20.0) == 0  # refused
        newer = """json_set(body, '$.mood', 'glad')"""
        change(tmp_path / "o.db", f"UPDATE waiting SET body = {newer}")
        service = Switched(respond(422))
        with RawServer([service]) as other:
            change(tmp_path / "o.db", f"UPDATE waiting SET service = '{other.url}'")
            with Client(other.url, outbox=tmp_path / "o.db") as client:
                assert client.outbox.retry_dead() == 1
                assert client.outbox.flush(20.0) == 0
                with closing(sqlite3.connect(tmp_path / "o.db")) as db:
                    (body,) = db.execute("SELECT body FROM waiting").fetchone()
                assert '"mood":"glad"' in body
                service.action = keeping
                assert client.outbox.retry_dead() == 1
                assert client.outbox.flush(20.0) == 0
                assert client.outbox.dead() == []


@pytest.mark.parametrize("statement", ["DROP TABLE waiting", "DROP TABLE salt", "DROP TABLE total"])
def test_a_damaged_outbox_is_named_and_left_alone_and_a_well_service_gets_its_memory(
    kind: str, tmp_path: Path, statement: str
) -> None:
    path = tmp_path / "o.db"
    with RawServer([keeping]) as server:
        begun(path, server.url)
        change(path, statement)
        with shell(kind, server.url, outbox=path) as client:
            assert not client.remember("alice", "stored").queued
            with pytest.raises(StoreError, match=r"o\.db.* copy what is readable with  sqlite3 \S+o\.db \.recover"):
                client.remember_later("alice", "refused")
            assert {one.name for one in tmp_path.glob("o.db*")} <= {"o.db", "o.db-wal", "o.db-shm", "o.db-reserve"}
            (tmp_path / "away").mkdir()
            for one in list(tmp_path.glob("o.db*")):
                one.rename(tmp_path / "away" / one.name)
            client.remember_later("alice", "later")
            assert asked(client, "flush", 20.0) == 0
            assert texts(server)[-1] == "later"


def test_an_outbox_in_a_directory_that_is_a_file_lets_a_well_service_work(kind: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with RawServer([keeping]) as server, shell(kind, server.url, outbox=tmp_path / "file" / "o.db") as client:
        assert not client.remember("alice", "stored").queued
        assert client.health().pending == 0
        with pytest.raises(StoreError, match=r"o\.db"):
            client.remember_later("alice", "later")


# ── a full disk ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=[512, pytest.param(4096, marks=pytest.mark.slow)], ids=["512k", "4m"])
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A file system of so many kilobytes."""
    small = tmp_path / "small"
    small.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={request.param}k", "tmpfs", str(small)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield small
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


@pytest.mark.parametrize("other_process", [False, True])
def test_a_full_disk_accepts_nothing_more_and_drains_when_the_service_answers(
    small_disk: Path, other_process: bool
) -> None:
    service = Switched(respond(503, {"retry-after": "3600"}))
    with RawServer([service]) as server:
        with Client(server.url, outbox=small_disk / "o.db", retry=ONCE) as client:
            accepted = 0
            with pytest.raises(StoreError, match="cannot grow"):
                for number in range(20_000):
                    client.remember_later("alice", f"{number} " + "words " * 200)
                    accepted += 1
            assert accepted > 10
            fill(small_disk / "of somebody else")
            service.action = keeping
            del server.requests[:]
            if not other_process:
                assert client.outbox.flush(60.0) == 0
        if other_process:
            with Client(server.url, outbox=small_disk / "o.db") as client:
                assert client.outbox.flush(60.0) == 0
                (small_disk / "of somebody else").unlink()
                client.remember_later("alice", "there is room again")
                assert client.outbox.flush(20.0) == 0
        assert [text.split()[0] for text in texts(server)][:accepted] == [str(number) for number in range(accepted)]


def fill(path: Path) -> None:
    """Leave not one block free."""
    with path.open("wb", buffering=0) as file:
        for size in (65_536, 4096, 512, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


# ── many rows ────────────────────────────────────────────────────────────────────────────────────────────────────────


def steps_of(file: OutboxFile, work: Callable[[], object]) -> int:
    """How many instructions of SQLite's virtual machine a piece of work takes: at least one for every row it visits."""
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    with file._disk._file.transaction("BEGIN", 5.0) as db:
        db.set_progress_handler(count, 1)
    work()
    with file._disk._file.transaction("BEGIN", 5.0) as db:
        db.set_progress_handler(None, 0)
    return counted


@contextmanager
def backlog(path: Path, rows: int, agents: int) -> Iterator[tuple[OutboxFile, Lane]]:
    """An outbox in which so many rows wait, of each agent equally many."""
    with closing(OutboxFile(str(path))) as file:
        lane = file.lane("http://s", "k")
        file.put(lane, [Draft("agent-0", "id-0", "text")])
        more = f"""WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < {rows - 1})
            INSERT INTO waiting(id, service, mark, agent, body, bytes, created)
            SELECT 'id-' || n, service, mark, 'agent-' || (n % {agents}), body, bytes, created
            FROM counted, (SELECT * FROM waiting LIMIT 1)"""
        change(path, more)
        assert file.pending(lane) == rows
        yield file, lane


def costs_of_claiming(path: Path, rows: int, agents: int) -> dict[str, int]:
    """The instructions of every step from a claim to the next one, and of a claim when nothing is due."""
    claimed: list[Waiting] = []
    with backlog(path, rows, agents) as (file, lane):
        costs = {
            "claim": steps_of(file, lambda: claimed.extend(file.claim(lane))),
            "next due": steps_of(file, lambda: file.next_due(lane)),
            "done": steps_of(file, lambda: file.done(lane, claimed[0], "m")),
            "claim of an agent under a lease": steps_of(file, lambda: file.claim_agent(lane, b"agent-0")),
            "rows ahead": steps_of(file, lambda: file.ahead(lane, "agent-0")),
            "release": steps_of(file, lambda: file.release(claimed[1:])),
        }
        assert len(claimed) == min(16, rows // agents)
        change(path, f"UPDATE waiting SET backoff = {time.time() + 3600}")
        costs["claim of nothing"] = steps_of(file, lambda: claimed.extend(file.claim(lane)))
        costs["next due of nothing"] = steps_of(file, lambda: file.next_due(lane))
        assert len(claimed) == min(16, rows // agents)
    return costs


@pytest.mark.parametrize("rows", [5000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("rows_each", [None, 20, 1], ids=["of one agent", "20 of each agent", "1 of each agent"])
def test_the_cost_of_a_claim_does_not_grow_with_the_rows(tmp_path: Path, rows: int, rows_each: int | None) -> None:
    """To the instruction: where a hundred rows and many more cost the same, none is visited that is not claimed."""
    few = costs_of_claiming(tmp_path / "few.db", 100, 100 // (rows_each or 100))
    many = costs_of_claiming(tmp_path / "many.db", rows, rows // (rows_each or rows))
    assert many == few


@pytest.mark.slow
def test_a_backlog_of_100_000_rows_holds_nobodys_first_call(tmp_path: Path) -> None:
    file = OutboxFile(str(tmp_path / "o.db"), most_rows=200_000)
    lane = file.lane(NOBODY, "")
    for start in range(0, 100_000, 10_000):
        file.put(lane, [Draft("alice", f"id-{n}", f"text {n}") for n in range(start, start + 10_000)])
    file.close()
    with RawServer([keeping]) as server:
        change(tmp_path / "o.db", f"UPDATE waiting SET service = '{server.url}'")
        with Client(server.url, outbox=tmp_path / "o.db", timeout=3.0) as client:
            started = time.monotonic()
            assert client.recall("alice", "question") == []
            assert client.remember("alice", "newest").queued
            assert not client.remember("bob", "another").queued
            assert time.monotonic() - started < 10.0


# ── earlier versions ─────────────────────────────────────────────────────────────────────────────────────────────────


def sample(path: Path, url: str) -> None:
    """The outbox that 0.2 wrote, for a service at another address."""
    db = sqlite3.connect(path)
    db.executescript(SAMPLE.read_text("utf-8"))
    with db:
        db.execute("UPDATE waiting SET service = ?, lease = 0, backoff = 0", (url,))
    db.close()
    os.chmod(path, 0o600)


def test_an_outbox_that_0_2_wrote_is_delivered(kind: str, tmp_path: Path) -> None:
    with RawServer([keeping]) as server:
        sample(tmp_path / "o.db", server.url)
        with shell(kind, server.url, api_key="kv-old", outbox=tmp_path / "o.db") as client:
            assert asked(client, "flush", 20.0) == 0
        sent = {request.body["content"]: request.body for request in server.requests}
        assert texts(server).index("first words") < texts(server).index("second words")
        assert sent["first words"]["session_id"] == "s"
        assert sent["first words"]["metadata"]["kronmem"]["tags"] == ["t"]
        assert sent["second words"]["pinned"] is True
        assert "third words" in sent


def test_an_outbox_that_0_1_wrote_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "o.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE waiting(seq); PRAGMA application_id = 1802661743; PRAGMA user_version = 1")
    path.chmod(0o600)
    before = path.read_bytes()
    with Client(NOBODY, outbox=path, retry=ONCE) as client:
        with pytest.raises(StoreError, match=r"o\.db was written by kronmem 0\.1.*let 0\.1 deliver what waits"):
            client.remember_later("alice", "text")
        with pytest.raises(StoreError, match=r"0\.1"):
            client.outbox.list()
    assert path.read_bytes() == before
