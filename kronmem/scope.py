"""A client bound to one agent, and to one session of it if given: the part that both AgentMemories share.

Their methods are the client's own without `agent_id`: signature, docstring and types are taken from there.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import TYPE_CHECKING, Concatenate, Generic, ParamSpec, Self, TypeAlias, TypeVar

from kronmem.async_client import AsyncClient
from kronmem.client import Client
from kronmem.core import inputs
from kronmem.errors import ConfigError, InvalidInputError

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", Client, AsyncClient)

AgentId: TypeAlias = "str | Callable[[], str]"
SessionId: TypeAlias = "str | Callable[[], str | None] | None"


class Scope(Generic[C]):
    """One agent and one session of it, or all. Callable ids are resolved at each call, in the caller's context.

    Resolving fails closed: a callable that raises or answers no valid id is an `InvalidInputError`, and nothing is
    read, stored or queued.
    """

    _takes: type[C]

    def __init__(self, client: C, agent_id: AgentId, *, session_id: SessionId = None) -> None:
        # An answer that nobody awaits is lost, and a blocking one cannot be awaited.
        if not isinstance(client, self._takes):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
            raise ConfigError(
                f"{type(self).__name__} takes one {self._takes.__name__}, not {type(client).__name__}: "
                "client.agent('my-agent') makes the memory that fits"
            )
        self._client: C = client
        self._agent_id = agent_id if callable(agent_id) else inputs.identifier(agent_id, "agent_id")
        self._session_id = session_id if callable(session_id) else inputs.session(session_id)

    @property
    def client(self) -> C:
        """The client that it is bound to."""
        return self._client

    @property
    def agent_id(self) -> str:
        """The owner of this memory; a callable is asked now."""
        return self._agent_id if isinstance(self._agent_id, str) else _resolve(self._agent_id, "agent_id")

    @property
    def session_id(self) -> str | None:
        """The session that everything is limited to, if any; a callable is asked now."""
        if not callable(self._session_id):
            return self._session_id
        return inputs.session(_ask(self._session_id, "session_id"))

    @property
    def fixed(self) -> bool:
        """Whether it is the same agent and session at every call: False with a callable id."""
        return not callable(self._agent_id) and not callable(self._session_id)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise inputs.no_attribute(self, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_shown(self._agent_id)}, session_id={_shown(self._session_id)})"

    def __str__(self) -> str:
        return "memory of the agent of each call" if callable(self._agent_id) else f"memory of {self._agent_id!r}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scope):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[object, ...]:
        """The same agent and session of the same store, in the same shell: one memory."""
        return type(self), self._agent_id, self._session_id, self._client.store

    def with_timeout(self, timeout: float) -> Self:
        """The same memory with another deadline."""
        other = copy.copy(self)
        other._client = self._client.with_timeout(timeout)
        return other

    def resolved(self) -> Self:
        """The same memory with callable ids asked now: for work that goes on in another thread or context."""
        other = copy.copy(self)
        other._agent_id, other._session_id = self.agent_id, self.session_id
        return other

    def _within(self, session_id: object) -> str | None:
        """A call may name a session only where none is bound."""
        bound = self.session_id
        if bound is None or session_id in (None, bound):
            return bound if bound is not None else session_id  # type: ignore[return-value] # checked by the call
        raise InvalidInputError("this memory is bound to another session")


def _resolve(ask: Callable[[], str], name: str) -> str:
    return inputs.identifier(_ask(ask, name), name)


def _ask(ask: Callable[[], R], name: str) -> R:
    try:
        return ask()
    except Exception as error:  # the callable is the user's, and may say in any way that there is no user
        raise InvalidInputError(f"{name} could not be resolved: its callable raised {type(error).__name__}") from error


def _shown(given: object) -> str:
    return "<callable>" if callable(given) else repr(given)


# ── methods of a client as methods of a scope ────────────────────────────────────────────────────────────────────


class _Face:
    """The signature of a client's method without `agent_id`, and the arguments as that method wants them."""

    def __init__(self, method: Callable[..., object]) -> None:
        whole = inspect.signature(method)
        self._signature = whole.replace(parameters=[one for one in whole.parameters.values() if one.name != "agent_id"])
        self._name = method.__qualname__.replace("Client", "AgentMemory")
        self._has_session = "session_id" in whole.parameters
        self._of_all_sessions = method.__name__ == "erase"
        self._method = method

    def put_on(self, bound: Callable[..., object]) -> None:
        """Show the client's docstring and parameters on the scope's method."""
        update_wrapper(bound, self._method)
        bound.__qualname__ = self._name
        bound.__annotations__ = {name: kind for name, kind in bound.__annotations__.items() if name != "agent_id"}
        bound.__signature__ = self._signature  # type: ignore[attr-defined] # read by inspect

    def limit(self, scope: Scope[C], options: dict[str, object]) -> str:
        """Put the bound session among the arguments; the answer is the agent of this call."""
        if self._has_session:
            options["session_id"] = scope._within(options.get("session_id"))  # pyright: ignore[reportPrivateUsage] -- its own face
        elif self._of_all_sessions and scope.session_id is not None:
            raise InvalidInputError(
                "erase removes every session of the agent, and this memory is bound to one: clear() deletes that one, "
                "client.erase(agent_id) all of them"
            )
        return scope.agent_id

    def check(self, *args: object, **options: object) -> None:
        """Blame arguments that do not fit on the method that was called, not on the one behind it."""
        try:
            self._signature.bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{self._name}() {error}") from None


def bind(method: Callable[Concatenate[C, str, P], R]) -> Callable[Concatenate[Scope[C], P], R]:
    """Make a method of a client one of its scope."""
    face, name = _Face(method), method.__name__

    def bound(self: Scope[C], /, *args: P.args, **options: P.kwargs) -> R:
        # By name: the client may be of a class that overrides the method.
        call: Callable[Concatenate[str, P], R] = getattr(self._client, name)  # pyright: ignore[reportPrivateUsage] -- its own method
        agent_id = face.limit(self, options)
        try:
            return call(agent_id, *args, **options)
        except TypeError:
            face.check(self, *args, **options)
            raise

    face.put_on(bound)
    return bound


def bind_async(
    method: Callable[Concatenate[AsyncClient, str, P], Coroutine[object, object, R]],
) -> Callable[Concatenate[Scope[AsyncClient], P], Coroutine[object, object, R]]:
    """Make a coroutine method of a client one of its scope."""
    call = bind(method)

    async def bound(self: Scope[AsyncClient], /, *args: P.args, **options: P.kwargs) -> R:
        return await call(self, *args, **options)

    update_wrapper(bound, call)
    return bound
