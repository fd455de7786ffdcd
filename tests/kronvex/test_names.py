"""One agent per name, whoever asks first; and a plan that allows one agent only."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import anyio
import pytest

from kronmem import AsyncClient, Client, DeadlineError, QuotaError
from kronmem.core import calls
from kronmem.core.abilities import RemoteService
from kronmem.core.exchange import Link, Pause, exchange
from kronmem.core.wire import Reply
from kronmem.kronvex import Kronvex
from kronmem.kronvex.agents import Flight
from tests.kronvex.stepping import Killed, Process, draft
from tests.services import KronvexServer
from tests.shells import shell

RACES = ("races",)
WAIT = 30.0


def at_once(*works: Callable[[], object]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_many_first_stores_of_many_threads_make_one_agent() -> None:
    with KronvexServer(habits=RACES) as server, Client(server.url, api_key=server.key, timeout=WAIT) as client:
        texts = [f"{word} number {word}" for word in ("one", "two", "three", "four", "five", "six", "seven", "eight")]
        at_once(*[lambda text=text: client.remember("alice", text) for text in texts])  # type: ignore[misc] # mypy cannot infer a lambda with a default
        assert [agent.name for agent in server.agents] == ["alice"]
        assert sorted(memory.content for memory in client.memories("alice")) == sorted(texts)


def test_many_first_stores_of_many_tasks_make_one_agent() -> None:
    async def main(server: KronvexServer) -> None:
        async with AsyncClient(server.url, api_key=server.key, timeout=WAIT) as client:
            async with anyio.create_task_group() as group:
                for number in range(10):
                    group.start_soon(client.remember, "alice", f"{number} thing{number}")

    with KronvexServer(habits=RACES) as server:
        anyio.run(main, server)
        assert [(agent.name, len(agent.rows)) for agent in server.agents] == [("alice", 10)]


def test_clients_of_one_key_and_the_outbox_share_the_resolution(tmp_path: Path) -> None:
    with KronvexServer(habits=RACES) as server:
        clients = [Client(server.url, api_key=server.key, timeout=WAIT, outbox=tmp_path / f"{n}.db") for n in range(4)]
        works: list[Callable[[], object]] = [
            lambda n=n, one=one: one.remember("alice", f"{n} thing{n}")  # type: ignore[misc] # mypy cannot infer a lambda with a default
            for n, one in enumerate(clients)
        ]
        works += [
            lambda n=n, one=one: (one.remember_later("alice", f"{n} later{n}"), one.outbox.flush(WAIT))  # type: ignore[misc] # mypy cannot infer a lambda with a default
            for n, one in enumerate(clients)
        ]
        at_once(*works)
        for client in clients:
            assert client.outbox.flush(WAIT) == 0
            client.close()
        assert [(agent.name, len(agent.rows)) for agent in server.agents] == [("alice", 8)]


def test_another_key_has_agents_of_its_own() -> None:
    with KronvexServer() as server:
        for key in (server.key, server.other_key):
            with Client(server.url, api_key=key) as client:
                client.remember("alice", "alpha bravo")
        assert len({agent.id for agent in server.agents}) == 2


@pytest.mark.slow  # two processes
def test_processes_that_race_end_on_the_oldest_agent(tmp_path: Path) -> None:
    code = """
    import sys
    from kronmem import Client
    with Client(sys.argv[1], api_key=sys.argv[2], timeout=30, outbox=False) as client:
        for number in range(3):
            client.remember("alice", f"{sys.argv[3]}{number} thing{sys.argv[3]}{number}")
    """
    barrier = threading.Barrier(2)

    def gap(handler: str) -> None:
        if handler == "create_agent":
            barrier.wait(WAIT)

    with KronvexServer(habits=RACES, gap=gap) as server:
        args = [[sys.executable, "-c", textwrap.dedent(code), server.url, server.key, name] for name in ("a", "b")]
        for process in [subprocess.Popen(one) for one in args]:
            assert process.wait(WAIT) == 0
        assert sorted(len(agent.rows) for agent in server.agents) == [0, 6]
        assert len(server.agents[0].rows) == 6


def test_a_resolution_that_fails_or_is_given_up_is_taken_over() -> None:
    link = Link(lambda: 0.0, lambda: 1.0, RemoteService(Kronvex()))
    no_uuid = Reply(422, b'{"detail":[{"type":"uuid_parsing","loc":["path","agent_id"]}]}')
    listed = Reply(200, json.dumps([{"id": "u1", "name": "alice", "created_at": None}]).encode())
    recall = calls.recall("alice", "question", 5, calls.MemoryFilter(), None, most=20)
    first, second = exchange(recall, link, 10.0), exchange(recall, link, 10.0)
    for flow in (first, second):
        next(flow)
    assert first.send(no_uuid).path == "/api/v1/agents"  # type: ignore[union-attr] # a request
    assert isinstance(second.send(no_uuid), Pause)
    first.close()
    assert second.send(Reply(0)).path == "/api/v1/agents"  # type: ignore[union-attr] # a request
    assert second.send(listed).path == "/api/v1/agents/u1/recall"  # type: ignore[union-attr] # a request


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork beside threads, which is the point
def test_a_forked_child_does_not_wait_for_a_thread_that_it_does_not_have() -> None:
    with Client("http://127.0.0.1:9", api_key="kv-x") as client:
        names = cast("Kronvex", client._wiring.link.service.vendor)
        names.flights["alice"] = Flight()
        child = os.fork()
        if child == 0:
            os._exit(len(names.flights))
        assert os.waitpid(child, 0)[1] == 0
        assert "alice" in names.flights
        names.flights.clear()


def test_whoever_waits_for_a_resolution_keeps_its_own_deadline() -> None:
    now = 0.0
    vendor = Kronvex()
    vendor.flights["alice"] = Flight()
    link = Link(lambda: now, lambda: 1.0, RemoteService(vendor))
    flow = exchange(calls.recall("alice", "question", 5, calls.MemoryFilter(), None, most=20), link, 1.0)
    next(flow)
    step = flow.send(Reply(422, b'{"detail":[{"type":"uuid_parsing","loc":["path","agent_id"]}]}'))
    with pytest.raises(DeadlineError, match="'alice'"):
        while isinstance(step, Pause):
            now += step.seconds
            step = flow.send(Reply(0))


# ── a plan of one agent ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_fresh_demo_key_works_with_any_first_name(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "kronmem")
    with KronvexServer(plan="demo") as server, shell(kind, server.url, api_key=server.key) as client:
        client.remember("alice", "alpha bravo")
        client.remember("alice", "charlie delta")
        assert [hit.content for hit in client.recall("alice", "alpha bravo")] == ["alpha bravo"]
        mine = [agent for agent in server.agents if agent.owner == server.key]
        assert [(agent.name, agent.metadata) for agent in mine] == [("alice", {"kronmem": {"name": "alice"}})]
        assert [record.message for record in caplog.records if "is now named 'alice'" in record.message] != []
        assert len([record for record in caplog.records if "is now named" in record.message]) == 1
        with pytest.raises(QuotaError, match=r"There is 'alice' \(2 memories\): use that name") as caught:
            client.remember("bob", "echo foxtrot")
        assert caught.value.status == 402
        assert client.recall("bob", "alpha bravo") == []


def test_an_agent_with_memories_or_with_a_mark_is_never_given_another_name(kind: str) -> None:
    for change in ({"metadata": {"kronmem": {"name": "carol"}}}, {"rows": True}):
        with KronvexServer(plan="demo") as server, shell(kind, server.url, api_key=server.key) as client:
            agent = server.agents[0]
            if "rows" in change:
                client.remember(agent.id, "stored by somebody else")
            else:
                agent.metadata = change["metadata"]
            with pytest.raises(QuotaError, match="someone's agent"):
                client.remember("alice", "alpha bravo")
            assert client.remember("someone's agent", "alpha bravo").agent_id == "someone's agent"
            assert [one.name for one in server.agents if one.owner == server.key] == ["someone's agent"]


def test_two_first_names_at_once_do_not_share_the_one_agent() -> None:
    with KronvexServer(plan="demo", habits=RACES) as server:
        with Client(server.url, api_key=server.key, timeout=WAIT, outbox=False) as client:
            failed: list[QuotaError] = []

            def store(name: str) -> None:
                try:
                    client.remember(name, f"memory of {name}")
                except QuotaError as error:
                    failed.append(error)

            at_once(lambda: store("alice"), lambda: store("bob"))
        mine = next(agent for agent in server.agents if agent.owner == server.key)
        assert [row.content for row in mine.rows] == [f"memory of {mine.name}"]
        assert len(failed) == 1


def test_two_first_names_of_two_processes_do_not_share_the_one_agent() -> None:
    """Another process takes the agent, as a whole or in part, between any two steps of ours."""
    for mine in range(1, 100):
        for others in range(1, 14):
            server = KronvexServer(plan="demo")
            first, second = Process(server, mine), Process(server, others)
            flows = [Half(first, "alice"), Half(second, "bob")]
            for flow in (*flows, *flows):  # each up to its step, then each to its end
                flow.go_on()
            agent = next(one for one in server.agents if one.owner == server.key)
            stored = [row.content for row in agent.rows]
            assert stored in ([], ["alice"], ["bob"]), (mine, others)
            assert not stored or agent.name == stored[0], (mine, others)
        if flows[0].was_whole:
            return
    pytest.fail("it never came to its end")


class Half:
    """A first store that stops before a step and can be gone on with."""

    def __init__(self, process: Process, name: str) -> None:
        self.process, self.was_whole, self.over = process, False, False
        self.flow = exchange(calls.remember(draft(name, name, name)), process.link, 10.0)
        self.step: Any = next(self.flow)

    def go_on(self) -> None:
        try:
            while not self.over and self.process.steps != self.process.kill_before:
                self.process.steps += 1
                self.step = self.flow.send(self.process._do(self.step))
        except (StopIteration, QuotaError):
            self.was_whole, self.over = self.process.kill_before is not None, True
        self.process.kill_before = None


@pytest.mark.parametrize("plan", ["builder", "demo"])
def test_a_kill_at_any_step_of_a_first_store_leaves_one_agent_for_the_next_process(plan: str) -> None:
    for kill_before in range(100):
        server = KronvexServer(plan=plan)
        doomed, wanted = Process(server, kill_before), draft("alice", "mine", "alpha bravo")
        try:
            doomed.call(calls.remember(wanted))
        except Killed:
            pass
        else:
            assert kill_before > 4
            break
        Process(server).call(calls.remember(wanted))
        mine = [agent for agent in server.agents if agent.owner == server.key]
        assert [(agent.name, len(agent.rows)) for agent in mine] == [("alice", 1)], kill_before
    else:
        pytest.fail("it never came to its end")


def test_a_uuid_of_the_users_own_is_a_name_at_the_server_too(kind: str) -> None:
    for name in (str(uuid4()), uuid4().hex):
        with KronvexServer() as server, shell(kind, server.url, api_key=server.key) as client:
            assert client.recall(name, "alpha bravo") == []
            stored: Any = client.remember(name, "alpha bravo")
            assert (stored.agent_id, [agent.name for agent in server.agents]) == (name, [name])
            assert [hit.content for hit in client.recall(name, "alpha bravo")] == ["alpha bravo"]
            by_its_id = client.recall(server.agents[0].id, "alpha bravo")
            assert [hit.content for hit in by_its_id] == ["alpha bravo"]
