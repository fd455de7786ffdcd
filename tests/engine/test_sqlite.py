from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from kronmem import Client
from kronmem.engine.sqlite.schema import SCHEMA
from kronmem.engine.sqlite.store import SqliteStore
from kronmem.errors import DeadlineError, StoreError
from kronmem.sqlite_file import FileSchema, SqliteFile
from tests.engine.calling import Caller, calling


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "home" / "memory.db")


def test_nothing_is_touched_before_the_first_request(path: str) -> None:
    SqliteStore(path).close()
    assert not os.path.exists(os.path.dirname(path))


def test_files_are_private(path: str) -> None:
    with calling(path) as call:
        call.remember("tea")
        folder = Path(path).parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {p.name: stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()} == {
            "memory.db": 0o600,
            "memory.db-wal": 0o600,
            "memory.db-shm": 0o600,
        }


@pytest.mark.parametrize("ending", ["", "-wal", "-shm"])
def test_a_file_that_others_can_read_is_made_private(path: str, ending: str) -> None:
    with calling(path) as call:
        call.remember("tea")
        copied = {name: Path(path + name).read_bytes() for name in ("", "-wal", "-shm")}
    for name, content in copied.items():  # as after a kill, when all three stay behind
        Path(path + name).write_bytes(content)
    os.chmod(path + ending, 0o664)
    os.chmod(os.path.dirname(path), 0o755)
    with calling(path) as call:
        assert call.recall("tea") == ["tea"]
        modes = {stat.S_IMODE(os.stat(path + name).st_mode) for name in ("", "-wal", "-shm")}
        assert modes == {0o600}
        assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700


def test_a_folder_with_other_things_in_it_keeps_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o755)
    (folder / "notes.txt").touch()
    with calling(str(folder / "memory.db")) as call:
        call.remember("tea")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_a_folder_where_anybody_may_replace_the_file_is_refused_with_the_command(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "notes.txt").touch()
    (tmp_path / "open").chmod(0o777)
    with (
        calling(str(tmp_path / "open" / "memory.db")) as call,
        pytest.raises(StoreError, match=r"run  chmod o-w .*open"),
    ):
        call.remember("tea")


AS_NOBODY = """
import os, sys
from kronmem import Client, StoreError
with Client.local(":memory:") as client:
    client.remember("warm", "everything is imported while it can be read")
    client.recall("warm", "everything")
os.setgid(65534); os.setuid(65534)
with Client.local(sys.argv[1]) as client:
    for ask in (lambda: [hit.content for hit in client.recall("alice", "tea")], lambda: client.remember("alice", "milk").content):
        try:
            print(ask())
        except StoreError as error:
            print(error)
"""


@pytest.fixture
def reachable() -> Iterator[str]:
    """A place for a database that everybody may reach; pytest closes its own to others at every start."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        yield f"{folder}/memory.db"


def as_nobody(path: str) -> list[str]:
    """What somebody without rights gets for a recall and for a remember."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run([sys.executable, "-c", AS_NOBODY, path], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.slow
def test_a_loose_file_of_somebody_else_is_refused_with_the_command(reachable: str) -> None:
    Path(reachable).with_name("beside").touch()  # so that the folder keeps its mode
    with Client.local(reachable) as client:
        client.remember("alice", "tea")
    os.chmod(reachable, 0o666)
    for said in as_nobody(reachable):
        assert "memory.db to other users: run  chmod 600" in said


def test_closing_and_reopening_loses_nothing(path: str) -> None:
    with calling(path) as call:
        first = call.remember("tea at five", tags=["x"], metadata={"a": 1}, session_id="s", ttl_days=1)
        call("PUT", "state/k", {"value": [1]})
    with calling(path) as call:
        again = call("GET", f"memories/{first['id']}")[1]
        assert {k: again[k] for k in again if k != "agent_memory_count"} == {
            k: first[k] for k in first if k != "agent_memory_count"
        }
        assert call("GET", "state/k")[1]["value"] == [1]
        assert call.recall("tea", tags=["x"]) == ["tea at five"]


def test_commits_are_durable(path: str) -> None:
    store = SqliteStore(path)
    with store.write(1.0) as rows:
        assert rows._db.execute("PRAGMA synchronous").fetchone()[0] == 2
        assert rows._db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    store.close()


