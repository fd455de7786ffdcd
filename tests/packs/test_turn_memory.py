"""The one budget of time that the calls of a hook share, on a clock that jumps to the next deadline."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from kronmem import AsyncClient
from kronmem.packs.capture import Utterance
from kronmem.packs.memory import LazyMemory
from kronmem.packs.turn_memory import TurnMemory


class Hanging:
    """A way to a store that never answers."""

    asked = 0

    async def asend(self, request: Any) -> Any:
        self.asked += 1
        await anyio.sleep_forever()

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("recalls", [True, False])
def test_a_hook_with_many_calls_outlasts_its_timeout_by_nothing(recalls: bool) -> None:
    way = Hanging()

    async def main() -> float:
        async with AsyncClient("sqlite://", transport=way) as client:
            turn = TurnMemory(LazyMemory("ada", client=client, timeout=2.0)).begin()
            began = anyio.current_time()
            if recalls:
                assert await turn.block("Which ship enters the harbour?") == ""
            for number in range(4):
                await turn.keep(Utterance(f"Ship number {number} enters the harbour.", "user", "user"))
            return anyio.current_time() - began

    took = anyio.run(main, backend="trio", backend_options={"clock": MockClock(autojump_threshold=0)})
    assert took == pytest.approx(2.0, abs=0.9)  # a slow machine adds its own time; a second timeout would add 2.0
    assert way.asked >= (2 if recalls else 1)  # the words had their share after the recall
