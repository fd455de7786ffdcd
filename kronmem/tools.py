"""remember, recall and forget as plain annotated functions that any framework can hand to a model.

They never raise, coerce the arguments of a model, and answer in words it can use. Annotations are real objects here,
not strings, and the functions are plain nested ones: AutoGen accepts nothing else in every version.
"""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from operator import getitem
from typing import Annotated, Generic, NamedTuple, Protocol, TypeVar, cast, get_args, overload

from pydantic import JsonValue

from kronmem.agent_memory import AgentMemory
from kronmem.async_agent_memory import AsyncAgentMemory
from kronmem.core.inputs import ReadFilters
from kronmem.models import Fill, Hit, Memory
from kronmem.packs import toolset as words
from kronmem.packs.checks import check_memory
from kronmem.packs.deadlines import LogOnce, bounded, is_cold, load_engine
from kronmem.packs.short_ids import ShownIds, candidates, only_one, short
from kronmem.packs.toolset import (
    DESCRIPTIONS,
    OWN_DEADLINE,
    TOOL_NAMES,
    ToolCoroutine,
    ToolName,
    answered_async,
    as_days,
    as_extras,
    as_limit,
    as_tags,
    as_text,
    as_type,
    asks_for_all,
    check_only,
    failure_message,
    tool_names,
)
from kronmem.text.fence import NOTICE, described, label, legible

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

NOTHING = "No relevant memories."
FORGOTTEN = "Forgotten."
_ROUND = str.maketrans("[]", "()")


class RememberFunction(Protocol[R_co]):
    """Store a memory."""

    def __call__(
        self,
        content: str,
        memory_type: str = "fact",
        tags: list[str] | None = None,
        ttl_days: int | None = None,
        key: str | None = None,
    ) -> R_co:
        """Answer in words for a model."""
        ...


class RecallFunction(Protocol[R_co]):
    """Search the memory."""

    def __call__(self, query: str, limit: int = 5, tags: list[str] | None = None, days: int | None = None) -> R_co:
        """Answer in words for a model."""
        ...


class ForgetFunction(Protocol[R_co]):
    """Delete one memory."""

    def __call__(self, memory_id: str) -> R_co:
        """Answer in words for a model."""
        ...


@dataclass(frozen=True)
class MemoryTools(Generic[R]):
    """Three functions for a model; `schemas()` and `function_map()` serve code that registers them by hand.

    `only` are those that a model gets; Python callers may call all three.
    """

    remember: RememberFunction[R]
    recall: RecallFunction[R]
    forget: ForgetFunction[R]
    only: tuple[ToolName, ...] = TOOL_NAMES

    def functions(self) -> list[Callable[..., R]]:
        """The functions, in the order of their use."""
        every: dict[ToolName, Callable[..., R]] = {
            "remember": self.remember,
            "recall": self.recall,
            "forget": self.forget,
        }
        return [every[name] for name in self.only]

    def function_map(self) -> dict[str, Callable[..., R]]:
        """The functions by the names that a model calls them by."""
        return {function.__name__: function for function in self.functions()}

    def schemas(self) -> list[dict[str, JsonValue]]:
        """The functions as OpenAI tool schemas."""
        return [_schema(function, *_SCHEMAS[name]) for name, function in zip(self.only, self.functions(), strict=True)]

    def limited(self, only: Iterable[str]) -> "MemoryTools[R]":
        """The same functions, of which a model gets some."""
        wanted = check_only(only)
        return self if wanted == self.only else replace(self, only=wanted)


