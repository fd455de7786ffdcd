"""Memories that read from further agents, and memories that open their client when first used."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from kronmem import AsyncAgentMemory, AsyncClient, Client, ConfigError, InvalidInputError
from kronmem.packs.memory import AsyncReadingMemory, LazyMemory

pytestmark = pytest.mark.anyio


class Counting(AsyncClient):
    """Counts the questions that go out."""

    asked: list[str]

    async def recall(self, *args: Any, **options: Any) -> Any:
        self.asked.append("recall")
        return await super().recall(*args, **options)

    async def recall_across(self, agent_ids: Any, *args: Any, **options: Any) -> Any:
        self.asked.append(f"across {','.join(agent_ids)}")
        return await super().recall_across(agent_ids, *args, **options)


@pytest.mark.parametrize(
    ("session_id", "read_from", "asked", "found"),
    [
        (None, [], ["recall"], {"tea of ada", "tea of monday"}),
        (None, ["ada"], ["recall"], {"tea of ada", "tea of monday"}),
        (None, ["bob"], ["across ada,bob"], {"tea of ada", "tea of monday", "tea of bob"}),
        ("monday", [], ["recall"], {"tea of monday"}),
        ("monday", ["bob"], ["recall", "across bob"], {"tea of monday", "tea of bob"}),
        ("monday", ["ada"], ["recall", "across ada"], {"tea of monday", "tea of ada"}),
    ],
)
async def test_it_asks_only_those_it_reads_from(
    session_id: str | None, read_from: list[str], asked: list[str], found: set[str]
) -> None:
    client = Counting("sqlite://")
    async with client:
        await client.remember("ada", "tea of ada")
        await client.remember("ada", "tea of monday", session_id="monday")
        await client.remember("bob", "tea of bob")
        client.asked = []
        memory = AsyncReadingMemory(client, "ada", session_id=session_id, read_from=read_from)
        hits = await memory.recall("tea", tags=iter(()))
        assert {hit.content for hit in hits} == found
        assert len(hits) == len(found)
        assert client.asked == asked


async def test_a_callable_agent_is_asked_once_a_recall() -> None:
    users = ["ada", "bob"]
    async with AsyncClient("sqlite://") as client:
        for name in ("ada", "bob", "team"):
            await client.remember(name, f"tea of {name}")
        memory = AsyncReadingMemory(client, lambda: users.pop(0), read_from=["team"])
        for name in ("ada", "bob"):
            assert {hit.content for hit in await memory.recall("tea")} == {f"tea of {name}", "tea of team"}


async def test_it_shows_the_parameters_of_recall_and_is_equal_by_its_reads() -> None:
    assert inspect.signature(AsyncReadingMemory.recall) == inspect.signature(AsyncAgentMemory.recall)
    async with AsyncClient("sqlite://") as client:
        one = AsyncReadingMemory(client, "ada", read_from=["bob"])
        assert one == AsyncReadingMemory(client, "ada", read_from=["bob"]).with_timeout(1)
        assert one != AsyncReadingMemory(client, "ada")
        assert AsyncReadingMemory(client, "ada") != client.agent("ada")


async def test_a_block_names_the_agents_only_where_there_are_several() -> None:
    async with AsyncClient("sqlite://") as client:
        await client.remember("ada", "tea at five", session_id="monday")
        for read_from, named in (([], False), (["ada"], False), (["bob"], True)):
            memory = AsyncReadingMemory(client, "ada", session_id="monday", read_from=read_from)
            block = memory.block(await memory.recall("tea"))
            assert block.startswith('<memory source="ada/monday">')
            assert ("from ada)" in block) == named


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"agent_id": "a/b"}, InvalidInputError),
        ({"session_id": ""}, InvalidInputError),
        ({"read_from": "company"}, InvalidInputError),
        ({"timeout": 0}, ConfigError),
        ({"url": "ftp://x"}, ConfigError),
        ({"client": Client("sqlite://")}, ConfigError),
        ({"url": "sqlite://", "client": AsyncClient("sqlite://")}, ConfigError),
    ],
)
async def test_wrong_arguments_are_refused_at_once(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        LazyMemory(**{"agent_id": "ada", **options})


async def test_only_an_own_client_is_closed_and_a_later_use_opens_another(tmp_path: Path) -> None:
    own = LazyMemory("ada", url=f"sqlite:///{tmp_path}/memory.db")
    await own.get().remember("tea at five")
    first = own.get()
    assert own.get() is first
    await own.close()
    await own.close()
    assert own.get() is not first
    assert len(await own.get().recall("tea")) == 1
    await own.close()
    async with AsyncClient("sqlite://") as client:
        lent = LazyMemory("ada", client=client)
        await lent.get().remember("tea at five")
        await lent.close()
        assert len(await client.recall("ada", "tea")) == 1