def test_a_note_leaves_the_checkpoint_to_the_next_durable_write(path: str) -> None:
    store = SqliteStore(path)
    with store.write(1.0) as rows:
        space = rows.open_space("", "agent", 0.0)
    before = Path(path).stat().st_size
    with store.note() as rows:
        rows.set_state(space, "large", "x" * 5_000_000, 0.0)
    assert Path(path).stat().st_size == before
    with store.write(1.0) as rows:
        rows.set_state(space, "small", "1", 0.0)
    assert Path(path).stat().st_size > 5_000_000
    store.close()


def test_a_symlink_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"")
    (tmp_path / "memory.db").symlink_to(tmp_path / "target")
    with calling(str(tmp_path / "memory.db")) as call, pytest.raises(StoreError, match=r"memory\.db.*symbolic link"):
        call.remember("tea")
    assert (tmp_path / "target").read_bytes() == b""


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with calling(str(tmp_path)) as call, pytest.raises(StoreError, match="not a file"):
        call.remember("tea")


@pytest.mark.parametrize("garbage", [b"this is not a database" * 100, b"SQLite format 3\x00" + b"\xff" * 8000])
def test_a_damaged_file_is_named_and_left_alone(path: str, garbage: bytes) -> None:
    os.makedirs(os.path.dirname(path))
    Path(path).write_bytes(garbage)
    with calling(path) as call:
        for _ in range(2):
            with pytest.raises(StoreError, match=r"memory\.db"):
                call.recall("tea")
    assert Path(path).read_bytes() == garbage


def test_a_file_with_damaged_pages_is_a_clear_error(path: str) -> None:
    with calling(path) as call:
        call("POST", "memories/batch", {"memories": [{"content": f"tea {n} " * 50} for n in range(200)]})
    whole = Path(path).read_bytes()
    Path(path).write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with calling(path) as call, pytest.raises(StoreError, match=r"memory\.db is damaged"):
        call.recall("tea")


def test_a_newer_database_is_named_and_left_alone(path: str) -> None:
    with calling(path) as call:
        call.remember("tea")
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with calling(path) as call, pytest.raises(StoreError, match=r"memory\.db was written by a newer kronmem"):
        call.recall("tea")
    db = sqlite3.connect(path)
    assert db.execute("SELECT count(*) FROM memories").fetchone() == (1,)
    db.close()


