"""KronmemPlugin: memory around each turn of an AG2 1.x agent. No failure of it reaches the turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ag2 import Context, Plugin
from ag2.events import BaseEvent, ModelRequest, ModelResponse, TextInput
from ag2.middleware import AgentTurn, BaseMiddleware, LLMCall, Middleware

from kronmem import AsyncClient
from kronmem.packs.block import clean_words
from kronmem.packs.capture import MAX_BEFORE, CaptureOption, Utterance
from kronmem.packs.memory import LazyMemory
from kronmem.packs.toolset import with_fields
from kronmem.packs.turn_memory import Turn, TurnMemory


class KronmemPlugin(Plugin):
    """Durable memory of one `agent_id` for AG2 agents; the same id means the same memory, in every process.

    Once a turn, the memories that fit the user's words are looked up; each model call of the turn sees them right
    before those words, and the history never does. `capture` stores after the turn the user's statements, also when the
    model failed, and the agent's decisions when it did not ("auto"; "user": the former alone; "all": both whole
    messages; False; or a function from a text to the texts worth keeping, awaitable or not, called with `role=` if it
    has that parameter). The model gets the tools remember, recall and forget (`tools=False`: none;
    `["recall"]`: only that). `agent_id` and
    `session_id` may be callables, asked in every turn and every tool call: one plugin then serves many users.
    Several memories on one agent need a `prefix` each: of two tools with one name AG2 silently keeps the later.

    Stored words expire after `ttl_days`, if given.
    Memory that fails is logged once (logger "kronmem"); recall and capture together take at most `timeout` seconds a
    turn, and a tool call too.
    """

    def __init__(
        self,
        agent_id: str | Callable[[], str],
        *,
        url: str | None = None,
        client: AsyncClient | None = None,
        session_id: str | Callable[[], str | None] | None = None,
        read_from: Iterable[str] = (),
        limit: int = 5,
        timeout: float = 2.0,
        tools: bool | Iterable[str] = True,
        capture: CaptureOption = "auto",
        prefix: str = "",
        ttl_days: int | None = None,
    ) -> None:
        memory = LazyMemory(
            agent_id, url=url, client=client, session_id=session_id, read_from=read_from, timeout=timeout
        )
        self._turns = TurnMemory(memory, limit=limit, capture=capture, prefix=prefix, ttl_days=ttl_days)
        functions = [with_fields(one) for one in self._turns.tools(tools)]
        super().__init__(tools=functions, middleware=[Middleware(MemoryMiddleware, turns=self._turns)])

    async def close(self) -> None:
        """Release the connections opened here; a client passed in stays open."""
        await self._turns.close()


class MemoryMiddleware(BaseMiddleware):
    """Recall and capture of one turn; AG2 makes one for every turn, so that the block lives no longer than it."""

    def __init__(self, event: BaseEvent, context: Context, *, turns: TurnMemory) -> None:
        super().__init__(event, context)
        self._turns = turns
        self._turn: Turn | None = None
        self._words, self._block = "", ""
        self._before: tuple[str, ...] = ()

    async def on_turn(self, call_next: AgentTurn, event: BaseEvent, context: Context) -> ModelResponse:
        """Look up once, let the agent work, store the words and the answer."""
        turn, words = self._turns.begin(), words_of(event)
        self._turn, self._words = turn, words
        try:
            answer = await call_next(event, context)
        finally:  # not before: the turn would recall its own words
            await turn.keep(Utterance(words, "user", "user"))
        await turn.keep(Utterance(clean_words(answer.content or ""), "assistant", "assistant", before=self._before))
        return answer

    async def on_llm_call(self, call_next: LLMCall, events: Sequence[BaseEvent], context: Context) -> ModelResponse:
        """Show the block to the model: before the newest words, never between a tool call and its result."""
        if self._turn is not None:  # the first call: its events are the prompt
            turn, self._turn = self._turn, None
            self._block = await turn.block(self._words, map(_text, events))
            self._before = tuple(words for event in events if (words := words_of(event)))[-MAX_BEFORE:]
        places = [at for at, event in enumerate(events) if words_of(event)]
        if not self._block or not places:
            return await call_next(events, context)
        shown = [*events[: places[-1]], ModelRequest([TextInput(self._block)]), *events[places[-1] :]]
        return await call_next(shown, context)


def _text(event: BaseEvent) -> str:
    """The words of a user or of the model."""
    if isinstance(event, ModelResponse):
        return event.content or ""
    return words_of(event)


def words_of(event: BaseEvent) -> str:
    """The words of a user; other events have none."""
    parts = event.parts if isinstance(event, ModelRequest) else []
    return clean_words("\n".join(part.content for part in parts if isinstance(part, TextInput)))
