"""KronMemory: AutoGen's Memory on a kronmem client; its content as kronmem stores it, its dumped config.

The method that the framework calls by itself, `update_context`, never fails a run; methods that users call raise.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Self, TypeVar, cast

from autogen_core import CancellationToken, Component
from autogen_core.memory import Memory, MemoryContent, MemoryMimeType, MemoryQueryResult, UpdateContextResult
from autogen_core.model_context import ChatCompletionContext
from autogen_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from kronmem import AsyncClient, ConfigError, Hit, InvalidInputError, MemoryTools
from kronmem.agentchat import injection
from kronmem.agentchat.injection import ContextCapture
from kronmem.packs.capture import CaptureOption, CaptureWord, capture_rules
from kronmem.packs.checks import check_limits
from kronmem.packs.deadlines import LogOnce, load_engine_for, warm_up
from kronmem.packs.memory import AsyncReadingMemory, KeyVariable, LazyMemory, check_key, dumpable_url, key_variable
from kronmem.packs.no_echo import Echoes, Prompt
from kronmem.packs.toolset import TOOL_NAMES, ToolCoroutine, check_only
from kronmem.packs.turn_memory import TimeBudget, recall_for_turn

# AutoGen's MemoryContent as kronmem stores it, and back. Pure; the caller's objects are never changed.

TEXT, MARKDOWN, JSON = "text/plain", "text/markdown", "application/json"
MIME_TYPE = "mime_type"
"""The metadata key that keeps the type of content other than plain text."""
OURS = "kronmem"
"""The metadata key of recalled content that holds id, agent, type and scores. No user's key is called so."""


def as_text(content: MemoryContent) -> str:
    """The text to store or to ask: text as it is, JSON as text."""
    inner: object = content.content
    mime_type = _mime_type(content)
    if mime_type == JSON:
        return _json_text(inner)
    if mime_type not in (TEXT, MARKDOWN):
        raise InvalidInputError(f"memory keeps {TEXT}, {MARKDOWN} and {JSON}, not {mime_type}")
    if not isinstance(inner, str):
        raise InvalidInputError(f"{mime_type} must be a string, not {type(inner).__name__}")
    return inner


def as_metadata(content: MemoryContent) -> dict[str, JsonValue]:
    """The metadata to store; keys that an earlier answer added are left out."""
    given = cast("Mapping[str, JsonValue]", content.metadata or {})
    kept = {name: value for name, value in given.items() if name not in (OURS, MIME_TYPE)}
    mime_type = _mime_type(content)
    return kept if mime_type == TEXT else {**kept, MIME_TYPE: mime_type}


def as_content(hit: Hit) -> MemoryContent:
    """A recalled memory as AutoGen knows it, with its own metadata and ours under "kronmem"."""
    memory = hit.memory
    theirs = {name: value for name, value in memory.metadata.items() if name not in (OURS, MIME_TYPE)}
    mime_type = memory.metadata.get(MIME_TYPE)
    content = _object(memory.content) if mime_type == JSON else None
    ours: dict[str, JsonValue] = {
        "id": memory.id,
        "agent_id": memory.agent_id,
        "memory_type": memory.memory_type,
        "similarity": hit.similarity,
        "confidence": hit.confidence,
        "created_at": memory.created_at.isoformat() if memory.created_at else None,
    }
    return MemoryContent(
        content=memory.content if content is None else content,
        mime_type=mime_type if isinstance(mime_type, str) else MemoryMimeType.TEXT,
        metadata={**theirs, OURS: ours},
    )


def _mime_type(content: MemoryContent) -> str:
    # Compared by value: after a dump and a load it is a plain string, not the enum's member.
    given = content.mime_type
    return (given.value if isinstance(given, MemoryMimeType) else given).partition(";")[0].strip().lower()


