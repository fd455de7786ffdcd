"""Both shells are one: same names, parameters, defaults, kinds and docstrings."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import kronmem
from kronmem import AgentMemory, AsyncAgentMemory, AsyncClient, AsyncOutbox, AsyncState, Client, Outbox, State

PAIRS = [(Client, AsyncClient), (AgentMemory, AsyncAgentMemory), (State, AsyncState), (Outbox, AsyncOutbox)]
# On AsyncClient these return something whose methods are awaited, or an async iterator; they do no I/O themselves.
PLAIN = {"agent", "state", "with_timeout", "memories", "local", "outbox"}
RENAMED = {
    "Client": "AsyncClient",
    "AgentMemory": "AsyncAgentMemory",
    "State": "AsyncState",
    "Iterator": "AsyncIterator",
}
RENAMED |= {"Transport": "AsyncTransport", "Outbox": "AsyncOutbox"}


def public(kind: type) -> dict[str, Any]:
    return {name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")}


def signature(found: Any) -> list[tuple[str, str, object, str]]:
    if isinstance(found, property):
        found = found.fget
    found = getattr(found, "__func__", found)
    shape = inspect.signature(found)
    parameters = [(p.name, p.kind.name, p.default, plain(str(p.annotation))) for p in shape.parameters.values()]
    return [*parameters, ("return", "", None, plain(str(shape.return_annotation)))]


def plain(annotation: str) -> str:
    for blocking, awaiting in RENAMED.items():
        annotation = annotation.replace(awaiting, blocking)
    return annotation


@pytest.mark.parametrize(("blocking", "awaiting"), PAIRS, ids=lambda kind: kind.__name__)
def test_the_shells_have_the_same_face(blocking: type, awaiting: type) -> None:
    ours, theirs = public(blocking), public(awaiting)
    assert list(ours) == list(theirs)
    for name in ours:
        assert signature(ours[name]) == signature(theirs[name]), name
        assert inspect.getdoc(getattr(blocking, name)) == inspect.getdoc(getattr(awaiting, name)), name
        assert inspect.getdoc(getattr(blocking, name)), f"{name} has no docstring"
        awaited = inspect.iscoroutinefunction(theirs[name])
        assert awaited == (inspect.isfunction(ours[name]) and name not in PLAIN), name
    assert signature(vars(blocking)["__init__"]) == signature(vars(awaiting)["__init__"])


@pytest.mark.parametrize(("client", "scope"), [(Client, AgentMemory), (AsyncClient, AsyncAgentMemory)])
def test_a_scope_has_the_clients_methods_without_the_agent_id(client: type, scope: type) -> None:
    for name in set(public(client)) & set(public(scope)) - {"with_timeout"}:
        ours = [part for part in signature(public(client)[name]) if part[0] != "agent_id"]
        assert ours == signature(public(scope)[name]), name


def test_every_public_name_is_listed_documented_and_importable() -> None:
    assert sorted(kronmem.__all__) == list(kronmem.__all__)
    for name in kronmem.__all__:
        assert inspect.getdoc(getattr(kronmem, name)), name
    visible = {
        name for name in vars(kronmem) if not name.startswith("_") and not inspect.ismodule(getattr(kronmem, name))
    }
    assert visible == set(kronmem.__all__)


def test_the_parity_test_would_notice_one_default() -> None:
    def one(self: object, limit: int = 5) -> None: ...
    def other(self: object, limit: int = 6) -> None: ...

    assert signature(one) != signature(other)
