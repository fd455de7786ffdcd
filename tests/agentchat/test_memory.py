"""What users call on a KronMemory: it tells the truth, keeps to its scope and honours cancellation."""

from __future__ import annotations

import asyncio
import gc
import uuid
from pathlib import Path
from typing import Any

import pytest
from autogen_core import CancellationToken, Image
from autogen_core.memory import MemoryContent, MemoryMimeType

from kronmem import AsyncClient, Client, ConfigError, InvalidInputError, KronmemError, Retry, TransportError
from kronmem.agentchat import KronMemory
from kronmem.agentchat.memory import until_cancelled
from tests.services import KronvexServer, RawServer
from tests.services.raw import close, hang

pytestmark = pytest.mark.anyio


def text(content: str, **metadata: Any) -> MemoryContent:
    return MemoryContent(content=content, mime_type=MemoryMimeType.TEXT, metadata=metadata or None)


async def contents(memory: KronMemory, query: str, **options: Any) -> list[Any]:
    return [one.content for one in (await memory.query(query, **options)).results]


async def test_what_is_added_is_found_with_its_scores() -> None:
    async with AsyncClient("sqlite://") as client:
        memory = KronMemory("ada", client=client)
        await memory.add(text("The user likes green tea", topic="drinks"))
        (found,) = (await memory.query("which tea does the user like?")).results
        assert (found.content, found.mime_type) == ("The user likes green tea", MemoryMimeType.TEXT)
        assert found.metadata is not None
        assert found.metadata["topic"] == "drinks"
        assert found.metadata["kronmem"]["agent_id"] == "ada"
        assert 0 < found.metadata["kronmem"]["similarity"] <= 1
        await memory.add(found)  # what came back may go in again: it is the same memory
        assert len([one async for one in client.memories("ada")]) == 1


@pytest.mark.parametrize("mime_type", [MemoryMimeType.JSON, "application/json", "Application/JSON; charset=utf-8"])
async def test_json_comes_back_as_the_object_it_was(mime_type: Any) -> None:
    async with AsyncClient("sqlite://") as client:
        memory = KronMemory("ada", client=client)
        await memory.add(MemoryContent(content={"city": "Łódź", "beds": 2}, mime_type=mime_type))
        (found,) = (await memory.query("how many beds in the city?")).results
        assert (found.content, found.mime_type) == ({"city": "Łódź", "beds": 2}, "application/json")
        (again,) = (await memory.query(MemoryContent(content={"city": "Łódź"}, mime_type=mime_type))).results
        assert again.content == found.content


async def test_markdown_keeps_its_type() -> None:
    async with AsyncClient("sqlite://") as client:
        memory = KronMemory("ada", client=client)
        await memory.add(MemoryContent(content="# Tea\n- green", mime_type=MemoryMimeType.MARKDOWN))
        (found,) = (await memory.query("tea")).results
        assert (found.content, found.mime_type) == ("# Tea\n- green", "text/markdown")


@pytest.mark.parametrize(
    "content",
    [
        MemoryContent(content=b"\x00\x01", mime_type=MemoryMimeType.BINARY),
        MemoryContent(content="x", mime_type=MemoryMimeType.IMAGE),
        MemoryContent(content={"a": 1}, mime_type=MemoryMimeType.TEXT),
        MemoryContent(content={"a": float("nan")}, mime_type=MemoryMimeType.JSON),
        MemoryContent(content="{not json", mime_type=MemoryMimeType.JSON),
        MemoryContent(content="", mime_type=MemoryMimeType.TEXT),
    ],
)
async def test_what_cannot_be_kept_is_refused_before_anything_is_sent(content: MemoryContent) -> None:
    with RawServer([close()]) as server:
        memory = KronMemory("ada", url=server.url)
        with pytest.raises(InvalidInputError):
            await memory.add(content)
        assert server.requests == []


async def test_the_callers_metadata_is_not_changed() -> None:
    async with AsyncClient("sqlite://") as client:
        given = {"topic": "drinks", "mime_type": "theirs"}
        content = MemoryContent(content="# Tea", mime_type=MemoryMimeType.MARKDOWN, metadata=given)
        await KronMemory("ada", client=client).add(content)
        assert given == {"topic": "drinks", "mime_type": "theirs"}
        assert content.metadata == given


