"""What only PostgreSQL can do wrong: tables, roles, waiting, lost connections."""

from __future__ import annotations

import logging
import os
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from kronmem import Client, ConfigError
from kronmem.engine.engine import Engine
from kronmem.engine.postgres.pool import PostgresPool
from kronmem.engine.postgres.schema import SCHEMA, schema, space_key
from kronmem.engine.postgres.store import PostgresStore, Sweeper
from kronmem.engine.postgres.transaction import Transaction
from kronmem.engine.postgres.writing import Sweep
from kronmem.engine.service import Service
from kronmem.errors import DeadlineError, StoreError, TransportError
from tests.engine.calling import Caller, Clock, calling
from tests.engine.test_remembering import ID
from tests.services.kronmem import free_port
from tests.services.postgres import at, needs_own_databases, own

END_OURS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'kronmem' AND datname = current_database()"""
SECRET = "s3cret-passw0rd"


def opened(url: str, **options: Any) -> PostgresStore:
    store = PostgresStore(url, **options)
    try:
        with store.read(10.0):
            return store
    except BaseException:
        store.close()
        raise


def forked(work: Callable[[], None]) -> int:
    """Do this in a child process; its exit code is 0 if nothing was raised."""
    if child := os.fork():
        return child
    try:
        work()
        os._exit(0)
    except BaseException:  # noqa: BLE001 - a child must not go on with the parent's tests
        traceback.print_exc()
        os._exit(1)


def begin_together(door: int, key: int, url: str, content: str) -> None:
    os.close(key)
    os.read(door, 1)
    with calling(url) as call:
        call.remember(content)


def test_nothing_is_asked_before_the_first_request() -> None:
    PostgresStore(f"postgresql://nobody:{SECRET}@127.0.0.1:{free_port()}/x").close()
    Client(f"postgresql://nobody:{SECRET}@127.0.0.1:{free_port()}/x").close()


def test_ten_processes_that_start_at_once_make_one_database(database: str) -> None:
    door, key = os.pipe()
    children = [forked(lambda n=n: begin_together(door, key, database, f"tea of {n}")) for n in range(10)]  # type: ignore[misc]  # bound now
    os.close(key)  # the last one who could write: all begin
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 10
    os.close(door)
    with calling(database) as call:
        assert sorted(call.contents()) == [f"tea of {n}" for n in range(10)]


def test_memories_are_spread_over_sixteen_partitions(database: str) -> None:
    import psycopg

    needs_own_databases()  # shards take their place

    with calling(database) as call:
        for n in range(64):
            call.as_(agent=f"agent-{n}").remember("tea")
    with psycopg.connect(database) as connection:
        used = connection.execute("SELECT count(DISTINCT tableoid) FROM kronmem.memories").fetchone()
    assert used is not None
    assert 8 < used[0] <= 16


def test_a_newer_database_is_named_and_left_alone(database: str) -> None:
    opened(database, schema=replace(schema(1), version=9)).close()
    with calling(database) as call, pytest.raises(StoreError, match=r"newer kronmem \(schema 9, known 2\)"):
        call.remember("tea")


def test_somebody_elses_schema_is_refused(database: str) -> None:
    import psycopg

    with psycopg.connect(database) as connection:
        connection.execute("CREATE SCHEMA kronmem")
        connection.execute("CREATE TABLE kronmem.memory(mine text)")
    with calling(database) as call, pytest.raises(StoreError, match="of another program"):
        call.remember("tea")


def test_an_older_database_is_migrated_once(database: str) -> None:
    old = schema(1)
    with calling(database) as call:
        call.remember("tea at five")

    def step(session: Transaction) -> None:
        session.run("ALTER TABLE kronmem.spaces ADD COLUMN colour text")  # fails if it is done twice

    newer = replace(old, version=3, migrations={2: step})
    threads = [threading.Thread(target=lambda: opened(database, schema=newer).close()) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = opened(database, schema=newer)
    with store.read(1.0) as rows:
        assert [space.count for space in rows.spaces("")] == [1]
    store.close()


def test_a_failed_migration_changes_nothing(database: str) -> None:
    with calling(database) as call:
        call.remember("tea at five")

    def step(session: Transaction) -> None:
        session.run("DELETE FROM kronmem.memories")
        session.run("ALTER TABLE kronmem.nothing ADD COLUMN colour text")

    with pytest.raises(StoreError):
        opened(database, schema=replace(SCHEMA, version=3, migrations={2: step}))
    with calling(database) as call:
        assert call.contents() == ["tea at five"]


@pytest.fixture
def role(database: str) -> Iterator[str]:
    """A role of its own that may do nothing yet."""
    import psycopg

    name = own("kronmem_role")
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{SECRET}'".encode())
        try:
            yield name
        finally:
            admin.execute(f"DROP OWNED BY {name}".encode())
            admin.execute(f"DROP ROLE {name}".encode())


def as_role(url: str, role: str) -> str:
    return at(url, urlsplit(url).path.lstrip("/"), f"{role}:{SECRET}")


def test_a_role_that_may_only_read_recalls(database: str, role: str) -> None:
    import psycopg

    with calling(database) as call:
        call.remember("tea at five")
    with psycopg.connect(database) as connection:
        connection.execute(f"GRANT USAGE ON SCHEMA kronmem TO {role}".encode())
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA kronmem TO {role}".encode())
    with calling(as_role(database, role)) as call:
        assert call.recall("tea") == ["tea at five"]
        assert call.hits("tea")[0]["memory"]["access_count"] == 1
        assert call.contents() == ["tea at five"]
        with pytest.raises(StoreError, match="may not be read or written by this role"):
            call.remember("coffee")


def test_a_role_needs_no_more_than_the_documented_rights(database: str, role: str) -> None:
    import psycopg

    with calling(database) as call:
        call.remember("tea at five")
    with psycopg.connect(database) as connection:
        connection.execute(f"GRANT USAGE ON SCHEMA kronmem TO {role}".encode())
        rights = "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES"
        connection.execute(f"GRANT {rights} IN SCHEMA kronmem TO {role}".encode())
    with calling(as_role(database, role)) as call:
        call.as_(agent="another").remember("coffee")
        assert call.hits("tea")[0]["memory"]["access_count"] == 1
        assert call.hits("tea")[0]["memory"]["access_count"] == 2
        assert call("DELETE", "/api/v1/agents/bot")[0] == 204


def test_a_role_that_may_not_create_tables_says_so(database: str, role: str) -> None:
    with calling(as_role(database, role)) as call, pytest.raises(StoreError, match="role"):
        call.remember("tea")


@pytest.mark.parametrize("what", ["host=/nowhere", "port=none", "nonsense=1"])
def test_the_password_is_in_no_message(what: str, caplog: pytest.LogCaptureFixture) -> None:
    url = f"postgresql://someone:{SECRET}@127.0.0.1:{free_port()}/memory?{what}"
    with caplog.at_level(logging.DEBUG), Client(url, outbox=False, timeout=2.0) as client:
        with pytest.raises((TransportError, ConfigError)) as caught:
            client.recall("bot", "tea")
        said = [str(caught.value), repr(caught.value), repr(client), caplog.text]
        said += [str(error) for error in (caught.value.__cause__, caught.value.__context__) if error]
    assert not any(SECRET in one for one in said)


def test_a_server_that_is_not_there_is_named_at_once() -> None:
    store = PostgresStore(f"postgresql://someone@127.0.0.1:{free_port()}/memory")
    with pytest.raises(
        TransportError, match=r"postgresql://someone@127\.0\.0\.1:\d+/memory cannot be reached"
    ) as caught:
        with store.read(30.0):
            pass
    assert not isinstance(caught.value, DeadlineError)


def test_a_closed_store_says_so(call: Caller) -> None:
    call.remember("tea")
    call.service.close()
    with pytest.raises(StoreError, match="closed"):
        call.recall("tea")


def test_the_number_of_connections_is_bounded(postgres: str) -> None:
    store = opened(postgres, connections=3)
    entered, leave = threading.Semaphore(0), threading.Event()

    def hold() -> None:
        with store.read(5.0):
            entered.release()
            leave.wait(10)

    threads = [threading.Thread(target=hold) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in threads:
        entered.acquire()
    with pytest.raises(DeadlineError, match="no connection"), store.read(0.01):
        pass
    with pytest.raises(DeadlineError, match="no connection"), store.note():
        pass
    leave.set()
    for thread in threads:
        thread.join()
    store.close()


def test_a_fork_leaves_the_parents_connections_alone(call: Caller) -> None:
    call.remember("tea by the parent")

    def work() -> None:
        call.remember("tea by the child")
        assert len(call.recall("tea")) == 2

    assert os.waitstatus_to_exitcode(os.waitpid(forked(work), 0)[1]) == 0
    call.remember("tea after the child")
    assert sorted(call.contents()) == ["tea after the child", "tea by the child", "tea by the parent"]


def test_a_write_waits_for_others_no_longer_than_its_time(call: Caller, postgres: str) -> None:
    call.remember("tea at five")
    other = opened(postgres)
    with other.write(10.0) as rows:
        rows.open_space("", "bot", 0.0)
        with pytest.raises(DeadlineError, match="busy"):
            call("POST", "remember", {"content": "coffee"}, timeout=0.05)
        assert call.as_(agent="another").remember("coffee")["content"] == "coffee"
        assert call.recall("tea") == ["tea at five"]
    other.close()


def test_a_count_waits_for_nobody(call: Caller, sql: Any) -> None:
    call.remember("tea at five")
    sql("BEGIN")
    sql("UPDATE kronmem.memories SET pinned = true")
    assert call.hits("tea")[0]["memory"]["access_count"] == 1
    sql("ROLLBACK")
    assert call.hits("tea")[0]["memory"]["access_count"] == 1
    assert call.hits("tea")[0]["memory"]["access_count"] == 2


def test_a_transaction_gets_no_more_than_its_time_in_all(postgres: str) -> None:
    store = opened(postgres)
    with pytest.raises(DeadlineError), store.read(0.2) as rows:
        for _ in range(1000):
            rows._ask("SELECT pg_sleep(0.05)", ())  # pyright: ignore[reportPrivateUsage]  # nothing public is slow
    with store.read(1.0) as rows:
        assert rows.spaces("") == []
    store.close()


def test_a_connection_that_broke_while_idle_is_replaced(call: Caller, sql: Any) -> None:
    call.remember("tea at five")
    assert sql(END_OURS).fetchall()
    assert call.recall("tea") == ["tea at five"]
    call.remember("coffee at six")


def test_a_connection_lost_in_the_middle_of_a_write_undoes_it(postgres: str, sql: Any) -> None:
    store = opened(postgres)
    with pytest.raises(TransportError, match="lost"), store.write(5.0) as rows:
        space = rows.open_space("", "bot", 0.0)
        rows.set_state(space, "k", "1", 0.0)
        sql(END_OURS)
    with store.read(5.0) as rows:
        assert rows.spaces("") == []
    store.close()


def test_expired_memories_are_swept_by_one_server_at_a_time(call: Caller, postgres: str, sql: Any) -> None:
    for n in range(5):
        call.as_(agent=f"agent-{n}").remember("tea", ttl_seconds=60)
    call.clock.time += 61
    other = opened(postgres)
    with other.write(5.0) as rows:
        rows.sweep(call.clock.time, 0.0, 32)
        call.remember("coffee")  # neither waits for the sweep nor for the spaces it holds
    other.close()
    assert sql("SELECT count(*) FROM kronmem.memories").fetchone() == (1,)
    assert sql("SELECT count(*) FROM kronmem.postings").fetchone() == (2,)
    assert sql("SELECT sum(count), sum(words) FROM kronmem.spaces WHERE NOT gone").fetchone() == (1, 1)


def test_one_agent_with_much_to_sweep_does_not_hide_the_others(call: Caller, sql: Any) -> None:
    body = [{"content": f"tea {n}", "ttl_seconds": 60} for n in range(70)]
    assert call.as_(agent="quiet")("POST", "memories/batch", {"memories": body})[0] == 201
    for n in range(5):
        call.as_(agent=f"agent-{n}").remember("tea", ttl_seconds=61)
    call.clock.time += 3600
    call.remember("coffee")
    assert sql("SELECT count(*) FROM kronmem.memories").fetchone() == (1,)


def test_agents_behind_one_that_fills_a_look_do_not_wait_until_it_is_swept(
    call: Caller, postgres: str, sql: Any
) -> None:
    for n in range(6):
        call.as_(agent=f"agent-{n}").remember("tea", ttl_seconds=60)
    spaces = "kronmem.memories AS m JOIN kronmem.spaces AS s ON s.id = m.space"
    first = sql(f"SELECT name FROM {spaces} ORDER BY m.tableoid, expires, space LIMIT 1").fetchone()[0]
    body = [{"content": f"tea {n}", "ttl_seconds": 60} for n in range(1000)]
    assert call.as_(agent=first)("POST", "memories/batch", {"memories": body})[0] == 201
    pool = PostgresPool(postgres, 2)
    sweeper = Sweeper(pool, space_key, rows=64)
    left: set[str] = set()
    for passes in range(1, 20):
        sweeper.run(Sweep(call.clock.time + 61 * passes, 0.0, 32), 60.0)
        left = {name for (name,) in sql(f"SELECT DISTINCT name FROM {spaces}").fetchall()}
        if left <= {first}:
            break
    pool.close()
    assert left == {first}


def test_a_sweep_whose_time_is_up_goes_on_with_fewer_and_holds_up_nobody(call: Caller, postgres: str, sql: Any) -> None:
    pool = PostgresPool(postgres, 2)
    names = sorted((f"agent-{n}" for n in range(6)), key=lambda name: space_key("", name))
    for name, count in zip(names, (100, 3, 3, 3, 3, 3), strict=True):
        body = [{"content": f"tea {n}", "ttl_seconds": 60} for n in range(count)]
        assert call.as_(agent=name)("POST", "memories/batch", {"memories": body})[0] == 201

    class Slow(PostgresPool):
        """Manages to delete eight memories in the time that a sweep has."""

        def __init__(self) -> None: ...

        @contextmanager
        def transaction(self, begin: str, timeout: float, *, wait: bool = True) -> Iterator[Any]:
            counting = "SELECT count(*) FROM kronmem.memories"
            with pool.transaction(begin, 60.0, wait=wait) as session:
                before = session.ask(counting)[0][0]
                yield session
                if before - session.ask(counting)[0][0] > 8:
                    raise DeadlineError("timed out")

    sweeper, left = Sweeper(Slow(), space_key), list[list[str]]()
    for passes in range(1, 40):
        sweeper.run(Sweep(call.clock.time + 61 * passes, 0.0, 32), 60.0)
        spaces = "kronmem.memories AS m JOIN kronmem.spaces AS s ON s.id = m.space"
        left.append([name for (name,) in sql(f"SELECT DISTINCT name FROM {spaces}").fetchall()])
        if not left[-1]:
            break
    pool.close()
    assert left[0] == names[:1], "the others are not behind it"
    assert left[-1] == []


def test_counting_an_access_takes_no_longer_than_the_recall_has_time(call: Caller, postgres: str) -> None:
    call.remember("tea")
    store = opened(postgres)
    with store.note(most=0.5) as rows:
        [(first,)] = rows._session.ask("SELECT extract(epoch FROM current_setting('statement_timeout')::interval)")
    store.close()
    assert first <= 0.5


def test_a_write_whose_time_is_up_leaves_the_sweep_to_the_next(call: Caller, postgres: str, sql: Any) -> None:
    call.remember("tea", ttl_seconds=60)
    pool = PostgresPool(postgres, 2)
    sweeper, sweep = Sweeper(pool, space_key), Sweep(call.clock.time + 61, 0.0, 32)
    counts: list[int] = []
    for left in (0.0, -1.0, 60.0):
        sweeper.run(sweep, left)
        counts += sql("SELECT count(*) FROM kronmem.memories").fetchone()
    pool.close()
    assert counts == [1, 1, 0]


def test_a_sweep_takes_no_longer_than_the_write_has_time(call: Caller, postgres: str, sql: Any) -> None:
    call.remember("tea", ttl_seconds=60)
    pool = PostgresPool(postgres, 2)
    asked: list[float] = []

    class Timed(PostgresPool):
        def __init__(self) -> None: ...

        def transaction(self, begin: str, timeout: float, *, wait: bool = True) -> Any:
            asked.append(timeout)
            return pool.transaction(begin, 60.0, wait=wait)

    Sweeper(Timed(), space_key).run(Sweep(call.clock.time + 61, 0.0, 32), 0.5)
    pool.close()
    assert max(asked) <= 0.5


def test_two_agents_with_one_key_are_refused_not_mixed(database: str) -> None:
    import psycopg

    clock = Clock()
    store = PostgresStore(database, key_of=lambda owner, name: space_key(owner, name) & 1)
    with closing(Service(Engine(store, now=clock))) as service:
        names = [f"agent-{n}" for n in range(9)]
        call = Caller(service, clock, agent=next(name for name in names if space_key("", name) & 1))
        call.remember("tea")
        same = next(name for name in names if space_key("", name) & 1 and name != call.agent)
        owner = next(f"owner-{n}" for n in range(9) if space_key(f"owner-{n}", call.agent) & 1)
        with pytest.raises(StoreError, match="same key"):
            call.as_(agent=same).recall("tea")
        for other in (call.as_(agent=same), call.as_(owner=owner, agent=call.agent)):
            with pytest.raises(StoreError, match="same key"):
                other.remember("coffee")
        call.remember("tea at five", metadata={"kronmem": {"id": ID}})
        with pytest.raises(StoreError, match="same key"):
            call.as_(owner=owner, agent=call.agent)("POST", "erase")
        assert call.remember("tea at five", metadata={"kronmem": {"id": ID}})["id"] == ID
        with psycopg.connect(database) as connection:
            assert connection.execute("SELECT count(*) FROM kronmem.receipts").fetchone() == (1,)
        apart = next(name for name in names if not space_key("", name) & 1)
        call.as_(agent=apart).remember("coffee")
        assert call.contents() == ["tea at five", "tea"]
        assert call.as_(agent=apart).contents() == ["coffee"]


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kronmem.transport.local.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"kronmem\[postgres\]"):
        Client("postgresql://localhost/memory")


def test_a_database_that_cannot_keep_every_text_is_refused(postgres_server: str) -> None:
    import psycopg

    needs_own_databases()
    name = own("kronmem_latin")
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'".encode())
        try:
            with calling(at(postgres_server, name)) as call, pytest.raises(StoreError, match="UTF8"):
                call.remember("tea")
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
