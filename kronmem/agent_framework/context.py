"""KronmemContextProvider: memory around each run of an Agent Framework agent. No failure of it reaches the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import dropwhile, takewhile
from typing import Any

from agent_framework import AgentSession, ContextProvider, Message, SessionContext, SupportsAgentRun

from kronmem import AsyncClient
from kronmem.packs.capture import MAX_BEFORE, CaptureOption, Utterance
from kronmem.packs.injected_block import clean_words
from kronmem.packs.lazy_memory import LazyMemory
from kronmem.packs.turn_memory import TurnMemory


class KronmemContextProvider(ContextProvider):
    """Durable memory of one `agent_id` for Agent Framework; the same id means the same memory, in every process.

    Before a run, the memories that fit the user's words are shown to the model for that run only. `capture` stores what
    the user states before the model is asked, and what the agent decides after it ("auto"; "user": the former alone;
    "all": both whole messages; False; or a function from a text to the texts worth keeping, awaitable or not, called
    with `role=` if it has that parameter). The model gets the tools remember, recall and forget (`tools=False`: none;
    `["recall"]`: only that).
    `agent_id` and `session_id` may be callables, asked in every run and every tool call: one provider then serves many
    users. A streamed run asks them where it is iterated. With a history provider, list that one first:
    `context_providers=[history, memory]` puts the block right before the newest question. Several memories on one
    agent need a `source_id` and a `prefix` of their own each.

    Stored words expire after `ttl_days`, if given.
    Memory that fails is logged once (logger "kronmem"); a hook takes at most `timeout` seconds, a tool call too.
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
        source_id: str = "kronmem",
    ) -> None:
        super().__init__(source_id)
        memory = LazyMemory(
            agent_id, url=url, client=client, session_id=session_id, read_from=read_from, timeout=timeout
        )
        self._turns = TurnMemory(memory, limit=limit, capture=capture, prefix=prefix, ttl_days=ttl_days)
        self._tools = self._turns.tools(tools)

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession | None, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Show the block and the tools to the model of this run, then store the user's words."""
        if self._tools:
            context.extend_tools(self.source_id, self._tools)
        turn, said = self._turns.begin(), _newest(context.input_messages)
        prompt = [message.text for message in context.get_messages(include_input=True)]
        if block := await turn.block("\n".join(clean_words(message.text) for message in said), prompt):
            context.extend_messages(self, [Message("user", [block])])
        # After the recall, so that a run does not recall its own words; here, because a run that fails or a stream
        # that is left early never comes to after_run.
        for message in said:
            # A message that the caller gave an id keeps it: passed in again, it is not said again.
            place = {"message": message.message_id} if message.message_id else {}
            await turn.keep(Utterance(clean_words(message.text), message.author_name or "user", "user", place))

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession | None, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store the answer."""
        words = clean_words(context.response.text) if context.response is not None else ""
        if words:
            name = getattr(agent, "name", None) or "assistant"
            told = [one for one in context.get_messages(include_input=True) if one.role == "user"]
            before = tuple(clean_words(message.text) for message in told[-MAX_BEFORE:])
            await self._turns.begin().keep(Utterance(words, name, "assistant", before=before))

    async def close(self) -> None:
        """Release the connections opened here; a client passed in stays open."""
        await self._turns.close()


def _newest(messages: Sequence[Message]) -> list[Message]:
    """The last messages of the user in a row: a caller may pass a whole conversation as the input of a run."""
    said = dropwhile(lambda message: message.role != "user", reversed(messages))
    return [*takewhile(lambda message: message.role == "user", said)][::-1]
