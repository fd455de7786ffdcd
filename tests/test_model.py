"""Both shells at every kronmem against a plain-Python model: same current set, same history, same counts."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import initialize, invariant, run_state_machine_as_test

from kronmem import ConflictError, Memory, NotFoundError
from kronmem.core.memory_json import MOST_HITS
from kronmem.transport.local import open_postgres, open_sqlite, sqlite_service
from tests.engine.calling import Clock
from tests.engine.test_model import Engine
from tests.services.kronmem import free_port
from tests.shells import shell

examples = count()


class ThroughClient:
    """Asks a client in the words of the engine's own machine: method, path and body."""

    def __init__(self, client: Any, agent: str) -> None:
        self._client, self._agent = client, agent

    def remember(self, content: str, **fields: Any) -> Any:
        """Store a memory."""
        return self._client.remember(self._agent, content, **fields).model_dump()

    def hits(self, query: str, *, limit: int, **fields: Any) -> list[Any]:
        """Recall."""
        found = self._client.recall(self._agent, query, min(limit, MOST_HITS), **fields)
        return [hit.model_dump() for hit in found]

    def __call__(self, method: str, path: str, body: Any = None, *, query: Sequence[tuple[str, str]] = ()) -> Any:
        try:
            return self._ask(method, path, body, query)
        except (ConflictError, NotFoundError) as error:
            return error.status, {}

    def _state(self, method: str, key: str, body: Any) -> Any:
        state = self._client.state(self._agent)
        if method == "PUT":
            return 200, state.set(key, body["value"])
        if method == "GET":
            value = state.get(key)
            return (404, {}) if value is None else (200, {"value": value})
        there = state.get(key) is not None
        state.delete(key)
        return 200 if there else 404, {}

    def _ask(self, method: str, path: str, body: Any, query: Sequence[tuple[str, str]]) -> Any:
        kind, memory_id, more = [*path.split("/"), None, None][:3]
        if (method, path) == ("POST", "erase"):
            return 200, self._client.erase(self._agent).model_dump()
        if kind == "state":
            return self._state(method, unquote(memory_id or ""), body)
        if (method, path) == ("POST", "remember"):
            own = body["metadata"]["kronmem"]["id"]
            return 201, self._client.remember(self._agent, body["content"], memory_id=own).model_dump()
        if (method, path) == ("POST", "memories/restore"):
            rows = [Memory.model_validate(one) for one in body["memories"]]
            return 200, {"restored": self._client.restore(self._agent, rows)}
        if (method, path) == ("GET", "memories"):
            history = ("history", "true") in query
            found = [one.model_dump() for one in self._client.memories(self._agent, history=history)]
            return 200, {"memories": found, "total": len(found)}
        if method == "GET" and more == "history":
            return 200, {"memories": [one.model_dump() for one in self._client.history(self._agent, memory_id)]}
        if method == "PATCH":
            return 200, self._client.update(self._agent, memory_id, **body).model_dump()
        if method == "DELETE" and (memory_id is None or kind == "sessions"):
            return 200, {"deleted": self._client.clear(self._agent, session_id=memory_id)}
        assert (method, kind) == ("DELETE", "memories"), path
        return 204, self._client.forget(self._agent, memory_id)


class Clients(Engine):
    """The engine's machine, its calls made by a client; every example has agents of its own."""

    client: Any
    clock: Clock

    @initialize()
    def begin(self) -> None:
        self.start()
        self.service = None
        self.example = next(examples)

    def teardown(self) -> None: ...
    def reopen(self) -> None: ...

    def name(self, owner: str, agent: str) -> str:
        return f"{owner or 'nobody'}-{agent}-{self.example}"

    def caller(self, owner: str, agent: str) -> Any:
        return ThroughClient(self.client, self.name(owner, agent))

    @invariant()
    def counts_and_whole_histories_are_right(self) -> None:
        if not hasattr(self, "example"):
            return
        counted = {one.name: one.memory_count for one in self.client.agents()}
        for owner in ("", "someone"):
            for agent in ("bot", "other"):
                name, living = self.name(owner, agent), self.living(owner, agent)
                assert counted.get(name, 0) == len(living)
                told = [text for one in living for text in one.told(self.clock.time)]
                assert sorted(one.content for one in self.client.memories(name, history=True)) == sorted(told)
                sessions = {one.session_id: one.count for one in self.client.sessions(name)}
                named = [one.session for one in living if one.session]
                assert sessions == {session: named.count(session) for session in named}


@contextmanager
def serving(path: Path, clock: Clock) -> Iterator[str]:
    """A web server of this process with a clock of the test's own."""
    import uvicorn

    from kronmem.server.app import create_app

    service, port = sqlite_service(str(path), now=clock), free_port()
    config = uvicorn.Config(create_app(service), port=port, log_level="critical", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
        service.close()


@contextmanager
def opened(where: str, kind: str, clock: Clock, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A client of one shell at one kronmem."""
    if where == "served":
        with serving(tmp_path / "served.db", clock) as url, shell(kind, url, outbox=False, timeout=60.0) as client:
            yield client
        return
    if where == "postgres":
        url = str(request.getfixturevalue("postgres"))
        transport = open_postgres(url, now=clock)
    else:
        url, transport = f"sqlite:///{tmp_path}/memory.db", open_sqlite(str(tmp_path / "memory.db"), now=clock)
    with shell(kind, url, transport=transport, timeout=60.0) as client:
        yield client


def check(client: Any, clock: Clock, number: int) -> None:
    machine = type("Placed", (Clients,), {"client": client, "clock": clock})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=number,
            stateful_step_count=18,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def test_a_client_does_what_the_model_does(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    clock = Clock()
    with opened("embedded", "sync", clock, tmp_path, request) as client:
        check(client, clock, 4)


@pytest.mark.slow
@pytest.mark.parametrize("shell_kind", ["sync", "asyncio"])
@pytest.mark.parametrize("where", ["embedded", "served", "postgres"])
def test_every_client_at_every_kronmem_does_what_the_model_does(
    where: str, shell_kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    clock = Clock()
    with opened(where, shell_kind, clock, tmp_path, request) as client:
        check(client, clock, 8)
