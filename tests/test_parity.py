"""Both faces are one: the blocking one is generated, and bound methods are the client's own."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from inspect import Parameter
from pathlib import Path
from typing import Any, get_type_hints

import anyio
import pytest

import kronmem
from kronmem import AgentMemory, AsyncAgentMemory, AsyncClient, AsyncOutbox, AsyncState, Client, Hit, Outbox, State
from kronmem.core.inputs import ReadFilters, RecallOptions, WriteOptions

KEYWORD_ONLY = Parameter.KEYWORD_ONLY
ROOT = Path(__file__).parent.parent


def test_the_generated_files_are_current() -> None:
    script = ROOT / ".ci" / "blocking_faces.py"
    ran = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_a_blocking_face_awaits_nothing_and_says_that_it_is_generated() -> None:
    faces = [kind.__module__ for kind in (Client, AgentMemory, State, Outbox)]
    for text in ((ROOT / f"{name.replace('.', '/')}.py").read_text("utf-8") for name in faces):
        assert "generated" in "".join(text.splitlines()[:3])
        assert not [node for node in ast.walk(ast.parse(text)) if isinstance(node, AWAITING)]


AWAITING = (ast.Await, ast.AsyncFunctionDef, ast.AsyncWith, ast.AsyncFor)


def public(kind: type) -> dict[str, Any]:
    return {name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")}


def signature(found: Any) -> list[tuple[str, str, object, str]]:
    shape = inspect.signature(found.fget if isinstance(found, property) else found)
    parameters = [(p.name, p.kind.name, p.default, str(p.annotation)) for p in shape.parameters.values()]
    return [*parameters, ("return", "", None, str(shape.return_annotation))]


@pytest.mark.parametrize("kind", [AsyncClient, AsyncAgentMemory, AsyncState, AsyncOutbox])
def test_every_public_method_has_a_docstring(kind: type) -> None:
    assert not [name for name in public(kind) if not inspect.getdoc(getattr(kind, name))]


SCOPES = [(Client, AgentMemory), (AsyncClient, AsyncAgentMemory)]


@pytest.mark.parametrize(("client", "scope"), SCOPES)
def test_a_scope_has_the_clients_methods_without_the_agent_id(client: type, scope: type) -> None:
    for name in set(public(client)) & set(public(scope)) - {"with_timeout"}:
        ours = [part for part in signature(public(client)[name]) if part[0] != "agent_id"]
        assert ours == signature(public(scope)[name]), name


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
    assert len(kronmem.__all__) <= 28
    for name in {*kronmem.__all__, *kronmem._WHERE}:
        assert inspect.getdoc(getattr(kronmem, name)), name
    visible = {
        name for name in vars(kronmem) if not name.startswith("_") and not inspect.ismodule(getattr(kronmem, name))
    }
    assert visible == set(kronmem._WHERE)