async def test_a_query_may_be_narrowed_and_nothing_is_ignored_in_silence() -> None:
    async with AsyncClient("sqlite://") as client:
        await client.remember("ada", "Green tea in the morning", "preference")
        await client.remember("ada", "Black tea in the evening", "fact", tags=["late"])
        memory = KronMemory("ada", client=client)
        assert await contents(memory, "tea", memory_type="preference") == ["Green tea in the morning"]
        assert await contents(memory, "tea", tags=["late"]) == ["Black tea in the evening"]
        assert len(await contents(memory, "tea", limit=1)) == 1
        with pytest.raises(InvalidInputError, match="top_k"):
            await memory.query("tea", top_k=3)


async def test_it_reads_where_it_is_told_to_and_writes_to_its_own() -> None:
    async with AsyncClient("sqlite://") as client:
        for agent, fact in (("ada", "Tea at five"), ("company", "Tea is free"), ("bob", "Tea with bob")):
            await client.remember(agent, fact)
        alone, reading = KronMemory("ada", client=client), KronMemory("ada", read_from=["company"], client=client)
        assert await contents(alone, "tea") == ["Tea at five"]
        assert sorted(await contents(reading, "tea")) == ["Tea at five", "Tea is free"]
        assert len(await contents(reading, "tea", limit=1)) == 1
        await reading.add(text("Tea for ada"))
        await reading.clear()
        assert [one.agent_id async for one in client.memories("company")] == ["company"]
        assert [one async for one in client.memories("ada")] == []


async def test_a_session_limits_reading_writing_and_clearing_but_not_the_others() -> None:
    async with AsyncClient("sqlite://") as client:
        await client.remember("ada", "Tea on Monday", session_id="monday")
        await client.remember("company", "Tea is free")
        memory = KronMemory("ada", session_id="tuesday", read_from=["company"], client=client)
        await memory.add(text("Tea on Tuesday"))
        assert sorted(await contents(memory, "tea")) == ["Tea is free", "Tea on Tuesday"]
        everywhere = KronMemory("ada", session_id="tuesday", read_from=["ada"], client=client)
        assert sorted(await contents(everywhere, "tea")) == ["Tea on Monday", "Tea on Tuesday"]
        await memory.clear()
        assert [one.content async for one in client.memories("ada")] == ["Tea on Monday"]


async def test_closing_releases_and_deletes_nothing(tmp_path: Path) -> None:
    memory = KronMemory("ada", url=f"sqlite:///{tmp_path}/memory.db")
    await memory.add(text("Tea at five"))
    await memory.close()
    await memory.close()
    assert await contents(memory, "tea") == ["Tea at five"]
    await memory.close()


async def test_a_client_passed_in_stays_open() -> None:
    async with AsyncClient("sqlite://") as client:
        memory = KronMemory("ada", client=client)
        await memory.add(text("Tea at five"))
        await memory.close()
        assert len(await client.recall("ada", "tea")) == 1


async def test_an_outage_is_an_error_and_not_an_empty_answer() -> None:
    with RawServer([close()]) as server:
        async with AsyncClient(server.url, outbox=False, retry=Retry(first=0.0)) as client:
            for memory in (KronMemory("ada", client=client), KronMemory("ada", client=client, read_from=["bob"])):
                with pytest.raises(KronmemError):
                    await memory.query("tea")
                with pytest.raises(TransportError):
                    await memory.add(text("Tea at five"))


@pytest.mark.slow
async def test_what_is_added_during_an_outage_waits_in_the_outbox() -> None:
    with RawServer([close()]) as server:
        async with AsyncClient(server.url, timeout=0.2) as client:
            await KronMemory("ada", client=client).add(text("Tea at five"))
            assert await client.outbox.pending() == 1


@pytest.mark.parametrize("method", ["query", "add"])
async def test_a_cancelled_token_ends_the_call(method: str) -> None:
    with RawServer([hang()]) as server:
        memory, token = KronMemory("ada", url=server.url, timeout=60), CancellationToken()
        work = memory.query("tea", token) if method == "query" else memory.add(text("Tea"), token)
        task = asyncio.ensure_future(work)
        while not server.requests:
            await asyncio.sleep(0)
        token.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await memory.close()


