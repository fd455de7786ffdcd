"""What was forgotten stays so: an own id that comes again is refused, a queued row of it is done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kronmem import ConflictError, InvalidInputError
from kronmem.transport.local import open_sqlite
from tests.conftest import unused
from tests.engine.calling import Clock
from tests.outbox.services import asked
from tests.services.kronmem import ServedKronmem
from tests.shells import shell

OWN = "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"
OTHER = "1b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"
WAYS: dict[str, Callable[[Any], object]] = {
    "forget": lambda client: client.forget("ada", OWN),
    "clear": lambda client: client.clear("ada"),
    "clear a session": lambda client: client.clear("ada", session_id="s"),
    "erase": lambda client: client.erase("ada"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", ["embedded", "served"])
def test_a_memory_of_an_own_id_that_was_forgotten_is_refused_and_not_answered_as_stored(
    where: str, kind: str, way: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    served: ServedKronmem | None = request.getfixturevalue("served") if where == "served" else None
    key, outbox = (next(unused), tmp_path / "o.db") if served else (None, None)
    with shell(kind, served.url if served else "sqlite://", api_key=key, outbox=outbox) as client:
        memory = {"session_id": "s", "memory_id": OWN}
        assert client.remember("ada", "tea", **memory) == client.remember("ada", "tea", **memory)
        WAYS[way](client)
        with pytest.raises(ConflictError, match="forgotten"):
            client.remember("ada", "tea", **memory)
        if served:
            client.remember_later("ada", "tea", **memory)
            assert asked(client, "flush", 20.0) == 0
            assert asked(client, "dead") == []
        assert client.memories("ada") == []
        assert client.remember("ada", "tea", memory_id=OTHER).id == OTHER
        assert [one.content for one in client.memories("ada")] == ["tea"]


def test_a_memory_of_an_own_id_that_has_expired_is_refused_too(kind: str) -> None:
    clock = Clock()
    with shell(kind, "sqlite://", transport=open_sqlite(":memory:", now=clock)) as client:
        client.remember("ada", "tea", memory_id=OWN, ttl_seconds=60)
        clock.time += 61
        with pytest.raises(ConflictError, match="expired"):
            client.remember("ada", "tea", memory_id=OWN, ttl_seconds=60)


@pytest.mark.parametrize("where", ["embedded", "served"])
def test_a_restore_refuses_reserved_metadata_as_remember_does(
    where: str, kind: str, request: pytest.FixtureRequest
) -> None:
    served: ServedKronmem | None = request.getfixturevalue("served") if where == "served" else None
    key = next(unused) if served else None
    with shell(kind, served.url if served else "sqlite://", api_key=key, outbox=False) as client:
        kept = client.remember("ada", "tea")
        mine = {"kronmem": {"id": OWN, "pinned": True}}
        for ask in (
            lambda: client.remember("ada", "milk", metadata=mine),
            lambda: client.restore("bob", [kept, kept.model_copy(update={"metadata": mine})]),
        ):
            with pytest.raises(InvalidInputError, match="reserved"):
                ask()
        assert client.memories("bob") == []
