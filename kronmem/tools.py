"""remember, recall and forget as plain annotated functions that any framework can hand to a model.

They never raise, coerce the arguments of a model, and answer in words it can use. Annotations are real objects here,
not strings, and the functions are plain nested ones: AutoGen accepts nothing else in every version.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from operator import getitem
from typing import Annotated, Generic, Protocol, TypeVar, cast, get_args, overload

from pydantic import JsonValue

from kronmem.agent_memory import AgentMemory
from kronmem.async_agent_memory import AsyncAgentMemory
from kronmem.models import Hit, Memory
from kronmem.packs.bounded_call import bounded
from kronmem.packs.checks import check_memory
from kronmem.packs.log_once import LogOnce
from kronmem.packs.tool_arguments import as_extras, as_limit, as_tags, as_text, as_type
from kronmem.packs.tool_call import OWN_DEADLINE, answered_async, failure_message
from kronmem.packs.tool_descriptions import (
    CONTENT,
    DESCRIPTIONS,
    KEY,
    LIMIT,
    MEMORY_ID,
    QUERY,
    TAGS,
    TTL,
    TYPE,
    ToolCoroutine,
    tool_names,
)
from kronmem.packs.warmup import is_cold, load_engine
from kronmem.text.fence import NOTICE, described, label

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

    def __call__(self, query: str, limit: int = 5, tags: list[str] | None = None) -> R_co:
        """Answer in words for a model."""
        ...


class ForgetFunction(Protocol[R_co]):
    """Delete one memory."""

    def __call__(self, memory_id: str) -> R_co:
        """Answer in words for a model."""
        ...


@dataclass(frozen=True)
class MemoryTools(Generic[R]):
    """Three functions for a model; `schemas()` and `function_map()` serve code that registers them by hand."""

    remember: RememberFunction[R]
    recall: RecallFunction[R]
    forget: ForgetFunction[R]

    def functions(self) -> list[Callable[..., R]]:
        """The functions, in the order of their use."""
        return [self.remember, self.recall, self.forget]

    def function_map(self) -> dict[str, Callable[..., R]]:
        """The functions by the names that a model calls them by."""
        return {function.__name__: function for function in self.functions()}

    def schemas(self) -> list[dict[str, JsonValue]]:
        """The functions as OpenAI tool schemas."""
        parts = (_REMEMBER_SCHEMA, _RECALL_SCHEMA, _FORGET_SCHEMA)
        return [_schema(function, *part) for function, part in zip(self.functions(), parts, strict=True)]


@overload
def memory_tools(memory: AgentMemory, prefix: str = "", timeout: float = 2.0) -> MemoryTools[str]: ...
@overload
def memory_tools(memory: AsyncAgentMemory, prefix: str = "", timeout: float = 2.0) -> MemoryTools[ToolCoroutine]: ...
def memory_tools(
    memory: AgentMemory | AsyncAgentMemory, prefix: str = "", timeout: float = 2.0
) -> MemoryTools[str] | MemoryTools[ToolCoroutine]:
    """Make the tools for one agent's memory; awaitable ones from an `AsyncAgentMemory`.

    `prefix` goes in front of the names, so that one team can hold several memories; a call never takes longer than
    `timeout` seconds. The functions never raise: a failing memory is answered in words and logged once.
    """
    check_memory(memory, "memory_tools")
    if isinstance(memory, AsyncAgentMemory):
        return awaitable_tools(lambda: memory, str(memory), prefix, timeout)
    return _blocking_tools(memory, prefix, timeout)


def _blocking_tools(memory: AgentMemory, prefix: str, timeout: float) -> MemoryTools[str]:
    inner, log = memory.with_timeout(OWN_DEADLINE * timeout), LogOnce(str(memory))

    def call(work: Callable[[AgentMemory], str]) -> str:
        try:
            if is_cold(inner.client):
                load_engine()  # before the deadline begins
            # Resolved here: the thread of a bounded call has not the caller's thread-local data.
            answer = bounded(partial(work, inner.resolved()), timeout)
        except Exception as error:  # noqa: BLE001 -- a tool that raises would end the agent's turn
            return failure_message(error, log)
        log.succeeded()
        return answer

    def remember(
        content: Annotated[str, CONTENT],
        memory_type: Annotated[str, TYPE] = "fact",
        tags: Annotated[list[str] | None, TAGS] = None,
        ttl_days: Annotated[int | None, TTL] = None,
        key: Annotated[str | None, KEY] = None,
    ) -> str:
        def work(held: AgentMemory) -> str:
            return _stored(held.remember(as_text(content), as_type(memory_type), **as_extras(tags, ttl_days, key)))

        return call(work)

    def recall(
        query: Annotated[str, QUERY],
        limit: Annotated[int, LIMIT] = 5,
        tags: Annotated[list[str] | None, TAGS] = None,
    ) -> str:
        return call(lambda held: _listed(held.recall(as_text(query), as_limit(limit), tags=as_tags(tags))))

    def forget(memory_id: Annotated[str, MEMORY_ID]) -> str:
        def work(held: AgentMemory) -> str:
            held.forget(as_text(memory_id).strip())
            return FORGOTTEN

        return call(work)

    _name(prefix, remember, recall, forget)
    return MemoryTools(remember, recall, forget)


def awaitable_tools(
    memory: Callable[[], AsyncAgentMemory], subject: str, prefix: str, timeout: float
) -> MemoryTools[ToolCoroutine]:
    """The tools for a memory that is looked up at each call, for it may be closed and opened anew."""
    log = LogOnce(subject)

    async def call(work: Callable[[AsyncAgentMemory], Awaitable[str]]) -> str:
        try:
            inner = memory().with_timeout(OWN_DEADLINE * timeout)
        except Exception as error:  # noqa: BLE001 -- a tool that raises would end the agent's turn
            return failure_message(error, log)
        return await answered_async(inner.client, partial(work, inner), timeout, log)

    async def remember(
        content: Annotated[str, CONTENT],
        memory_type: Annotated[str, TYPE] = "fact",
        tags: Annotated[list[str] | None, TAGS] = None,
        ttl_days: Annotated[int | None, TTL] = None,
        key: Annotated[str | None, KEY] = None,
    ) -> str:
        async def work(held: AsyncAgentMemory) -> str:
            return _stored(
                await held.remember(as_text(content), as_type(memory_type), **as_extras(tags, ttl_days, key))
            )

        return await call(work)

    async def recall(
        query: Annotated[str, QUERY],
        limit: Annotated[int, LIMIT] = 5,
        tags: Annotated[list[str] | None, TAGS] = None,
    ) -> str:
        async def work(held: AsyncAgentMemory) -> str:
            return _listed(await held.recall(as_text(query), as_limit(limit), tags=as_tags(tags)))

        return await call(work)

    async def forget(memory_id: Annotated[str, MEMORY_ID]) -> str:
        async def work(held: AsyncAgentMemory) -> str:
            await held.forget(as_text(memory_id).strip())
            return FORGOTTEN

        return await call(work)

    _name(prefix, remember, recall, forget)
    return MemoryTools(remember, recall, forget)


# ── answers to a model ───────────────────────────────────────────────────────────────────────────────────────────


def _stored(memory: Memory) -> str:
    if memory.queued:
        return f"Queued, not yet stored: it will be saved when the service is back (id {_label(memory.id)})."
    return f"{'Already known' if memory.deduplicated else 'Stored'} (id {_label(memory.id)})."


def _listed(hits: list[Hit]) -> str:
    if not hits:
        return NOTHING
    shown = zip(hits, described(hits), strict=True)
    return "\n".join([NOTICE, *(_line(number, hit, *one) for number, (hit, one) in enumerate(shown, 1))])


def _line(number: int, hit: Hit, labels: list[str], text: str) -> str:
    similarity = [] if hit.standing else [f"similarity {hit.similarity:.2f}"]
    told = ", ".join([*map(_label, labels), *similarity, f"id {_label(hit.memory.id)}"])
    return f"{number}. [{told}] {' '.join(text.split())}"


def _label(text: str) -> str:
    # A bracket of its own could pretend that the text has begun.
    return label(text).translate(_ROUND)


# ── schemas ──────────────────────────────────────────────────────────────────────────────────────────────────────


_LIST: dict[str, JsonValue] = {"type": "array", "items": {"type": "string"}, "description": TAGS}
_Part = tuple[dict[str, JsonValue], list[JsonValue]]
_REMEMBER_SCHEMA: _Part = (
    {
        "content": {"type": "string", "description": CONTENT},
        "memory_type": {"type": "string", "description": TYPE, "default": "fact"},
        "tags": _LIST,
        "ttl_days": {"type": "integer", "description": TTL},
        "key": {"type": "string", "description": KEY},
    },
    ["content"],
)
_RECALL_SCHEMA: _Part = (
    {
        "query": {"type": "string", "description": QUERY},
        "limit": {"type": "integer", "description": LIMIT, "default": 5},
        "tags": _LIST,
    },
    ["query"],
)
_FORGET_SCHEMA: _Part = ({"memory_id": {"type": "string", "description": MEMORY_ID}}, ["memory_id"])


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
        function.__annotations__ = {at: _own(kind) for at, kind in function.__annotations__.items()}