def _json_text(inner: object) -> str:
    try:
        if isinstance(inner, str):
            json.loads(inner)
            return inner
        if isinstance(inner, dict):
            return json.dumps(inner, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInputError("the content is not JSON") from None
    raise InvalidInputError(f"JSON content must be an object or a string, not {type(inner).__name__}")


def _object(text: str) -> dict[str, JsonValue] | None:
    """The object in the text; None where it is other JSON, or no longer JSON after the user's redaction."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, JsonValue]", value) if isinstance(value, dict) else None


# The config of a dumped memory: its arguments, and the variable that holds the key; never a key, never a password.


class KronMemoryConfig(BaseModel):
    """The arguments of a `KronMemory`, and the environment variable that holds the key where one is needed."""

    # A misspelt field would widen the scope in silence, so it is refused; and a key that a caller wrote into a
    # config by hand must not be shown by that very refusal.
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    agent_id: str
    url: str | None = None
    session_id: str | None = None
    read_from: list[str] = Field(default_factory=list[str])
    limit: int = 5
    threshold: float | None = None
    timeout: float = 2.0
    capture: CaptureWord = False
    api_key_env: KeyVariable | None = None


class ToolConfig(KronMemoryConfig):
    """A memory and the prefix of the tool's name."""

    prefix: str = ""


class KronMemory(Memory, Component[KronMemoryConfig]):
    """Durable memory of one `agent_id` for AutoGen agents; the same id means the same memory, in every process.

    `agent_id` and `session_id` may be callables, asked at every call in the caller's context: one object then serves
    many users. It writes to `agent_id` and reads from it and from the agents in `read_from`; with a `session_id`, its
    own reads, writes and `clear` are within that session. With `capture` it also stores statements of users and
    decisions of the agent ("auto"; "user", "all" or a function, as in the other packs), read from the context when the
    agent is asked; the last answer of a chat is stored when it goes on. `timeout` is how many seconds a call may
    take. Nothing is opened before the first call, and `close` releases only a client opened here: one passed in stays
    open. May be used from one event loop after another.
    """

    component_config_schema = KronMemoryConfig
    component_provider_override = "kronmem.agentchat.KronMemory"

    def __init__(
        self,
        agent_id: str | Callable[[], str],
        *,
        url: str | None = None,
        session_id: str | Callable[[], str | None] | None = None,
        read_from: Sequence[str] = (),
        limit: int = 5,
        threshold: float | None = None,
        timeout: float = 2.0,
        capture: CaptureOption = False,
        client: AsyncClient | None = None,
    ) -> None:
        check_limits(limit, timeout, threshold)
        self._memory = LazyMemory(
            agent_id, url=url, client=client, session_id=session_id, read_from=read_from, timeout=timeout
        )
        self.read_from = self._memory.read_from
        self._limit, self._threshold = limit, threshold
        self._tools: dict[str, MemoryTools[ToolCoroutine]] = {}
        self._log, self._echoes = LogOnce(str(self._memory)), Echoes()
        self._capture: CaptureOption = capture
        rules = capture_rules(capture)
        self._captured = ContextCapture(self._memory, rules, self._echoes) if rules else None

    def __repr__(self) -> str:
        agent_id, session_id = (
            "<callable>" if callable(one) else repr(one) for one in (self._memory.agent_id, self._memory.session_id)
        )
        return f"{type(self).__name__}({agent_id}, session_id={session_id}, read_from={self.read_from!r})"

    @property
    def agent_id(self) -> str:
        """The owner of this memory; a callable is asked now."""
        return self.agent_memory.agent_id

    @property
    def session_id(self) -> str | None:
        """The session that everything is limited to, if any; a callable is asked now."""
        return self.agent_memory.session_id

    @property
    def agent_memory(self) -> AsyncReadingMemory:
        """The same memory with kronmem's own methods: `remember`, `recall`, `forget`, `memories`, `state`, …"""
        return self._memory.get()

    # ── called by the framework ─────────────────────────────────────────────────────────────────────────────────

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Put the memories that fit the newest user message right before it, in place of the last turn's block.

        Never raises and never takes longer than `timeout`: a memory that fails is logged once (logger "kronmem"),
        the result is empty, and AutoGen emits no MemoryQueryEvent for the turn. Cancellation propagates.
        """
        shown: list[MemoryContent] = []
        budget = TimeBudget(self._memory.timeout)
        try:
            warm_up(self.agent_memory)
            await load_engine_for(self.agent_memory.client)  # before the deadline begins
            shown = await budget.spend(partial(self._inject, model_context), last=self._captured is None)
            if self._captured is not None:  # after the recall: a turn does not recall its own words
                await budget.spend(partial(self._captured.take, model_context), last=True)
        except Exception as error:  # noqa: BLE001 -- AutoGen lets an exception from here end the whole run
            self._log.failed(error)
        return UpdateContextResult(memories=MemoryQueryResult(results=shown))

    async def _inject(self, context: ChatCompletionContext) -> list[MemoryContent]:
        await injection.show(context, self, "")  # first: one user's block is not shown to the next
        memory = self.agent_memory.resolved()
        injection.strip(context)
        asked = injection.question(await injection.context_messages(context))
        if not asked:
            return []
        prompt = Prompt(await injection.prompt(context))
        hits = await recall_for_turn(memory, asked, self._limit, self._echoes, prompt, self._threshold)
        text = memory.block(hits)
        contents = [as_content(hit) for hit in hits]
        self._log.succeeded()
        return contents if await injection.show(context, self, text) else []

    # ── called by users ──────────────────────────────────────────────────────────────────────────────────────────

    async def query(
        self,
        query: str | MemoryContent,
        cancellation_token: CancellationToken | None = None,
        *,
        limit: int | None = None,
        threshold: float | None = None,
        memory_type: str | None = None,
        tags: Iterable[str] = (),
        **kwargs: Any,
    ) -> MemoryQueryResult:
        """Find memories that answer the query by words or meaning, best first; `metadata["kronmem"]` has the scores.

        A memory that cannot be reached raises a `KronmemError`: an empty result means that nothing fits.
        """
        if kwargs:
            raise InvalidInputError(f"query takes limit, threshold, memory_type and tags, not {', '.join(kwargs)}")
        recalling = self.agent_memory.recall(
            query if isinstance(query, str) else as_text(query),
            self._limit if limit is None else limit,
            memory_type=memory_type,
            tags=tags,
            threshold=self._threshold if threshold is None else threshold,
        )
        hits = await until_cancelled(recalling, cancellation_token)
        return MemoryQueryResult(results=[as_content(hit) for hit in hits])

    async def add(self, content: MemoryContent, cancellation_token: CancellationToken | None = None) -> None:
        """Store text, markdown or JSON; other types are an `InvalidInputError`, a failed write a `KronmemError`."""
        writing = self.agent_memory.remember(as_text(content), metadata=as_metadata(content))
        await until_cancelled(writing, cancellation_token)

    async def clear(self) -> None:
        """Delete all memories of `agent_id`, within the session if there is one; never those it only reads."""
        await self.agent_memory.clear()

    async def close(self) -> None:
        """Release the connections opened here. Nothing is deleted, and a later call opens them again."""
        await self._memory.close()

    # ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────

    def tools(self, prefix: str = "", *, only: Iterable[str] = TOOL_NAMES) -> list[BaseTool[Any, Any]]:
        """Make remember, recall and forget for a model, or `only` some of them by name.

        `prefix` separates several memories of one agent.
        For mypy write `tools=[*memory.tools()]`: AssistantAgent asks for a list that could hold functions too.
        """
        from kronmem.agentchat.tools import ForgetTool, RecallTool, RememberTool  # they are made of a memory

        made = {"remember": RememberTool, "recall": RecallTool, "forget": ForgetTool}
        return [made[name](self, prefix=prefix) for name in check_only(only)]

    def functions(self, prefix: str = "") -> MemoryTools[ToolCoroutine]:
        """Make the plain functions behind the tools; the same ones every time, so that an outage is logged once."""
        if prefix not in self._tools:
            self._tools[prefix] = self._memory.tools(prefix)
        return self._tools[prefix]

    # ── declarative ──────────────────────────────────────────────────────────────────────────────────────────────

    def config(self) -> KronMemoryConfig:
        """The config of a dump, without any secret; `ConfigError` where that cannot be promised."""
        if self._memory.given is not None:
            raise ConfigError("a memory made with client= cannot be dumped, for a client may hold a key: use url=")
        if callable(self._capture):
            raise ConfigError('a memory whose capture= is a function cannot be dumped: use capture="auto"')
        agent_id, session_id = self._memory.agent_id, self._memory.session_id
        if callable(agent_id) or callable(session_id):
            raise ConfigError("a memory with a callable id cannot be dumped: load one with a fixed id for each user")
        return KronMemoryConfig(
            agent_id=agent_id,
            url=dumpable_url(self._memory.url),
            session_id=session_id,
            read_from=list(self.read_from),
            limit=self._limit,
            threshold=self._threshold,
            timeout=self._memory.timeout,
            capture=self._capture,
            api_key_env=key_variable(self._memory.url),
        )

    @classmethod
    def from_config(cls, config: KronMemoryConfig) -> Self:
        """Make the memory that a dump describes."""
        check_key(config.url, config.api_key_env)
        return cls(
            config.agent_id,
            url=config.url,
            session_id=config.session_id,
            read_from=config.read_from,
            limit=config.limit,
            threshold=config.threshold,
            timeout=config.timeout,
            capture=config.capture,
        )

    def _to_config(self) -> KronMemoryConfig:
        return self.config()

    @classmethod
    def _from_config(cls, config: KronMemoryConfig) -> Self:
        return cls.from_config(config)


# AutoGen's cancellation token, honoured.

T = TypeVar("T")


async def until_cancelled(work: Coroutine[object, object, T], token: CancellationToken | None) -> T:
    """Await the work; cancelling the token ends it at once with CancelledError, and so does cancelling the caller.

    The work is cancelled too, but not waited for: a thread of it may go on to its end.
    """
    if token is None:
        return await work
    task = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(asyncio.wait([task]))
    token.link_future(waiting)
    try:
        await waiting
    except asyncio.CancelledError:
        task.add_done_callback(_forget)
        task.cancel()
        raise
    return task.result()


def _forget(task: asyncio.Task[object]) -> None:
    """Take the result of a task that is not awaited, or asyncio would complain of an exception never retrieved."""
    if not task.cancelled():
        task.exception()