@overload
def memory_tools(
    memory: AgentMemory, *, only: Iterable[str] = TOOL_NAMES, prefix: str = "", timeout: float = 2.0
) -> MemoryTools[str]: ...
@overload
def memory_tools(
    memory: AsyncAgentMemory, *, only: Iterable[str] = TOOL_NAMES, prefix: str = "", timeout: float = 2.0
) -> MemoryTools[ToolCoroutine]: ...
def memory_tools(
    memory: AgentMemory | AsyncAgentMemory,
    *,
    only: Iterable[str] = TOOL_NAMES,
    prefix: str = "",
    timeout: float = 2.0,
) -> MemoryTools[str] | MemoryTools[ToolCoroutine]:
    """Make the tools for one agent's memory; awaitable ones from an `AsyncAgentMemory`.

    `only=["recall"]` makes some of them. `prefix` goes in front of the names, so that one team can hold several
    memories; a call never takes longer than `timeout` seconds. The functions never raise: a failing memory is answered
    in words and logged once.
    """
    check_memory(memory, "memory_tools")
    if isinstance(memory, AsyncAgentMemory):
        return awaitable_tools(lambda: memory, str(memory), prefix, timeout).limited(only)
    return _blocking_tools(memory, prefix, timeout).limited(only)


def _blocking_tools(memory: AgentMemory, prefix: str, timeout: float) -> MemoryTools[str]:
    inner, log, shown = memory.with_timeout(OWN_DEADLINE * timeout), LogOnce(str(memory)), ShownIds()

    def call(work: Callable[[AgentMemory], str], invented: Mapping[str, object]) -> str:
        try:
            if is_cold(inner.client):
                load_engine()  # before the deadline begins
            # Resolved here: the thread of a bounded call has not the caller's thread-local data.
            answer = bounded(partial(work, inner.resolved()), timeout)
        except Exception as error:  # noqa: BLE001 -- a tool that raises would end the agent's turn
            return failure_message(error, log)
        log.succeeded()
        return answer + _ignored(invented)

    def remember(
        content: Annotated[str, words.CONTENT] = "",
        memory_type: Annotated[str, words.TYPE] = "fact",
        tags: list[str] | None = None,
        ttl_days: int | None = None,
        key: Annotated[str | None, words.KEY] = None,
        **invented: object,
    ) -> str:
        def work(held: AgentMemory) -> str:
            options = as_extras(tags, ttl_days, key)
            return _stored(held.remember(as_text(content), as_type(memory_type), may_replace=True, **options), shown)

        return call(work, invented)

    def recall(
        query: Annotated[str, words.QUERY] = "",
        limit: Annotated[int, words.LIMIT] = 5,
        tags: list[str] | None = None,
        days: Annotated[int | None, words.DAYS] = None,
        **invented: object,
    ) -> str:
        def work(held: AgentMemory) -> str:
            asked = _question(query, limit, tags, days)
            hits = held.recall(asked.text, asked.limit, fill=asked.fill, **asked.filters)
            if asked.everything and len(hits) < asked.limit:
                hits = _with_newest(hits, list(islice(held.memories(**asked.filters), asked.limit)), asked.limit)
            return _listed(hits, shown)

        return call(work, invented)

    def forget(memory_id: Annotated[str, words.MEMORY_ID] = "", **invented: object) -> str:
        def work(held: AgentMemory) -> str:
            whole, beginning = shown.resolve(held.agent_id, as_text(memory_id))
            if beginning:
                memories = [one for one in held.memories() if one.id.startswith(beginning)]
                if len(memories) > 1:
                    return candidates(memories, beginning)
                whole = only_one(memories)
            held.forget(whole)
            return FORGOTTEN

        return call(work, invented)

    _name(prefix, remember, recall, forget)
    return MemoryTools(remember, recall, forget)


