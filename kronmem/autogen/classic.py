"""The one import of AutoGen: its names, how to install them when they are missing, and the wrapping of methods.

Several distributions own the directory `autogen/`, and the newest versions of some no longer ship it; pip notices
neither. Everything else about AutoGen is duck typed, so that one pack serves all versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, ExitStack
from functools import update_wrapper
from importlib import metadata
from typing import Any, TypeAlias

__all__ = [
    "Agent",
    "ConversableAgent",
    "GroupChat",
    "GroupChatManager",
    "Manager",
    "Team",
    "Wrapped",
    "group_of",
    "members",
    "register_function",
    "wrap",
]


FIX = 'pip install "autogen[openai]>=0.14.1,<1"'
REPAIR = f"pip uninstall -y ag2 pyautogen autogen && {FIX}"


def installed(distribution: str) -> str | None:
    """The version of a distribution, None when it is not there."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def explain(error: ImportError, version: Callable[[str], str | None] = installed) -> str:
    """The fault of this installation, and the command that repairs it."""
    if not isinstance(error, ModuleNotFoundError) or error.name != "autogen":
        return (
            "the 'autogen' package is damaged, or too old to have register_function: several distributions share its "
            f"directory, and removing one breaks the others ({error}). Run: {REPAIR}"
        )
    for name in ("pyautogen", "ag2"):
        if release := version(name):
            return f"classic AutoGen is not installed: {name} {release} no longer ships `import autogen`. Run: {FIX}"
    return 'classic AutoGen (`import autogen`) is not installed. Run: pip install "kronmem[autogen]"'


try:
    from autogen import Agent, ConversableAgent, GroupChat, GroupChatManager, register_function
except ImportError as error:
    raise ImportError(explain(error)) from error

Team: TypeAlias = "Agent | GroupChat | Iterable[Team]"


def group_of(team: object) -> GroupChat | None:
    """The group chat that this is, or that this manager runs."""
    chat = getattr(team, "groupchat", team)
    return chat if isinstance(chat, GroupChat) else None


def members(team: Team) -> list[ConversableAgent]:
    """The agents of a team, each once; never a manager, which only passes on messages."""
    return list(dict.fromkeys(_walk(team, set())))


def _walk(team: Team, seen: set[int]) -> Iterator[ConversableAgent]:
    if id(team) in seen:
        return
    seen.add(id(team))
    group = group_of(team)
    if group is None and isinstance(team, ConversableAgent):
        yield team
        return
    inner = team if group is None else group.agents
    if not isinstance(inner, Iterable):
        raise TypeError(f"expected agents, a GroupChat or a GroupChatManager, not {type(team).__name__}")
    for one in inner:
        yield from _walk(one, seen)


# Context managers around the methods of one agent: AutoGen has no hook that is awaited, and none after a message.
#
# They are put on the instance, as AutoGen's own instrumentation does, and leave nothing behind when they are removed.

Manager: TypeAlias = "Callable[..., AbstractContextManager[object] | AbstractAsyncContextManager[object]]"
"""Makes a context manager from the arguments of the call; an async one around methods that begin with `a_`."""


class Wrapped:
    """A method of one agent with the managers around it; the managers must not raise."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.managers: list[Manager] = []

    def call(self, *args: Any, **options: Any) -> Any:
        """Call the method within the managers, in the order in which they were added."""
        with ExitStack() as stack:
            for manager in list(self.managers):
                stack.enter_context(manager(*args, **options))  # type: ignore[arg-type] # blocking around blocking ones
            return self.method(*args, **options)

    async def acall(self, *args: Any, **options: Any) -> Any:
        """The same, awaited."""
        async with AsyncExitStack() as stack:
            for manager in list(self.managers):
                await stack.enter_async_context(manager(*args, **options))  # type: ignore[arg-type] # async around async ones
            return await self.method(*args, **options)


def wrap(agent: Agent, name: str, manager: Manager, *, first: bool = False) -> Callable[[], None]:
    """Put a manager around a method of an agent, before or after the others; the answer takes it away again."""
    wrapped = _wrapped(vars(agent).get(name))
    if wrapped is None:
        wrapped = Wrapped(getattr(agent, name))
        setattr(agent, name, _function(wrapped, name))
    wrapped.managers.insert(0 if first else len(wrapped.managers), manager)

    def unwrap() -> None:
        if manager in wrapped.managers:
            wrapped.managers.remove(manager)
        # Somebody else may have wrapped the method since: then the empty shell stays and only passes calls on.
        if not wrapped.managers and _wrapped(vars(agent).get(name)) is wrapped:
            delattr(agent, name)

    return unwrap


def _function(wrapped: Wrapped, name: str) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        return wrapped.call(*args, **options)

    async def acall(*args: Any, **options: Any) -> Any:
        return await wrapped.acall(*args, **options)

    made: Callable[..., Any] = acall if name.startswith("a_") else call
    update_wrapper(made, wrapped.method)
    made.kronmem_wrapped = wrapped  # type: ignore[attr-defined] # found again by `_wrapped`
    return made


def _wrapped(function: object) -> Wrapped | None:
    inner = getattr(function, "kronmem_wrapped", None)
    return inner if isinstance(inner, Wrapped) else None
