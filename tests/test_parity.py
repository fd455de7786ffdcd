"""Both shells are one: same names, parameters, defaults, kinds and docstrings."""

from __future__ import annotations

import inspect
from inspect import Parameter
from typing import Any, get_type_hints

import anyio
import pytest

import kronmem
from kronmem import AgentMemory, AsyncAgentMemory, AsyncClient, AsyncOutbox, AsyncState, Client, Hit, Outbox, State
from kronmem.core.options import ReadFilters, RecallOptions, WriteOptions

KEYWORD_ONLY = Parameter.KEYWORD_ONLY

PAIRS = [(Client, AsyncClient), (AgentMemory, AsyncAgentMemory), (State, AsyncState), (Outbox, AsyncOutbox)]
# On AsyncClient these return something whose methods are awaited, or an async iterator; they do no I/O themselves.
PLAIN = {"agent", "state", "with_timeout", "resolved", "memories", "local", "outbox"}
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
    assert signature(inspect.getattr_static(blocking, "__init__")) == signature(
        inspect.getattr_static(awaiting, "__init__")
    )


@pytest.mark.parametrize(("client", "scope"), [(Client, AgentMemory), (AsyncClient, AsyncAgentMemory)])
def test_a_scope_has_the_clients_methods_without_the_agent_id(client: type, scope: type) -> None:
    for name in set(public(client)) & set(public(scope)) - {"with_timeout"}:
        ours = [part for part in signature(public(client)[name]) if part[0] != "agent_id"]
        assert ours == signature(public(scope)[name]), name


SCOPES = [(Client, AgentMemory), (AsyncClient, AsyncAgentMemory)]


@pytest.mark.parametrize(("client", "scope"), SCOPES)
def test_a_scope_shows_real_parameters_and_the_clients_docstring(client: type, scope: type) -> None:
    shown = inspect.signature(vars(scope)["remember"])
    assert list(shown.parameters)[:3] == ["self", "content", "memory_type"]
    assert not any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in shown.parameters.values())
    hints = get_type_hints(vars(scope)["recall"])
    assert (hints["query"], hints["limit"], hints["return"]) == (str, int, list[Hit])
    assert "agent_id" not in hints
    assert inspect.getdoc(vars(scope)["recall"]) == inspect.getdoc(vars(client)["recall"])


@pytest.mark.parametrize(("client", "scope"), SCOPES)
@pytest.mark.parametrize(
    ("method", "args", "options"),
    [
        ("remember", ("text",), {"tagz": ["x"]}),
        ("remember", (), {}),
        ("recall", ("question", 5, 6), {}),
        ("recall", ("question",), {"agent_id": "bob"}),
        ("forget", (), {"memory": "m1"}),
    ],
)
def test_wrong_arguments_are_blamed_on_the_method_that_was_called(
    client: Any, scope: type, method: str, args: Any, options: Any
) -> None:
    with pytest.raises(TypeError) as caught:
        called = getattr(client("http://127.0.0.1:9").agent("ada"), method)(*args, **options)
        anyio.run(lambda: called)
    assert str(caught.value).startswith(f"{scope.__name__}.{method}() ")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_type_error_of_somebody_elses_code_is_left_as_it_is() -> None:
    def redact(text: str) -> str:
        raise TypeError("of the redaction")

    with Client("sqlite://", redact=redact) as client:
        with pytest.raises(TypeError, match=r"^of the redaction$"):
            client.agent("ada").recall("question")


@pytest.mark.parametrize(("client", "scope"), SCOPES)
def test_scopes_and_wiring_know_every_option_of_the_client(client: type, scope: type) -> None:
    keywords = {
        name: {
            one.name for one in inspect.signature(vars(client)[name]).parameters.values() if one.kind is KEYWORD_ONLY
        }
        for name in ("remember", "remember_later", "remember_many", "recall", "inject_context", "memories")
    }
    writes, reads = set(WriteOptions.__annotations__), set(ReadFilters.__annotations__)
    assert keywords["remember_later"] == writes | {"memory_id", "supersedes"} == keywords["remember"] - {"may_replace"}
    assert keywords["remember_many"] == writes
    assert keywords["recall"] == reads | {"threshold", "count_access", "exclude", "fill"}
    assert keywords["recall"] == reads | set(RecallOptions.__annotations__)
    assert keywords["inject_context"] == reads | {"max_chars", "exclude", "fill"}
    assert keywords["memories"] == reads | {"history"}


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
