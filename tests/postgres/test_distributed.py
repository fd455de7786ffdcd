"""On a distributed database: each call about one agent is a task of one node. `KRONMEM_TEST_CITUS` names the cluster."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import pytest

from kronmem import Client, KronmemError
from kronmem.core.policy import Retry
from kronmem.engine.postgres.schema import examine, schema
from kronmem.engine.postgres.store import PostgresStore
from tests.engine.calling import calling
from tests.postgres.one_agent import call_all
from tests.postgres.test_pooler import work
from tests.services.postgres import cluster, emptied

ONE_TASK = "options=-c%20citus.multi_task_query_log_level%3Derror"
"""The coordinator refuses every statement that is not routed to a single node."""


@pytest.fixture
def spread(postgres_server: str) -> str:
    if cluster() is None:
        pytest.skip("KRONMEM_TEST_CITUS names no coordinator of a distributed database")
    return emptied(postgres_server)


def test_every_call_of_many_clients_succeeds_on_both_nodes(spread: str) -> None:
    import psycopg

    with ExitStack() as stack:
        clients = [stack.enter_context(Client(spread, retry=Retry(1), timeout=60.0)) for _ in range(12)]
        with ThreadPoolExecutor(12) as threads:
            assert sum(threads.map(partial(work, agents=8), clients, range(12))) == 180
        everywhere = clients[0].recall_across([f"agent-{n}" for n in range(8)], "who keeps a fact?")
        assert all(everywhere.values())
        assert len(clients[0].agents()) == 8
    with psycopg.connect(spread, autocommit=True) as connection:
        groups = "SELECT count(DISTINCT colocation_id), count(*), min(citus_table_type) FROM citus_tables"
        assert connection.execute(groups).fetchone() == (1, 8, "distributed")
        homes = set[object]()
        for key in connection.execute("SELECT id FROM kronmem.spaces").fetchall():
            sql = """SELECT nodename, nodeport FROM citus_shards
                WHERE shardid = get_shard_id_for_distribution_column('kronmem.spaces', %s)"""
            homes.add(connection.execute(sql, key).fetchone())
    assert len(homes) > 1


def test_each_call_about_one_agent_is_one_task(spread: str) -> None:
    with calling(spread) as call:
        call.remember("the tables are there")
    with calling(f"{spread}?{ONE_TASK}") as call:
        call_all(call)
        with pytest.raises(KronmemError):  # the setting does what it says
            call("GET", "/api/v1/agents")


def test_lines_to_the_nodes_that_break_under_load_lose_nothing_acknowledged(spread: str) -> None:
    import psycopg

    kept: list[tuple[str, str]] = []

    def store(number: int) -> None:
        with Client(spread, timeout=30.0) as client:
            for step in range(15):
                agent = f"agent-{(number + step) % 7}"
                try:
                    kept.append((agent, client.remember(agent, f"fact {step} of {number}").id))
                except KronmemError:
                    continue

    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'citus_internal%'"
    with ThreadPoolExecutor(8) as threads, psycopg.connect(spread, autocommit=True) as admin:
        working = [threads.submit(store, number) for number in range(8)]
        while wait(working, timeout=0.5).not_done:  # some calls get through in between
            admin.execute("SELECT run_command_on_workers(%s)", (end,))
        assert [one.exception() for one in working] == [None] * 8
    with Client(spread, timeout=60.0) as client:
        found = {(f"agent-{n}", memory.id) for n in range(7) for memory in client.memories(f"agent-{n}")}
    assert kept
    assert set(kept) <= found


def test_doctor_shows_nodes_and_shards(spread: str) -> None:
    with calling(spread) as call:
        call.remember("tea")
    (nodes,) = [look for look in examine(spread).looks if look.what == "nodes"]
    assert nodes.ok
    assert "8 tables in 256 shards" in nodes.words
    assert "one co-location group" in nodes.words


def test_tables_from_before_the_extension_are_distributed_by_what_doctor_says(spread: str, database: str) -> None:
    import psycopg

    plain = schema(2)
    store = PostgresStore(database, replace(plain, distribute=plain.create))
    with store.read(30.0):
        store.close()
    with calling(database) as call:
        for number in range(8):
            call.as_(agent=f"agent-{number}").remember("tea in the cupboard")
        looks = {look.what: look for look in examine(database).looks}
        assert not looks["nodes"].ok
        assert not looks["size"].words.startswith("0 ")
        with psycopg.connect(database, autocommit=True) as owner:
            for statement in looks["nodes"].words.partition("owner of the tables: ")[2].split("; "):
                owner.execute(statement.encode())
        assert all(look.ok for look in examine(database).looks)
        for number in range(8):
            there = call.as_(agent=f"agent-{number}")
            there.remember("coffee on the shelf")
            assert there.recall("where is the tea?", limit=1) == ["tea in the cupboard"]
