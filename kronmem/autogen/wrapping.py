"""Context managers around the methods of one agent: AutoGen has no hook that is awaited, and none after a message.

They are put on the instance, as AutoGen's own instrumentation does, and leave nothing behind when they are removed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, ExitStack
from functools import update_wrapper
from typing import Any, TypeAlias

from kronmem.autogen.classic import Agent

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


def _wrapped(found: object) -> Wrapped | None:
    inner = getattr(found, "kronmem_wrapped", None)
    return inner if isinstance(inner, Wrapped) else None