def test_somebody_elses_database_is_refused(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs(x)")
    db.close()
    with calling(path) as call, pytest.raises(StoreError, match=r"memory\.db is a database of another program"):
        call.remember("tea")


def test_an_older_database_is_migrated_once(path: str) -> None:
    with calling(path) as call:
        call.remember("tea")
    step = ("CREATE TABLE added(x)", "INSERT INTO added SELECT count(*) FROM memories")
    for _ in range(2):
        store = SqliteStore(path, replace(SCHEMA, version=3, migrations={2: step}))
        with store.read(1.0) as rows:
            assert [space.count for space in rows.spaces("")] == [1]
        store.close()
    db = sqlite3.connect(path)
    assert db.execute("SELECT * FROM added").fetchall() == [(1,)]
    assert db.execute("PRAGMA user_version").fetchone() == (3,)
    db.close()


def test_a_failed_migration_changes_nothing(path: str) -> None:
    with calling(path) as call:
        call.remember("tea")
    store = SqliteStore(path, replace(SCHEMA, version=3, migrations={2: ("CREATE TABLE added(x)", "NOT SQL")}))
    with pytest.raises(StoreError, match=r"memory\.db: .*syntax error"), store.read(1.0):
        pass
    store.close()
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (2,)
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'added'").fetchone() == (0,)
    db.close()


@pytest.fixture
def busy(path: str) -> Iterator[Caller]:
    """A caller with a memory, while somebody else holds the write lock."""
    with calling(path) as call:
        call.remember("tea at five")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        yield call
        other.close()


def test_a_write_waits_for_others_no_longer_than_its_time(busy: Caller) -> None:
    with pytest.raises(DeadlineError, match="busy"):
        busy("POST", "remember", {"content": "coffee"}, timeout=0.05)


def test_a_recall_answers_while_another_writes(busy: Caller) -> None:
    assert busy.hits("tea")[0]["memory"]["access_count"] == 1
    assert busy.hits("tea")[0]["memory"]["access_count"] == 1


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A database with one memory on a file system that is mounted read-only."""
    folder = tmp_path / "sealed"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if not sys.platform.startswith("linux") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a read-only file system cannot be mounted here")
    try:
        with Client.local(folder / "memory.db") as client:
            client.remember("alice", "tea at five")
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        yield folder / "memory.db"
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_read_only_file_system_still_recalls_and_lists(read_only: Path) -> None:
    with Client.local(read_only) as client:
        assert [hit.content for hit in client.recall("alice", "tea")] == ["tea at five"]
        assert [memory.content for memory in client.memories("alice")] == ["tea at five"]
        assert [agent.name for agent in client.agents()] == ["alice"]
        with pytest.raises(StoreError, match=r"memory\.db may not be written"):
            client.remember("alice", "coffee")
    with (
        Client.local(read_only.parent / "other.db") as client,
        pytest.raises(StoreError, match=r"other\.db.*[Rr]ead-only"),
    ):
        client.recall("alice", "tea")


def test_a_read_only_folder_still_recalls(reachable: str) -> None:
    Path(reachable).with_name("beside").touch()  # so that the folder keeps its mode
    with Client.local(reachable) as client:
        client.remember("alice", "tea at five")
    os.chown(reachable, 65534, 65534)
    recalled, refused = as_nobody(reachable)
    assert recalled == "['tea at five']"
    assert "memory.db may not be written" in refused


def test_what_a_read_only_file_system_hides_is_said(read_only: Path) -> None:
    subprocess.run(["mount", "-o", "remount,rw", str(read_only.parent)], check=True)
    Path(f"{read_only}-wal").write_bytes(b"changes that were never taken over")
    subprocess.run(["mount", "-o", "remount,ro", str(read_only.parent)], check=True)
    with Client.local(read_only) as client, pytest.raises(StoreError, match="copy both to a writable place"):
        client.recall("alice", "tea")


def test_a_closed_store_says_so(path: str) -> None:
    with calling(path) as call:
        call.remember("tea")
    with pytest.raises(StoreError, match="closed"):
        call.recall("tea")


def test_many_threads_share_one_file(path: str) -> None:
    def work(n: int) -> list[str]:
        mine = call.as_(agent=f"agent-{n % 4}")
        mine.remember(f"tea {n}", session_id=f"s{n}")
        return mine.recall(f"tea {n}", session_id=f"s{n}", threshold=0)

    with calling(path) as call, ThreadPoolExecutor(16) as pool:
        assert list(pool.map(work, range(100))) == [[f"tea {n}"] for n in range(100)]
        assert sum(agent["memory_count"] for agent in call("GET", "/api/v1/agents")[1]) == 100


def test_many_threads_share_one_memory() -> None:
    with calling() as call, ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: call.remember(f"tea {n}"), range(100)))
        assert len(call.contents()) == 100


def test_the_number_of_connections_is_bounded(path: str) -> None:
    store = SqliteStore(path)
    entered, leave = threading.Semaphore(0), threading.Event()

    def hold() -> None:
        with store.read(5.0):
            entered.release()
            leave.wait(10)

    threads = [threading.Thread(target=hold) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in threads:
        entered.acquire()
    with pytest.raises(DeadlineError, match="no connection"), store.read(0.01):
        pass
    leave.set()
    for thread in threads:
        thread.join()
    with store.read(1.0) as rows:
        assert rows.spaces("") == []
    store.close()


def test_a_fork_leaves_the_parents_connections_alone(path: str) -> None:
    with calling(path) as call:
        call.remember("tea by the parent")
        child = os.fork()
        if child == 0:
            try:
                call.remember("tea by the child")
                os._exit(0 if len(call.recall("tea")) == 2 else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        call.remember("tea after the child")
        assert sorted(call.contents()) == ["tea after the child", "tea by the child", "tea by the parent"]
    assert_sound(path)


def test_a_fork_copies_a_database_in_memory() -> None:
    with calling() as call:
        call.remember("tea")
        child = os.fork()
        if child == 0:
            try:
                call.remember("coffee")
                os._exit(0 if len(call.contents()) == 2 else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert call.contents() == ["tea"]


def assert_sound(path: str) -> None:
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    if not sys.platform.startswith("linux") or mount is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_a_clear_error_and_the_database_stays_sound(small_disk: Path) -> None:
    path = str(small_disk / "memory.db")
    kept: list[str] = []
    with calling(path) as call:
        call.remember("the first memory")
        with pytest.raises(StoreError, match=r"memory\.db"):
            for n in range(10_000):
                kept.append(call.remember(f"memory {n} " + "words " * 100)["id"])
        assert call.recall("the first memory")[0] == "the first memory"
    assert_sound(path)
    with calling(path) as call:
        assert call("GET", "memories")[1]["total"] == len(kept) + 1


class Interrupted(BaseException):
    """Raised by a signal handler, wherever the thread happens to be."""


PLAIN = FileSchema(application_id=1, version=1, create=("CREATE TABLE t(x)",))


# CPython issue 148874, mended in 3.15: an interrupt may come between the lock and the block of a `with`.
@pytest.mark.skipif(sys.version_info[:2] == (3, 14), reason="Python 3.14 may leave any lock taken when interrupted")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # raised inside a destructor
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # Python 3.13: connections that an interrupt left as garbage
@pytest.mark.parametrize("count", [500, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("place", ["f.db", ":memory:"])
def test_many_interrupts_take_no_place_and_leave_no_lock(tmp_path: Path, place: str, count: int) -> None:
    def interrupt(*_: object) -> None:
        raise Interrupted

    file = SqliteFile(place if place == ":memory:" else str(tmp_path / place), PLAIN)
    tracer = sys.gettrace()
    sys.settrace(None)  # a tracer that measures coverage has a lock of its own, which an interrupt would leave locked
    former = signal.signal(signal.SIGALRM, interrupt)
    interrupted, chance = 0, random.Random(7)
    try:
        while interrupted < count:
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00001, 0.0006))
                for _ in range(100):  # an interrupt inside a destructor is swallowed by Python itself
                    with file.transaction("BEGIN IMMEDIATE", 20.0, synchronous="OFF") as db:
                        db.execute("UPDATE t SET x = 1")
            except Interrupted:
                interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
        sys.settrace(tracer)

    def use(number: int) -> None:
        with file.transaction("BEGIN IMMEDIATE", 20.0) as db:
            db.execute("INSERT INTO t VALUES(?)", (number,))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(40)))
    with file.transaction("BEGIN", 20.0) as db:
        assert db.execute("SELECT count(*) FROM t").fetchone() == (40,)
    file.close()
    gc.collect()  # here and not in another test, where the warnings are errors


class InterruptedOpening(SqliteFile):
    """The first connection is lost to an interrupt when it is ready."""

    looked = 0

    def has_moved(self) -> bool:
        self.looked += 1
        if self.looked == 2:  # the second look is behind the opening
            raise Interrupted
        return super().has_moved()


@pytest.mark.parametrize("place", ["f.db", ":memory:"])
def test_an_opening_that_was_interrupted_at_its_end_is_done_again(tmp_path: Path, place: str) -> None:
    file = InterruptedOpening(place if place == ":memory:" else str(tmp_path / place), PLAIN)
    with pytest.raises(Interrupted), file.transaction("BEGIN", 20.0):
        pass
    with file.transaction("BEGIN IMMEDIATE", 20.0) as db:
        db.execute("INSERT INTO t VALUES(1)")
    file.close()


CLOSED_MEANWHILE = """
import sys, threading
from kronmem import Client, KronmemError

def ask(client):
    try:
        for _ in range(3):
            client.recall("ada", "tea and more")
    except KronmemError:  # closed
        pass

for number in range(100):
    client = Client(sys.argv[1])
    client.remember("ada", "tea")
    threads = [threading.Thread(target=ask, args=(client,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    client.close()
    for thread in threads:
        thread.join()
"""


@pytest.mark.parametrize("url", ["sqlite://", pytest.param("sqlite:///{path}", marks=pytest.mark.slow)])
def test_closing_a_client_under_threads_at_work_ends_their_calls_and_not_the_process(url: str, path: str) -> None:
    command = [sys.executable, "-X", "faulthandler", "-c", CLOSED_MEANWHILE, url.format(path=path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