def awaitable_tools(
    memory: Callable[[], AsyncAgentMemory], subject: str, prefix: str, timeout: float
) -> MemoryTools[ToolCoroutine]:
    """The tools for a memory that is looked up at each call, for it may be closed and opened again."""
    log, shown = LogOnce(subject), ShownIds()

    async def call(work: Callable[[AsyncAgentMemory], Awaitable[str]], invented: Mapping[str, object]) -> str:
        try:
            inner = memory().with_timeout(OWN_DEADLINE * timeout)
        except Exception as error:  # noqa: BLE001 -- a tool that raises would end the agent's turn
            return failure_message(error, log)
        return await answered_async(inner.client, partial(work, inner), timeout, log) + _ignored(invented)

    async def remember(
        content: Annotated[str, words.CONTENT] = "",
        memory_type: Annotated[str, words.TYPE] = "fact",
        tags: list[str] | None = None,
        ttl_days: int | None = None,
        key: Annotated[str | None, words.KEY] = None,
        **invented: object,
    ) -> str:
        async def work(held: AsyncAgentMemory) -> str:
            options = as_extras(tags, ttl_days, key)
            made = await held.remember(as_text(content), as_type(memory_type), may_replace=True, **options)
            return _stored(made, shown)

        return await call(work, invented)

    async def recall(
        query: Annotated[str, words.QUERY] = "",
        limit: Annotated[int, words.LIMIT] = 5,
        tags: list[str] | None = None,
        days: Annotated[int | None, words.DAYS] = None,
        **invented: object,
    ) -> str:
        async def work(held: AsyncAgentMemory) -> str:
            asked = _question(query, limit, tags, days)
            hits = await held.recall(asked.text, asked.limit, fill=asked.fill, **asked.filters)
            if asked.everything and len(hits) < asked.limit:
                newest = await _first(held.memories(**asked.filters), asked.limit)
                hits = _with_newest(hits, newest, asked.limit)
            return _listed(hits, shown)

        return await call(work, invented)

    async def forget(memory_id: Annotated[str, words.MEMORY_ID] = "", **invented: object) -> str:
        async def work(held: AsyncAgentMemory) -> str:
            whole, beginning = shown.resolve(held.agent_id, as_text(memory_id))
            if beginning:
                memories = [one async for one in held.memories() if one.id.startswith(beginning)]
                if len(memories) > 1:
                    return candidates(memories, beginning)
                whole = only_one(memories)
            await held.forget(whole)
            return FORGOTTEN

        return await call(work, invented)

    _name(prefix, remember, recall, forget)
    return MemoryTools(remember, recall, forget)


# ── from and for a model ─────────────────────────────────────────────────────────────────────────────────────────

MIN_PROFILE = 10
"""Notes that "*" lists at least: five would be the standing ones alone."""
PROFILE_QUESTION = "What do you know about me?"
"""Answered by the profile: what a model means that asks for everything."""


class _Question(NamedTuple):
    """A recall as a model asks for it; `everything` stands for "*"."""

    text: str
    limit: int
    everything: bool
    filters: ReadFilters

    @property
    def fill(self) -> Fill:
        return "profile" if self.everything else False


def _question(query: object, limit: object, tags: object, days: object) -> _Question:
    text, most, filters = as_text(query), as_limit(limit), ReadFilters(tags=as_tags(tags))
    if (last := as_days(days)) is not None:
        filters["since"] = datetime.now(UTC) - timedelta(days=last)
    if asks_for_all(text):
        return _Question(PROFILE_QUESTION, max(most, MIN_PROFILE), True, filters)
    return _Question(text, most, False, filters)


async def _first(memories: AsyncIterator[Memory], limit: int) -> list[Memory]:
    """The first memories of a listing."""
    first: list[Memory] = []
    async for one in memories:
        first.append(one)
        if len(first) == limit:
            break
    if isinstance(memories, AsyncGenerator):
        await memories.aclose()
    return first


def _with_newest(hits: list[Hit], newest: list[Memory], limit: int) -> list[Hit]:
    """The profile, and the newest memories up to the limit."""
    known = {hit.memory.id for hit in hits}
    return [*hits, *(Hit(memory=one) for one in newest if one.id not in known)][:limit]


def _ignored(invented: Mapping[str, object]) -> str:
    names = ", ".join(label(name) for name in sorted(invented)[:5])
    return f" (Ignored, unknown here: {names}.)" if invented else ""


