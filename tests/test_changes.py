"""Keys, updates, history, times and erasure through both shells, embedded and served, and the services that lack them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kronmem import (
    Client,
    ConfigError,
    ConflictError,
    InvalidInputError,
    KronmemError,
    Memory,
    NotFoundError,
    TransportError,
    UnsupportedError,
)
from kronmem.api.requests import RestoredMemory
from kronmem.core import calls
from tests.conftest import opened
from tests.services import KronvexServer, RawServer, TutorialServer
from tests.services.kronmem import ServedKronmem
from tests.services.raw import respond
from tests.shells import shell

A, B, C = "Ada lives in Paris", "Ada lives in Berlin", "Ada lives in Rome"


@pytest.fixture(params=["embedded", "served"])
def client(request: pytest.FixtureRequest, kind: str) -> Iterator[Any]:
    """Any shell on an embedded database or a served one, seen as blocking."""
    with opened(str(request.param), kind, request) as made:
        yield made


def test_a_key_has_one_current_memory_and_a_history(client: Any) -> None:
    paris = client.remember("ada", A, key="home_city", role="user")
    berlin = client.remember("ada", B, key="home_city")
    assert (paris.key, paris.role, paris.superseded_by) == ("home_city", "user", None)
    assert [hit.content for hit in client.recall("ada", "Where does Ada live?")] == [B]
    assert [one.content for one in client.memories("ada")] == [B]
    assert [one.content for one in client.memories("ada", history=True)] == [B, A]
    assert [(one.content, one.superseded_by) for one in client.history("ada", paris.id)] == [(B, None), (A, berlin.id)]
    assert client.get("ada", paris.id).superseded_by == berlin.id
    rome = client.remember("ada", C, supersedes=berlin.id)
    assert rome.key == "home_city"
    assert "Berlin" not in client.inject_context("ada", "Where does Ada live?")


def test_an_update_keeps_the_former_text(client: Any) -> None:
    memory = client.remember("ada", "the port is 8080", tags=["net"])
    changed = client.update("ada", memory.id, content="the port is 9090", metadata={"n": 1}, ttl_days=3)
    assert (changed.id, changed.content, changed.tags, changed.metadata) == (
        memory.id,
        "the port is 9090",
        ("net",),
        {"n": 1},
    )
    assert changed.updated_at is not None
    assert changed.expires_at is not None
    assert client.update("ada", memory.id, ttl_days=0).expires_at is None
    assert client.update("ada", memory.id, pinned=True).pinned
    assert [one.content for one in client.history("ada", memory.id)] == ["the port is 9090", "the port is 8080"]
    client.remember("ada", "another text")
    with pytest.raises(ConflictError):
        client.update("ada", memory.id, content="another text")
    with pytest.raises(NotFoundError):
        client.update("ada", "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d", content="x")
    with pytest.raises(NotFoundError):
        client.get("nobody", memory.id)


def test_times_bound_every_read(client: Any) -> None:
    client.remember("ada", "tea at five")
    before = datetime.now(UTC) - timedelta(hours=1)
    for bounds, found in (({"since": before}, 1), ({"until": before.isoformat()}, 0), ({"since": "2999-01-01"}, 0)):
        assert len(client.recall("ada", "tea", **bounds)) == found
        assert len(list(client.memories("ada", **bounds))) == found
        assert bool(client.inject_context("ada", "tea", **bounds)) == bool(found)
    naive = datetime.now() - timedelta(hours=1)  # noqa: DTZ005 -- a user's own clock
    assert len(client.recall("ada", "tea", since=naive)) == 1
    assert client.clear("ada", before=before) == 0
    assert client.clear("ada", before=datetime.now(UTC) + timedelta(hours=1)) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"since": "yesterday"}, {"since": 5}, {"until": ""},
    ],
)  # fmt: skip
def test_times_that_cannot_be_read_are_refused_before_anything_is_sent(wrong: dict[str, Any]) -> None:
    with Client("http://127.0.0.1:9", outbox=False) as client, pytest.raises(InvalidInputError, match="ISO 8601"):
        client.recall("ada", "tea", **wrong)


@pytest.mark.parametrize(
    "wrong", [{"role": "system"}, {"key": " "}, {"key": "x" * 256}, {"supersedes": "a/b"}, {"key": 5}]
)
def test_bad_keys_roles_and_ids_are_refused_before_anything_is_sent(wrong: dict[str, Any]) -> None:
    with Client("http://127.0.0.1:9") as client:
        for method in (client.remember, client.remember_later):
            with pytest.raises(InvalidInputError):
                method("ada", "text", **wrong)
        with pytest.raises(InvalidInputError, match="at least one"):
            client.update("ada", "some-id")


def test_erasing_counts_everything_and_leaves_nothing(client: Any) -> None:
    client.remember("ada", A, key="city")
    client.remember("ada", B, key="city")
    client.state("ada").set("k", 1)
    erased = client.erase("ada")
    assert (erased.memories, erased.history, erased.state, erased.complete) == (1, 1, 1, True)
    assert list(client.memories("ada", history=True)) == []
    assert client.state("ada").keys() == []
    assert client.erase("ada").memories == 0


def test_state_is_changed_in_one_step(client: Any) -> None:
    state = client.state("ada")
    assert state.update("n", lambda value: (value or 0) + 1) == 1
    assert state.update("n", lambda value: value + 1) == 2
    assert state.update("list", lambda value: [*value, "x"], default=[]) == ["x"]
    assert state.get("n") == 2


def test_many_that_count_at_once_lose_no_step(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"

    def count() -> None:
        with Client(url, timeout=60.0) as client:
            for _ in range(25):
                client.state("ada").update("n", lambda value: int(str(value or 0)) + 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Client(url) as client:
        assert client.state("ada").get("n") == 100


def test_a_service_without_keys_is_named_and_gets_nothing(kind: str, tmp_path: Path) -> None:
    with (
        RawServer(lambda _connection, _request: respond(404, body={"detail": "Not Found"})) as old,
        shell(kind, old.url, outbox=tmp_path / "o.db") as client,
    ):
        with pytest.raises(ConfigError, match=r"key= or supersedes= needs a kronmem service of version 0\.2"):
            client.remember("ada", A, key="city")
        with pytest.raises(KronmemError, match=r"key= or supersedes="):
            client.remember_many("ada", [A, B], key="city")
        with pytest.raises(ConfigError, match=r"update of text"):
            client.update("ada", "some-id", content="x")
        assert {request.path.rsplit("/", 1)[1] for request in old.requests} == {"upsert", "update"}


def test_kronvex_refuses_keys_and_does_the_rest_by_its_own_calls(kind: str) -> None:
    with KronvexServer() as server, shell(kind, server.url, api_key=server.key, outbox=False) as client:
        one = client.remember("ada", "tea at five", role="user")
        with pytest.raises(ConfigError, match="key="):
            client.remember("ada", A, key="city")
        with pytest.raises(ConfigError, match="update of text"):
            client.update("ada", one.id, content="tea at six")
        assert client.update("ada", one.id, pinned=True).pinned
        assert client.get("ada", one.id).role == "user"
        assert [memory.id for memory in client.history("ada", one.id)] == [one.id]
        assert client.clear("ada", before=datetime.now(UTC) + timedelta(days=1)) == 1
        client.remember("ada", "coffee at nine")
        erased = client.erase("ada")
        assert (erased.memories, erased.complete) == (1, False)
        assert list(client.memories("ada")) == []


@pytest.mark.slow
def test_a_late_delivery_does_not_bury_what_was_said_since(tmp_path: Path) -> None:
    with ServedKronmem(tmp_path / "memory.db") as server:
        with Client("http://127.0.0.1:9", outbox=tmp_path / "o.db", timeout=1.0) as away:
            away.remember_later("ada", A, key="city")
        moved = sqlite3.connect(tmp_path / "o.db", isolation_level=None)
        moved.execute("UPDATE waiting SET service = ?", (server.url,))
        moved.close()
        with Client(server.url, outbox=False) as direct:
            direct.remember("ada", B, key="city")
        with Client(server.url, outbox=tmp_path / "o.db") as client:
            assert client.outbox.flush(30.0) == 0
            assert [one.content for one in client.memories("ada", history=True)] != [A]
            assert [one.content for one in client.memories("ada")] == [B]


def raw(directory: Path) -> bytes:
    return b"".join(file.read_bytes() for file in directory.rglob("*") if file.is_file())


def test_no_fragment_of_an_erased_text_is_left_in_the_outbox(tmp_path: Path) -> None:
    with Client("http://127.0.0.1:9", outbox=tmp_path / "o.db", timeout=30.0) as client:
        client.remember_later("ada", "zanzibar xylophone", key="quixotic", tags=["obsidian"])
        client.remember_later("bob", "stays here")
        with pytest.raises(KronmemError, match=r"cannot connect|circuit breaker open"):
            client.erase("ada")
        for word in (b"zanzibar", b"xylophone", b"quixotic", b"obsidian"):
            assert word not in raw(tmp_path)
        assert b"stays here" in raw(tmp_path)


def test_no_fragment_of_an_erased_text_is_left_in_the_files_of_a_service(kind: str, tmp_path: Path) -> None:
    words = (b"zanzibar", b"xylophone", b"quixotic", b"obsidian", b"marzipan", b"vermilion")
    (tmp_path / "service").mkdir()
    with (
        ServedKronmem(tmp_path / "service" / "memory.db") as server,
        shell(kind, server.url, outbox=tmp_path / "o.db", timeout=60.0) as client,
    ):
        own = "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"
        client.remember("ada", "zanzibar in the summer", key="quixotic", tags=["obsidian"], memory_id=own)
        client.remember("ada", "xylophone in the winter", key="quixotic", metadata={"n": "marzipan"})
        client.remember_later("ada", "zanzibar once more")
        client.state("ada").set("colour", "vermilion")
        client.remember("bob", "stays here")
        assert client.outbox.flush(60.0) == 0
        assert all(word in raw(tmp_path) for word in words)
        erased = client.erase("ada")
        assert (erased.memories, erased.history, erased.state, erased.complete) == (2, 1, 1, True)
        assert [word for word in words if word in raw(tmp_path)] == []
        with pytest.raises(ConflictError, match="forgotten"):  # the retry of a call from before: stored no more
            client.remember("ada", "zanzibar in the summer", key="quixotic", tags=["obsidian"], memory_id=own)
        assert list(client.memories("ada", history=True)) == []
        assert [word for word in words if word in raw(tmp_path)] == []
        assert b"stays here" in raw(tmp_path)


def test_a_queued_memory_is_read_changed_and_told_by_the_id_it_was_queued_under(tmp_path: Path, kind: str) -> None:
    with ServedKronmem(tmp_path / "memory.db") as server, shell(kind, server.url, outbox=tmp_path / "o.db") as client:
        changed = client.update("ada", client.remember_later("ada", A, key="city"), tags=["seen"])
        assert (changed.content, changed.tags) == (A, ("seen",))
        assert client.get("ada", client.remember_later("ada", B, key="city")).content == B
        told = client.history("ada", client.remember_later("ada", C, key="city"))
        assert [one.content for one in told] == [C, B, A]
        with pytest.raises(NotFoundError):
            client.update("ada", "never-queued", tags=["seen"])


@pytest.mark.slow
def test_a_change_of_a_memory_that_cannot_be_delivered_is_an_outage_and_not_unknown(tmp_path: Path) -> None:
    with ServedKronmem(tmp_path / "memory.db") as server:
        url = server.url
        with Client(url, outbox=tmp_path / "o.db", timeout=5.0) as client:
            client.remember("ada", A)
    with Client(url, outbox=tmp_path / "o.db", timeout=2.0) as client:
        queued = client.remember_later("ada", B)
        with pytest.raises(TransportError):
            client.update("ada", queued, content=C)
        assert [one.content for one in client.outbox.list()] == [B]


def test_a_key_stands_in_the_session_that_a_callable_names_at_each_call(client: Any) -> None:
    session = ["one"]
    scoped = client.agent(lambda: "ada", session_id=lambda: session[0])
    scoped.remember(A, key="city")
    session[0] = "two"
    scoped.remember(B, key="city")
    session[0] = "one"
    scoped.remember(C, key="city")
    found = [(one.content, one.session_id) for one in client.memories("ada", history=True)]
    assert found == [(C, "one"), (B, "two"), (A, "one")]
    assert [one.content for one in client.memories("ada")] == [C, B]


def test_a_forgotten_memory_has_no_history_and_one_without_a_former_text_keeps_the_rest(client: Any) -> None:
    first, second, third = (client.remember("ada", text, key="city") for text in (A, B, C))
    client.forget("ada", second.id)
    assert [one.content for one in client.history("ada", first.id)] == [C, A]
    client.forget("ada", third.id)
    for one in (first, second, third):
        with pytest.raises(NotFoundError):
            client.history("ada", one.id)
    assert list(client.memories("ada", history=True)) == []


HOLD = """
import sqlite3, sys
reader = sqlite3.connect(sys.argv[1], isolation_level=None)
reader.execute("BEGIN")
reader.execute("SELECT count(*) FROM memories").fetchone()
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Another process reads the file and does not end."""
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("outbox", [False, True])
@pytest.mark.parametrize("kind", ["embedded", "served"])
def test_an_erasure_that_a_reader_holds_up_ends_within_the_deadline_and_is_not_complete(
    tmp_path: Path, kind: str, outbox: bool
) -> None:
    path, queue = tmp_path / "memory.db", tmp_path / "outbox.db"
    with ServedKronmem(path) if kind == "served" else nullcontext() as server:
        url = server.url if server else f"sqlite:///{path}"
        # Less than the service would wait by itself, for a client that says nothing of its deadline.
        with Client(url, outbox=queue if outbox else False, timeout=4.5) as client:
            client.remember("ada", "zanzibar")
            with held(path):
                gone = client.erase("ada")
                assert (gone.memories, gone.complete) == (1, False)
                assert list(client.memories("ada", history=True)) == []
            assert client.erase("ada").complete is True
            assert b"zanzibar" not in raw(tmp_path)


def test_what_is_restored_is_what_an_export_holds() -> None:
    assert set(RestoredMemory.model_fields) == calls._RESTORED  # pyright: ignore[reportPrivateUsage]
    assert set(Memory.model_fields) - calls._RESTORED == {"agent_id", "deduplicated", "may_replace", "queued"}  # pyright: ignore[reportPrivateUsage]


LACKING: list[tuple[str, Any]] = [
    ("key= or supersedes=", lambda client: client.remember("ada", "tea", key="k")),
    ("key= or supersedes=", lambda client: client.remember("ada", "tea", supersedes="some-id")),
    ("update of text", lambda client: client.update("ada", "some-id", content="tea")),
    (
        "importing times and history",
        lambda client: client.restore("ada", [Memory(id=str(UUID(int=1)), agent_id="a", content="x")]),
    ),
]


@pytest.mark.parametrize(("feature", "call"), LACKING, ids=[f"{n} {row[0]}" for n, row in enumerate(LACKING)])
@pytest.mark.parametrize("kind_of_service", [KronvexServer, TutorialServer])
@pytest.mark.parametrize("known", [False, True])
def test_a_call_that_a_service_lacks_is_refused_and_nothing_is_stored(
    kind: str, feature: str, call: Any, kind_of_service: Any, known: bool
) -> None:
    with kind_of_service() as server, shell(kind, server.url, api_key=server.key, outbox=False) as client:
        if known:
            assert client.recall("ada", "tea") == []
        before = len(server.requests)
        with pytest.raises(UnsupportedError, match=r"needs a kronmem service of version 0\.2 or newer") as raised:
            call(client)
        assert feature in str(raised.value)
        assert len(server.requests) - before <= 1
        call_again = len(server.requests)
        with pytest.raises(UnsupportedError):
            call(client)
        assert len(server.requests) == call_again  # it is known by now
        assert client.agents() == []


def test_a_service_of_the_tutorials_gives_one_memory_by_its_listing(kind: str) -> None:
    with TutorialServer() as server, shell(kind, server.url, api_key=server.key, outbox=False) as client:
        stored = client.remember("ada", "tea at five")
        assert client.get("ada", stored.id).content == "tea at five"
        with pytest.raises(NotFoundError):
            client.get("ada", "some-id")


def test_roles_of_a_first_batch_arrive_whole(client: Any) -> None:
    client.remember_many("ada", [f"note {n}" for n in range(5)], role="tool")
    assert [one.role for one in client.memories("ada")] == ["tool"] * 5
