"""A database that kronmem 0.1 wrote: opened, migrated, filled in the background, killed half-way; nothing is lost."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client
from kronmem.engine.engine import Engine
from kronmem.engine.reindexing import LEASE, Filler
from kronmem.engine.service import Service
from kronmem.engine.sqlite.reading import SqliteReader
from kronmem.engine.sqlite.store import SqliteStore
from kronmem.errors import KronmemError, StoreError, TransportError
from tests.benchmarks.migration_check import check_index
from tests.engine.calling import START, Caller, Clock, calling
from tests.engine.old_database import grown

SAMPLES = Path(__file__).parent.parent / "samples"
ROOT = SAMPLES.parent.parent
NOW = 1_794_900_000.0
"""A few hours after the samples were written."""
KILL = """
import os, sys
import kronmem.engine.reindexing as filling
from kronmem import Client
plain, batches = filling.Filler._batch, [0]
def counted(self):
    done = plain(self)
    batches[0] += 1
    if batches[0] == 3:
        os.kill(os.getpid(), 9)
    return done
filling.Filler._batch, filling.BATCH = counted, 5
client = Client(sys.argv[1])
client.recall("user-bob", "knots")
import time
time.sleep(60)
"""


@pytest.fixture(params=["sqlite", "postgres"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """What kronmem 0.1 left behind, in either store."""
    if request.param == "sqlite":
        path = tmp_path / "memory.db"
        shutil.copy(SAMPLES / "memory-0.1.db", path)
        path.chmod(0o600)
        return str(path)
    import psycopg

    url = str(request.getfixturevalue("database"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((SAMPLES / "postgres-0.1.sql").read_bytes())
    return url


def address(place: str) -> str:
    return place if "://" in place else f"sqlite:////{place.lstrip('/')}"


def filled(call: Caller, agent: str) -> bool:
    engine: Engine = call.service._engine
    with engine._store.read(5.0) as rows:
        return rows.is_filled()


def wait_until_filled(call: Caller) -> None:
    for _ in range(25_000):
        if filled(call, "user-ada"):
            return
        time.sleep(0.02)
    raise AssertionError("the memories of 0.1 are not indexed")


def listed(call: Caller, agent: str) -> list[Any]:
    _, page = call.as_(agent=agent)("GET", "memories", query=[("per_page", "100")])
    assert page["total"] == len(page["memories"])
    return list(page["memories"])


def test_everything_is_there_and_found_before_and_after_it_is_filled(old: str) -> None:
    with calling(old, clock=Clock(NOW)) as call:
        ada = call.as_(agent="user-ada")
        for _ in range(2):
            assert ada.recall("Which database do we use?")[0] == "The project uses PostgreSQL 16"
            assert "Emil" in ada.recall("Who looks after the observatory?")[0]
            assert len(call.as_(agent="user-bob").recall("knots at buoy 77", limit=40, threshold=0)) == 40
            memories = {memory["content"][:20]: memory for memory in listed(call, "user-ada")}
            assert len(memories) == 7  # one of the eight texts is in two sessions
            assert len(listed(call, "user-ada")) == 8
            assert len(listed(call, "user-bob")) == 40
            wait_until_filled(call)
        assert memories["User prefers concise"]["tags"] == ["style"]
        assert memories["The project uses Pos"]["metadata"] == {"source": "README", "n": 3}
        assert memories["Ada is allergic to p"]["pinned"] is True
        assert memories["Paragraph 1 of the h"]["id"] == "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"
        assert ada("GET", "state/theme")[1]["value"] == {"dark": True, "sizes": [1, 2.5, None]}


def test_a_first_call_that_fails_while_it_looks_does_not_keep_memories_from_being_filled(tmp_path: Path) -> None:
    class Lost(SqliteReader):
        def is_filled(self) -> bool:
            raise TransportError("the connection broke")

    path = tmp_path / "memory.db"
    grown(path, 40)
    engine = Engine(SqliteStore(str(path)), now=Clock(NOW))
    with closing(Service(engine)) as service:
        call = Caller(service, Clock(NOW))
        with engine._store.read(60.0) as rows, pytest.raises(TransportError):
            engine._filler.look(Lost(rows._db))
        call.as_(agent="user-ada").recall("Which database do we use?")
        wait_until_filled(call)


def test_what_0_1_remembered_can_be_changed_forgotten_and_cleared(old: str) -> None:
    with calling(old, clock=Clock(NOW)) as call:
        ada, bob = call.as_(agent="user-ada"), call.as_(agent="user-bob")
        again = ada.remember("User prefers concise answers", tags=["tone"])
        assert again["deduplicated"] is True
        assert again["tags"] == ["style", "tone"]
        assert ada("DELETE", "memories/0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d")[0] == 204
        assert bob("DELETE", "memories") == (200, {"deleted": 40})
        wait_until_filled(call)
        assert len(listed(call, "user-ada")) == 7
        assert bob.recall("knots at buoy 77", threshold=0) == []


def test_a_retry_from_before_the_upgrade_is_still_recognised(old: str) -> None:
    with calling(old, clock=Clock(NOW)) as call:
        ada = call.as_(agent="user-ada")
        text = next(m["content"] for m in listed(call, "user-ada") if m["content"].startswith("Paragraph 1"))
        own = {"memory_type": "context", "metadata": {"kronmem": {"id": "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"}}}
        assert ada.remember(text, **own)["id"] == "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"
        status, _ = ada("POST", "remember", {"content": "another text", **own})
        assert status == 409


def test_two_that_open_it_at_once_migrate_it_once(old: str) -> None:
    found: list[list[str]] = []

    def look() -> None:
        with Client(address(old)) as client:
            found.append(sorted(memory.content for memory in client.memories("user-bob")))

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert {len(texts) for texts in found} == {40}


def test_a_process_killed_while_it_fills_leaves_the_rest_to_the_next(old: str) -> None:
    killed = subprocess.run([sys.executable, "-c", KILL, address(old)], cwd=ROOT, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with calling(old, clock=Clock(NOW)) as call:
        assert len(listed(call, "user-bob")) == 40
        assert not filled(call, "user-bob")
        with call.service._engine._store.write(5.0) as rows:  # the lease of the dead process, as if it had run out
            rows.set_setting("filling", f"somebody {time.time() - 2 * LEASE}")
        assert len(call.as_(agent="user-bob").recall("knots", limit=40, threshold=0)) == 40
        wait_until_filled(call)
        assert len(call.as_(agent="user-bob").recall("knots", limit=40, threshold=0)) == 40


def test_a_process_that_ends_lets_the_next_one_fill_at_once(old: str) -> None:
    with calling(old, clock=Clock(NOW)) as call:
        call.as_(agent="user-bob").recall("knots")
        engine = call.service._engine
        engine._filler.close()
        with engine._store.read(5.0) as rows:
            assert rows.setting("filling") == ""


def test_a_process_that_waits_for_the_lease_of_another_writes_nothing_and_rests(old: str) -> None:
    with calling(old, clock=Clock(NOW)) as call:
        store = call.service._engine._store
        with store.write(5.0) as rows:
            rows.set_setting("filling", f"another {time.time() + LEASE - 1}")
            waiting = rows.count_unfilled()
        assert waiting
        assert Filler(store)._batch() == (True, 1.0)
        with store.read(5.0) as rows:
            assert rows.count_unfilled() == waiting
            assert (rows.setting("filling") or "").startswith("another ")


def test_a_filled_memory_has_exactly_the_entries_that_it_would_get_today(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(SAMPLES / "memory-0.1.db", path)
    path.chmod(0o600)
    with calling(str(path), clock=Clock(NOW)) as call:
        call.recall("anything")
        wait_until_filled(call)
    check_index(path, 0)


def test_a_process_of_0_1_with_the_file_open_fails_and_spoils_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(SAMPLES / "memory-0.1.db", path)
    path.chmod(0o600)
    older = sqlite3.connect(path, isolation_level=None)
    assert older.execute("SELECT count(*) FROM memory").fetchone() == (48,)
    with calling(str(path), clock=Clock(NOW)) as call:
        before = listed(call, "user-ada")
        statements = (
            "INSERT INTO space(owner, name, metadata, created, count, words, last) VALUES ('', 'x', '{}', 0, 0, 0, 0)",
            "UPDATE memory SET accessed = accessed + 1",
            "INSERT INTO posting(space, term, number, worth) VALUES (1, 'tea', 1, 1)",
            "DELETE FROM state",
            "INSERT OR REPLACE INTO receipt VALUES ('', 'x', 'x', 'x', x'', 0, 0)",
        )
        for statement in statements:
            with pytest.raises(sqlite3.OperationalError, match="no such table"):
                older.execute(statement)
        assert listed(call, "user-ada") == before
    older.close()


def test_a_failed_migration_leaves_a_file_that_0_1_can_still_use(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(SAMPLES / "memory-0.1.db", path)
    path.chmod(0o600)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE meanings(mine)")  # in the way of the migration's last steps
    db.commit()
    store = SqliteStore(str(path))
    with pytest.raises((KronmemError, sqlite3.Error)), store.read(5.0):
        pass
    store.close()
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    assert db.execute("SELECT count(*) FROM memory").fetchone() == (48,)
    db.close()


def test_a_new_database_and_a_migrated_one_have_the_same_tables(tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "memory-0.1.db", tmp_path / "old.db")
    (tmp_path / "old.db").chmod(0o600)
    shapes = []
    for name in ("old.db", "new.db"):
        with calling(str(tmp_path / name), clock=Clock(START)) as call:
            call.recall("anything")
        db = sqlite3.connect(tmp_path / name)
        names = [
            row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY 1")
        ]
        columns = {name: {tuple(row[1:4]) for row in db.execute(f"PRAGMA table_info({name})")} for name in names}
        shapes.append((names, columns))
        db.close()
    assert shapes[0] == shapes[1]


def test_the_samples_are_of_0_1() -> None:
    db = sqlite3.connect(f"file:{SAMPLES / 'memory-0.1.db'}?mode=ro&immutable=1", uri=True)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    db.close()
    assert os.path.getsize(SAMPLES / "postgres-0.1.sql") < 100_000


OPEN = "import sys; from kronmem import Client; c = Client(sys.argv[1], timeout=60.0); print(c.recall('copy-7', 'knots')[0].content, flush=True); sys.stdin.read()"


@pytest.mark.slow
@pytest.mark.timeout(600)  # all ten thousand are filled in the background
def test_ten_thousand_memories_of_0_1_survive_kills_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    agents = grown(path, 10_000)
    command = [sys.executable, "-c", OPEN, address(str(path))]
    for moment in (0.3, 0.6, None, None):  # while it starts or migrates; and twice while it fills
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            if moment is None:
                assert process.stdout
                assert "knots" in process.stdout.readline()
            else:
                time.sleep(moment)
            process.kill()
    with calling(str(path), clock=Clock(NOW)) as call:
        _, found = call("GET", "/api/v1/agents")
        counts = {one["name"]: one["memory_count"] for one in found}
        assert counts == {"user-ada": 8, "user-bob": 40, "team-7": 0} | {f"copy-{n}": 40 for n in range(agents)}
        with call.service._engine._store.write(60.0) as rows:  # the lease of the last one killed, as if it had run out
            rows.set_setting("filling", f"somebody {time.time() - 2 * LEASE}")
        last = call.as_(agent=f"copy-{agents - 1}")
        assert len(last.recall("knots at buoy 77", limit=40, threshold=0)) == 40
    with calling(str(path), clock=Clock(NOW)) as call:
        call.recall("anything")
        wait_until_filled(call)
        assert len(call.as_(agent="copy-3").recall("knots at buoy 77", limit=40, threshold=0)) == 40
    check_index(path, agents)
    db = sqlite3.connect(path)
    assert db.execute("SELECT count(*), count(DISTINCT space) FROM memories").fetchone() == (10_048, agents + 2)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


def test_a_database_of_a_newer_schema_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Client(address(str(path))) as client:
        client.remember("ada", "tea at five")
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 3")
    db.commit()
    before = path.read_bytes()
    with Client(address(str(path))) as client, pytest.raises(StoreError, match="newer") as raised:
        client.recall("ada", "tea")
    assert str(path) in str(raised.value)
    assert path.read_bytes() == before
    db.close()
