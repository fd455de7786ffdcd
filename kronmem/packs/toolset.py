"""The memory tools as models know them: names and descriptions, arguments put right, answers that never raise."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Annotated, Literal, TypeAlias, TypedDict, TypeVar, get_args, get_origin

from pydantic import Field

from kronmem.api import rules
from kronmem.async_client import AsyncClient
from kronmem.core import inputs
from kronmem.errors import InvalidInputError, NotFoundError, UnsupportedError
from kronmem.packs.checks import check_prefix
from kronmem.packs.deadlines import LogOnce, bounded_async, load_engine_for

MAX_LIMIT = 20
"""The most hits that a service answers; a model that asks for more gets these."""
MAX_DAYS = 36_500
"""A date further back may lie before the calendar begins."""
EVERYTHING = frozenset(("", "*", "all", "any", "everything", "all memories", "all notes", "alles", "tout", "todo"))


class Extras(TypedDict):
    """The optional arguments of remember, as the client takes them."""

    tags: tuple[str, ...]
    ttl_days: int | None
    key: str | None


def as_text(value: object) -> str:
    if value is None:
        return ""  # which is refused in words
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def as_type(value: object) -> str:
    return (value.strip().lower() if isinstance(value, str) else "") or "fact"


def as_limit(value: object) -> int:
    return min(MAX_LIMIT, max(1, _number(value) or 5))


def as_days(value: object) -> int | None:
    """How many days back, at least one."""
    days = _number(value)
    return None if days is None else min(MAX_DAYS, max(1, days))


def asks_for_all(query: str) -> bool:
    """Whether a query asks for the memory as a whole: "*", "" and "everything"."""
    return query.strip(" .!?\"'").casefold() in EVERYTHING


def as_tags(value: object) -> tuple[str, ...]:
    """Models send a list, a JSON list as text, or words with commas."""
    if isinstance(value, str):
        value = _loaded(value)
    parts: list[object] = list(value) if isinstance(value, (list, tuple)) else [value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] -- from a model
    return tuple(tag for tag in (str(part).strip() for part in parts if part is not None) if tag)


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.split(",")


def as_extras(tags: object, ttl_days: object, key: object) -> Extras:
    days = _number(ttl_days)
    lifetime = None if not days or days < 1 else min(days, 3650)
    return {"tags": as_tags(tags), "ttl_days": lifetime, "key": None if key is None else as_text(key).strip() or None}


def _number(value: object) -> int | None:
    try:
        return None if value is None else int(float(str(value)))
    except (ValueError, OverflowError):
        return None


# The words by which a model knows the memory tools: names, descriptions, parameters.

ToolCoroutine: TypeAlias = Coroutine[object, object, str]
"""The call of an awaitable tool."""
ToolName = Literal["remember", "recall", "forget"]

TOOL_NAMES: tuple[ToolName, ...] = ("remember", "recall", "forget")
DESCRIPTIONS: dict[ToolName, str] = {
    "remember": "Store a fact, preference or decision as soon as the user states it, for later conversations. "
    'One a call, with a name instead of "I". No small talk, no guesses.',
    "recall": "Search notes of earlier conversations, before you say that you do not know. "
    '"*" lists the most important ones.',
    "forget": "Delete a note that is wrong or that the user wants gone.",
}
CONTENT = 'One sentence that can be understood alone: "Ada is vegan"'
TYPES = rules.MEMORY_TYPES
TYPE = ", ".join(TYPES[:-1]) + f" or {TYPES[-1]}"
KEY = (
    'What it is about, if that has one value at a time ("home_city", "launch_date"): '
    "the note takes the place of the one with this key"
)
QUERY = "The subject, in plain words"
LIMIT = "At most so many, 1 to 20"
DAYS = "Only notes of the last so many days"
MEMORY_ID = "The id that recall shows"
UNAVAILABLE = "Memory is unavailable right now; continue without it."


def tool_names(prefix: str) -> dict[ToolName, str]:
    """The names that a model calls the tools by; `InvalidInputError` for a prefix that no tool may have."""
    check_prefix(prefix)
    return {name: f"{prefix}{name}" for name in TOOL_NAMES}


def check_only(only: Iterable[str]) -> tuple[ToolName, ...]:
    """Accept some of the tools by name, in the order of their use."""
    wanted = list(inputs.strings(only, "only", of="names of tools"))
    if not wanted or set(wanted) - set(TOOL_NAMES):
        raise InvalidInputError(f"only must name one or more of remember, recall and forget, not {wanted!r:.80}")
    return tuple(name for name in TOOL_NAMES if name in wanted)


def check_tools(tools: bool | Iterable[str]) -> tuple[ToolName, ...]:
    """Accept the `tools=` of a provider or plugin: all, none, or some by name."""
    if isinstance(tools, bool):
        return TOOL_NAMES if tools else ()
    return check_only(tools)


# The manners of a tool: it never raises, ends by its deadline, and describes a failure to the model in words.

OWN_DEADLINE = 0.8
"""The share of a tool's time that the call itself may take: the rest is left for queueing a memory in time."""


async def answered_async(client: AsyncClient, work: Callable[[], Awaitable[str]], timeout: float, log: LogOnce) -> str:
    """The answer of `work`, or words about its failure; a failing memory is logged once. Cancellation goes on."""
    try:
        await load_engine_for(client)  # before the deadline begins
        answer = await bounded_async(work, timeout)
    except Exception as error:  # noqa: BLE001 -- a tool that raises would end the agent's turn
        return failure_message(error, log)
    log.succeeded()
    return answer


def failure_message(error: Exception, log: LogOnce) -> str:
    """Words for a model: its own mistakes by name, everything else as an outage, which is logged."""
    if isinstance(error, NotFoundError):
        return "There is no memory with that id."
    if isinstance(error, (InvalidInputError, UnsupportedError)):
        return f"Not done: {error}."
    log.failed(error)
    return UNAVAILABLE


# Tool parameters described by pydantic's `Field`: AG2 1.x and MCP read nothing else.
#
# Both AutoGens refuse `Field`, so `memory_tools` describes its parameters by plain text in `Annotated`.

F = TypeVar("F", bound=Callable[..., object])


def with_fields(function: F) -> F:
    """Rewrite the annotations of a function of our own: a text becomes `Field(description=text)`."""
    # Read as they are: before Python 3.11, get_type_hints wraps a parameter that is None by default once more.
    function.__annotations__ = {name: _described(hint) for name, hint in function.__annotations__.items()}
    signature = inspect.signature(function)
    parameters = [one.replace(annotation=_described(one.annotation)) for one in signature.parameters.values()]
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined] # read by inspect
    return function


def _described(hint: object) -> object:
    if get_origin(hint) is not Annotated:
        return hint
    kind, text = get_args(hint)
    return Annotated[kind, Field(description=text)]
