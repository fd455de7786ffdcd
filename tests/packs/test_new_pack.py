"""A pack for another framework, made of the shared parts alone: recall, capture, tools, and no failed turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kronmem
from kronmem import AsyncClient, MemoryTools, memory_tools
from kronmem.packs.block import as_question, clean_words, is_block
from kronmem.packs.capture import AsyncCapture, CaptureRules, Utterance
from kronmem.packs.checks import check_limits
from kronmem.packs.deadlines import LogOnce, bounded_async
from kronmem.packs.memory import LazyMemory
from kronmem.packs.toolset import ToolCoroutine
from tests.services import RawServer
from tests.services.raw import hang

pytestmark = pytest.mark.anyio


class Provider:
    """Context before a run and capture around it, as Agent Framework and AG2 have them."""

    def __init__(self, agent_id: str, *, limit: int = 5, timeout: float = 2.0, **where: Any) -> None:
        check_limits(limit, timeout)
        self._memory, self._limit = LazyMemory(agent_id, timeout=timeout, **where), limit
        self._log = LogOnce(str(self._memory))
        self._capture = AsyncCapture(CaptureRules(), timeout, LogOnce(f"capture into the {self._memory}"))

    async def before_run(self, messages: list[str]) -> list[str]:
        words = clean_words("\n".join(messages))
        blocks: list[str] = []
        with self._log.swallowing():
            blocks.append(await bounded_async(lambda: self._block(as_question(words)), self._memory.timeout))
        await self._capture.take(self._memory.get(), Utterance(words, "user", "user"))
        return [*filter(None, blocks), *messages]

    async def _block(self, question: str) -> str:
        memory = self._memory.get()
        return memory.block(await memory.recall(question, self._limit))

    async def close(self) -> None:
        await self._memory.close()

    def tools(self) -> MemoryTools[ToolCoroutine]:
        return memory_tools(self._memory.get(), timeout=self._memory.timeout)


async def test_a_turn_is_shown_what_was_said_in_an_earlier_one() -> None:
    async with AsyncClient("sqlite://") as client:
        provider = Provider("ada", client=client, read_from=["company"], timeout=30)
        await client.remember("company", "The harbour closes on Friday")
        assert await provider.before_run(["My ship is called Aurora, by the way."]) == [
            "My ship is called Aurora, by the way."
        ]
        block, question = await provider.before_run(["Which ship enters the harbour?"])
        assert is_block(block)
        assert "Aurora" in block
        assert "from company) The harbour closes on Friday" in block
        assert question == "Which ship enters the harbour?"
        assert "Aurora" in await provider.tools().recall("ship")


async def test_a_memory_that_hangs_fails_no_turn(caplog: pytest.LogCaptureFixture) -> None:
    with RawServer([hang()]) as server:
        provider = Provider("ada", url=server.url, timeout=0.05)
        for _ in range(2):
            assert await provider.before_run(["Which ship enters the harbour?"]) == ["Which ship enters the harbour?"]
        await provider.close()
    told = [line for line in caplog.messages if line.startswith("memory of 'ada' is unavailable")]
    assert len(told) == 1


@pytest.mark.parametrize("pack", ["agent_framework", "ag2", "mcp"])
def test_a_pack_on_top_of_the_shared_parts_is_small(pack: str) -> None:
    files = Path(kronmem.__file__).parent.joinpath(pack).glob("*.py")
    assert 50 < sum(len(file.read_text("utf-8").splitlines()) for file in files) <= 300
