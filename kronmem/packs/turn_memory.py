"""TurnMemory: recall before a turn, capture around it, and tools; for frameworks with awaited hooks."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import anyio

from kronmem.errors import DeadlineError
from kronmem.models import Hit
from kronmem.packs.block import as_question, fitting, places
from kronmem.packs.capture import AsyncCapture, CaptureOption, Utterance, capture_rules
from kronmem.packs.checks import check_capture, check_limits, check_ttl_days
from kronmem.packs.deadlines import LogOnce, bounded_async, load_engine_for, warm_up
from kronmem.packs.memory import AsyncReadingMemory, LazyMemory
from kronmem.packs.no_echo import Echoes, Prompt, recall_fresh_async
from kronmem.packs.toolset import OWN_DEADLINE, ToolCoroutine, check_tools, tool_names

T = TypeVar("T")


class TurnMemory:
    """The memory behind a provider or plugin. No hook raises, and none outlasts the timeout; a failure is logged once.

    `capture` is "auto", "user", "all", False or a function from a text to the texts worth keeping.
    """

    def __init__(
        self,
        memory: LazyMemory,
        *,
        limit: int = 5,
        capture: CaptureOption = "auto",
        prefix: str = "",
        ttl_days: int | None = None,
    ) -> None:
        check_limits(limit, memory.timeout)
        tool_names(prefix)  # refuses a bad prefix now, not in the middle of a run
        self.memory, self.limit, self._prefix = memory, limit, prefix
        self.log, self.echoes = LogOnce(str(memory)), Echoes()
        self.capture_log = LogOnce(f"capture into the {memory}")
        rules = capture_rules(capture, check_ttl_days(ttl_days))
        if rules:
            check_capture(memory.get())
        self.capture = AsyncCapture(rules, memory.timeout, self.capture_log, self.echoes) if rules else None

    def begin(self) -> Turn:
        """Begin a turn of the user of this moment; without one nothing is recalled and nothing stored."""
        try:
            memory = self.memory.get().resolved()
            warm_up(memory)
            return Turn(self, memory)
        except Exception as error:  # noqa: BLE001 -- an exception in a hook would end the run
            self.log.failed(error)
            return Turn(self, None)

    def tools(self, tools: bool | Iterable[str]) -> list[Callable[..., ToolCoroutine]]:
        """Make remember, recall and forget, none or some of them; the user is resolved at each call."""
        only = check_tools(tools)
        return self.memory.tools(self._prefix).limited(only).functions() if only else []

    async def close(self) -> None:
        """Release the connections opened here; a client passed in stays open."""
        await self.memory.close()


class Turn:
    """One turn of one user, within one budget of time: recall may use most of it, capture the rest."""

    def __init__(self, parts: TurnMemory, memory: AsyncReadingMemory | None) -> None:
        self._parts, self._memory = parts, memory
        self.budget, self._id = TimeBudget(parts.memory.timeout), uuid.uuid4().hex[:12]

    async def block(self, words: str, prompt: Iterable[str] = ()) -> str:
        """The injected block for the user's words, without memories in the prompt; "" without hits and on failure."""
        block = ""
        if words and self._memory is not None:
            with self._parts.log.swallowing():
                await load_engine_for(self._memory.client)  # before the budget is touched
                block = await self.budget.spend(partial(self._recall, self._memory, words, Prompt(prompt)))
        return block

    async def keep(self, utterance: Utterance) -> None:
        """Store words of this turn; it is their place unless they have one, so when repeated they are stored again."""
        if self._memory is not None and self._parts.capture is not None:
            utterance = utterance if utterance.place else replace(utterance, place={"turn": self._id})
            try:
                await self.budget.spend(partial(self._parts.capture.take, self._memory, utterance), last=True)
            except DeadlineError as error:  # it raises nothing else, and logs by itself when it works again
                self._parts.capture_log.failed(error)

    async def _recall(self, memory: AsyncReadingMemory, words: str, prompt: Prompt) -> str:
        return memory.block(
            await recall_for_turn(memory, as_question(words), self._parts.limit, self._parts.echoes, prompt)
        )


async def recall_for_turn(
    memory: AsyncReadingMemory,
    question: str,
    limit: int,
    echoes: Echoes,
    prompt: Prompt,
    threshold: float | None = None,
) -> list[Hit]:
    """The hits of one turn: the profile and the memories that fit the question, without those in the prompt."""

    async def recall(exclude: list[str]) -> list[Hit]:
        return await memory.recall(question, places(limit), exclude=exclude, fill="profile", threshold=threshold)

    hits = await recall_fresh_async(recall, echoes, memory.agent_id, prompt)
    return fitting(hits, limit, weak=threshold is not None)


class TimeBudget:
    """The seconds that the calls of one hook may take together."""

    def __init__(self, timeout: float) -> None:
        self._left = timeout
        self._spare = (1 - OWN_DEADLINE) * timeout

    async def spend(self, work: Callable[[], Awaitable[T]], *, last: bool = False) -> T:
        """Await `work` for the time that is left; calls before the last leave it a share. Then `DeadlineError`."""
        began = anyio.current_time()
        timeout = max(0.0, self._left, self._spare) if last else max(0.0, self._left - self._spare)
        try:
            return await bounded_async(work, round(timeout, 3))  # the message of its error says how long
        finally:
            self._left -= anyio.current_time() - began
            self._spare = 0.0 if last else self._spare  # the share is for all that comes last, not for each