async def test_a_cancelled_token_returns_at_once_from_work_that_takes_its_time_to_end() -> None:
    begun, release, ended, token = asyncio.Event(), asyncio.Event(), asyncio.Event(), CancellationToken()

    async def stubborn() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()
            ended.set()

    task = asyncio.ensure_future(until_cancelled(stubborn(), token))
    await begun.wait()
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)
    assert not ended.is_set()
    release.set()
    await asyncio.wait_for(ended.wait(), 60)


class Tidying:
    """A way to a service that hangs, and that takes its time to clean up when it is cancelled."""

    def __init__(self) -> None:
        self.begun, self.release, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def asend(self, request: Any) -> Any:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await self.release.wait()
            self.ended.set()

    async def aclose(self) -> None: ...


@pytest.mark.parametrize("method", ["query", "add", "remember", "recall", "forget"])
async def test_a_cancelled_token_does_not_wait_for_a_connection_to_be_cleaned_up(method: str) -> None:
    way, token = Tidying(), CancellationToken()
    memory = KronMemory("ada", client=AsyncClient("sqlite://", transport=way), timeout=60)
    tools = {tool.name: tool for tool in memory.tools()}
    arguments = {"remember": {"content": "Tea"}, "recall": {"query": "tea"}, "forget": {"memory_id": str(uuid.uuid4())}}
    if method in tools:
        work = tools[method].run_json(arguments[method], token)
    else:
        work = memory.query("tea", token) if method == "query" else memory.add(text("Tea"), token)
    task = asyncio.ensure_future(work)
    await asyncio.wait_for(way.begun.wait(), 60)
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)
    assert not way.ended.is_set()
    way.release.set()
    await asyncio.wait_for(way.ended.wait(), 60)


async def test_a_token_cancelled_before_the_call_sends_nothing() -> None:
    with RawServer([hang()]) as server:
        token = CancellationToken()
        token.cancel()
        with pytest.raises(asyncio.CancelledError):
            await KronMemory("ada", url=server.url).query("tea", token)
        assert server.requests == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"agent_id": ""}, InvalidInputError),
        ({"agent_id": "../x"}, InvalidInputError),
        ({"agent_id": "a", "session_id": ""}, InvalidInputError),
        ({"agent_id": "a", "read_from": "company"}, InvalidInputError),
        ({"agent_id": "a", "read_from": ["a/b"]}, InvalidInputError),
        ({"agent_id": "a", "limit": 0}, InvalidInputError),
        ({"agent_id": "a", "threshold": 2}, InvalidInputError),
        ({"agent_id": "a", "timeout": 0}, ConfigError),
        ({"agent_id": "a", "url": "ftp://x"}, ConfigError),
        ({"agent_id": "a", "url": "https://api.kronvex.io"}, ConfigError),
        ({"agent_id": "a", "client": Client("sqlite://")}, ConfigError),
        ({"agent_id": "a", "client": AsyncClient("sqlite://"), "url": "sqlite://"}, ConfigError),
        ({}, TypeError),
    ],
)
def test_wrong_arguments_are_told_at_once(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        KronMemory(**arguments)


def test_making_one_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRONMEM_HOME", str(tmp_path / "nothing"))
    assert len(KronMemory("ada").tools()) == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # each loop ended with its connection open
def test_one_memory_serves_one_event_loop_after_another() -> None:
    with KronvexServer() as server:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KRONMEM_URL", server.url)
            patch.setenv("KRONMEM_API_KEY", server.key)
            memory = KronMemory("ada")
            asyncio.run(memory.add(text("Tea at five")))
            assert asyncio.run(contents(memory, "Tea at five")) == ["Tea at five"]
            asyncio.run(memory.close())
        gc.collect()


async def test_two_users_never_see_each_other() -> None:
    async with AsyncClient("sqlite://") as client:
        ada, bob = KronMemory("ada", client=client), KronMemory("bob", client=client)
        await ada.add(text("The password hint is a river"))
        assert await contents(bob, "password hint") == []
        await bob.clear()
        assert await contents(ada, "password hint") == ["The password hint is a river"]


def test_an_image_is_not_a_memory() -> None:
    from PIL import Image as Picture

    content = MemoryContent(content=Image(Picture.new("RGB", (1, 1))), mime_type=MemoryMimeType.IMAGE)
    with pytest.raises(InvalidInputError, match="image"):
        asyncio.run(KronMemory("ada", url="sqlite://").add(content))
