"""AgentMemory in both shells: who it belongs to, when it is asked, and when two of them are one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from kronmem import AsyncClient, Client, InvalidInputError
from kronmem.wiring import StoreIdentity
from tests.services import KronvexServer
from tests.shells import shell

current_user: ContextVar[str | None] = ContextVar("current_user")


@pytest.fixture(params=["sync", "asyncio"])
def embedded(request: pytest.FixtureRequest) -> Iterator[Any]:
    with shell(request.param, "sqlite://") as client:
        yield client


Make = Callable[..., Any]


@pytest.fixture(params=[Client, AsyncClient])
def make(request: pytest.FixtureRequest) -> Make:
    return request.param  # type: ignore[no-any-return]


# ── callable ids ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_callable_is_asked_at_every_call(embedded: Any) -> None:
    users = ["ada", "bob", "ada"]
    memory = embedded.agent(lambda: users.pop(0))
    memory.remember("likes tea")
    memory.remember("likes coffee")
    assert [hit.content for hit in memory.recall("likes")] == ["likes tea"]
    assert users == []
    assert [one.content for one in embedded.memories("bob")] == ["likes coffee"]


def test_a_callable_session_limits_reads_and_writes(embedded: Any) -> None:
    now = ["monday"]
    memory = embedded.agent("ada", session_id=lambda: now[0])
    memory.remember("likes tea")
    now[0] = "tuesday"
    assert memory.recall("likes tea") == []
    with pytest.raises(InvalidInputError, match="bound to another session"):
        memory.recall("likes tea", session_id="monday")
    now[0] = None  # type: ignore[call-overload] # no session at all
    assert [one.session_id for one in memory.memories()] == ["monday"]
    assert [one.session_id for one in memory.sessions()] == ["monday"]


def raising() -> str:
    raise PermissionError("nobody is logged in")


UNRESOLVED = {
    "LookupError": current_user.get,
    "None": lambda: None,
    "empty": lambda: "",
    "path": lambda: "a/b",
    "padded": lambda: " ada",
    "number": lambda: 7,
    "raises": raising,
}


@pytest.mark.parametrize(
    ("bound", "nobody"),
    # None is a valid session: it means all of them.
    [(bound, name) for bound in ("agent", "session") for name in UNRESOLVED if (bound, name) != ("session", "None")],
)
def test_an_id_that_cannot_be_resolved_reaches_no_service(make: Make, nobody: str, bound: str) -> None:
    ask: Any = UNRESOLVED[nobody]
    with KronvexServer() as server:
        kind = "sync" if make is Client else "asyncio"
        with shell(kind, server.url, api_key=server.key) as client:
            memory = client.agent(ask) if bound == "agent" else client.agent("ada", session_id=ask)
            asked = [
                lambda: memory.remember("text"),
                lambda: memory.remember_later("text"),
                lambda: memory.remember_many(["text"]),
                lambda: memory.recall("text"),
                lambda: memory.recall_many(["text"]),
                lambda: memory.inject_context(),
                lambda: memory.memories(),
                lambda: memory.clear(),
                lambda: memory.resolved(),
                lambda: memory.sessions(),
            ]
            if bound == "agent":
                asked += [lambda: memory.forget("0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"), lambda: memory.state()]
            for call in asked:
                with pytest.raises(InvalidInputError):
                    call()
            assert client.outbox.pending() == 0
        assert server.requests == []


def test_making_and_showing_a_memory_asks_nobody(make: Make) -> None:
    memory = make("http://127.0.0.1:9").agent(raising, session_id=raising).with_timeout(1)
    assert repr(memory).endswith("AgentMemory(<callable>, session_id=<callable>)")
    assert str(memory) == "memory of the agent of each call"
    assert str(make("http://127.0.0.1:9").agent("ada")) == "memory of 'ada'"
    with pytest.raises(InvalidInputError, match="agent_id could not be resolved: its callable raised PermissionError"):
        _ = memory.agent_id


def test_a_resolved_memory_stays_with_the_agent_of_that_moment(embedded: Any) -> None:
    users = ["ada"]
    fixed = embedded.inner.agent(lambda: users[0]).resolved()
    users[0] = "bob"
    assert (fixed.agent_id, fixed.session_id) == ("ada", None)
    assert fixed == embedded.inner.agent("ada")


# ── identity ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_memory_of_one_session_does_not_erase_the_others(embedded: Any) -> None:
    embedded.remember("ada", "tea", session_id="monday")
    embedded.remember("ada", "coffee", session_id="tuesday")
    with pytest.raises(InvalidInputError, match=r"bound to one: clear\(\) deletes that one"):
        embedded.agent("ada", session_id="monday").erase()
    assert len(embedded.memories("ada")) == 2
    assert embedded.agent("ada", session_id="monday").clear() == 1
    assert embedded.agent("ada").erase().memories == 1


def test_the_same_agent_session_and_store_is_the_same_memory(make: Make, tmp_path: Path) -> None:
    file = f"sqlite:///{tmp_path / 'one.db'}"
    service = "http://127.0.0.1:9"
    for one, other in [
        (make(file), make(file)),
        (make(file), make(f"sqlite:///{tmp_path / 'x' / '..' / 'one.db'}")),
        (make(service, api_key="k"), make(f"{service}/", api_key="k", timeout=3)),
    ]:
        assert one.agent("ada") == other.agent("ada")
        assert hash(one.agent("ada")) == hash(other.agent("ada"))
        assert one.agent("ada") == one.agent("ada").with_timeout(1)
        assert one.agent("ada", session_id="s") == other.agent("ada", session_id="s")
        assert one.agent("ada") != other.agent("bob")
        assert one.agent("ada") != other.agent("ada", session_id="s")
        assert one.agent(current_user.get) == other.agent(current_user.get)
        assert one.agent(current_user.get) != other.agent("ada")
        assert len({one.agent("ada"), other.agent("ada"), one.agent("bob")}) == 2


def test_another_store_is_another_memory(make: Make, tmp_path: Path) -> None:
    class Way:
        def send(self, request: Any) -> Any: ...
        def close(self) -> None: ...
        async def asend(self, request: Any) -> Any: ...
        async def aclose(self) -> None: ...

    way, service = Way(), "http://127.0.0.1:9"
    memory = make("sqlite://")
    assert memory.agent("ada") == memory.with_timeout(1).agent("ada")
    assert make(service, transport=way).agent("ada") == make(service, transport=way).agent("ada")
    for one, other in [
        (memory, make("sqlite://")),
        (make(f"sqlite:///{tmp_path / 'one.db'}"), make(f"sqlite:///{tmp_path / 'two.db'}")),
        (make(service, api_key="k"), make(service, api_key="l")),
        (make(service), make("http://127.0.0.1:10")),
        (make(service), make(service, transport=way)),
        (make(service, transport=way), make(service, transport=Way())),
    ]:
        assert one.agent("ada") != other.agent("ada")


def test_the_shells_are_not_equal_and_no_key_is_shown() -> None:
    url = "http://127.0.0.1:9"
    blocking, awaiting = Client(url, api_key="kv-secret"), AsyncClient(url, api_key="kv-secret")
    assert blocking.agent("ada") != awaiting.agent("ada")
    assert blocking.agent("ada") != "ada"
    assert blocking.store == awaiting.store
    assert "secret" not in repr(blocking.store)
    assert "secret" not in repr(StoreIdentity("postgresql://ada:secret@127.0.0.1/db", None, None))