def _stored(memory: Memory, shown: ShownIds) -> str:
    shown.note([memory, *memory.may_replace])
    if memory.queued:
        return f"Queued, not yet stored: it will be saved when the service is back (id {_id(memory)})."
    former = "; ".join(f"{_id(one)}: {' '.join(legible(Hit(memory=one)).split())[:200]}" for one in memory.may_replace)
    answer = f"{'Already known' if memory.deduplicated else 'Stored'} (id {_id(memory)})."
    return f"{answer} It may replace {former}" if former else answer


def _listed(hits: list[Hit], shown: ShownIds) -> str:
    if not hits:
        return NOTHING
    shown.note(hit.memory for hit in hits)
    lines = zip(hits, described(hits), strict=True)
    return "\n".join([NOTICE, *(_line(number, hit, *one) for number, (hit, one) in enumerate(lines, 1))])


def _line(number: int, hit: Hit, labels: list[str], text: str) -> str:
    similarity = [] if hit.standing else [f"similarity {hit.similarity:.2f}"]
    details = ", ".join([*map(_label, [hit.memory.memory_type, *labels]), *similarity, f"id {_id(hit.memory)}"])
    return f"{number}. [{details}] {' '.join(text.split())}"


def _id(memory: Memory) -> str:
    return _label(short(memory.id))


def _label(text: str) -> str:
    # A bracket of its own could pretend that the text has begun.
    return label(text).translate(_ROUND)


# ── schemas ──────────────────────────────────────────────────────────────────────────────────────────────────────


_Part = tuple[dict[str, JsonValue], list[JsonValue]]
_SCHEMAS: dict[ToolName, _Part] = {
    "remember": (
        {
            "content": {"type": "string", "description": words.CONTENT},
            "memory_type": {"type": "string", "enum": list(words.TYPES), "default": "fact"},
            "key": {"type": "string", "description": words.KEY},
        },
        ["content"],
    ),
    "recall": (
        {
            "query": {"type": "string", "description": words.QUERY},
            "limit": {"type": "integer", "description": words.LIMIT, "default": 5},
            "days": {"type": "integer", "description": words.DAYS},
        },
        ["query"],
    ),
    "forget": ({"memory_id": {"type": "string", "description": words.MEMORY_ID}}, ["memory_id"]),
}
"""The parameters that a model is shown; Python callers may give tags and a lifetime too."""


def _schema(
    function: Callable[..., object], properties: dict[str, JsonValue], required: list[JsonValue]
) -> dict[str, JsonValue]:
    parameters: dict[str, JsonValue] = {"type": "object", "properties": properties, "required": required}
    described: JsonValue = {"name": function.__name__, "description": function.__doc__, "parameters": parameters}
    return {"type": "function", "function": described}


class _Text(str):
    """A description that equals only itself: typing hands out one shared object for equal annotations."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def _own(annotation: object) -> object:
    """The annotation as an object of its own: classic AutoGen writes into the one that it is given."""
    if not hasattr(annotation, "__metadata__"):
        return annotation
    inner, *texts = get_args(annotation)
    made: object = getitem(cast("Mapping[object, object]", Annotated), (inner, *map(_Text, texts)))
    return made


def _name(prefix: str, *functions: Callable[..., object]) -> None:
    for function, (name, shown) in zip(functions, tool_names(prefix).items(), strict=True):
        function.__name__ = function.__qualname__ = shown
        function.__doc__ = DESCRIPTIONS[name]
        function.__signature__ = _signature(function, *_SCHEMAS[name])  # type: ignore[attr-defined] # read by inspect
        given = function.__signature__.parameters.values()  # type: ignore[attr-defined] # set above
        function.__annotations__ = {one.name: one.annotation for one in given} | {"return": str}


def _signature(
    function: Callable[..., object], properties: Mapping[str, JsonValue], required: list[JsonValue]
) -> inspect.Signature:
    """The parameters that frameworks make a model's schema of; more may be given."""
    own = inspect.signature(function)
    empty = inspect.Parameter.empty
    shown = [
        one.replace(annotation=_own(one.annotation), default=empty if name in required else one.default)
        for name, one in own.parameters.items()
        if name in properties
    ]
    return own.replace(parameters=shown)
