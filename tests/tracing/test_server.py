"""The server's spans: the client's trace goes on through the request to the engine."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from kronmem import Client
from kronmem.server.app import create_app
from kronmem.server.guard import ServedRequest
from kronmem.transport.local import sqlite_service
from tests.conftest import unused
from tests.shells import shell
from tests.tracing.recorder import STORE, Recorder, attributes, names, path

TRACER = trace.get_tracer("test")
AGENT = "/api/v1/agents/{agent_id}"


def servers(spans: list[ReadableSpan]) -> list[ReadableSpan]:
    return [one for one in spans if one.kind is SpanKind.SERVER]


def test_one_tree_from_the_callers_turn_to_the_store(kind: str, home: str, recorder: Recorder) -> None:
    with shell(kind, home, api_key=next(unused), outbox=False) as client:
        client.recall("ada lovelace", "tea")
        spans = recorder.wait(lambda spans: len(servers(spans)) == 1)
    engine = next(one for one in spans if one.kind is SpanKind.INTERNAL)
    assert path(engine, spans) == ["search_memory", f"POST {AGENT}/recall", "search_memory"]
    assert {one.context.trace_id for one in spans} == {engine.context.trace_id}
    assert attributes(engine) == {"gen_ai.operation.name": "search_memory", STORE: "ada lovelace"}
    (server,) = servers(spans)
    assert attributes(server) == {
        "http.request.method": "POST",
        "http.route": f"{AGENT}/recall",
        "http.response.status_code": 200,
        "url.scheme": "http",
    }
    assert server.status.status_code is StatusCode.UNSET


CALLS: list[tuple[str, str, dict[str, Any], str, str | None]] = [
    ("POST", "/api/v1/agents/ada/remember", {"content": "tea"}, f"POST {AGENT}/remember", "create_memory"),
    ("POST", "/api/v1/agents/ada/memories/upsert", {"content": "t", "metadata": {}}, f"POST {AGENT}/memories/upsert", "upsert_memory"),
    ("GET", "/api/v1/agents/ada/memories?search=private", {}, f"GET {AGENT}/memories", "search_memory"),
    ("DELETE", "/api/v1/agents/ada/memories", {}, f"DELETE {AGENT}/memories", "delete_memory"),
    ("POST", "/api/v1/agents/ada/erase", {}, f"POST {AGENT}/erase", "delete_memory_store"),
    ("GET", "/api/v1/agents/ada/state/private", {}, f"GET {AGENT}/state/{{key}}", None),
    ("GET", "/api/v1/agents", {}, "GET /api/v1/agents", None),
    ("GET", "/health", {}, "GET /health", None),
    ("GET", "/v1/memory/recall?q=private", {}, "GET /v1/memory/recall", "search_memory"),
    ("GET", "/nowhere/private", {}, "GET", None),
    ("BREW", "/health", {}, "_OTHER", None),
]  # fmt: skip


@pytest.mark.parametrize(("method", "url", "body", "name", "operation"), CALLS)
def test_a_request_is_named_by_its_route(
    method: str, url: str, body: dict[str, Any], name: str, operation: str | None, home: str, recorder: Recorder
) -> None:
    headers = {"x-api-key": next(unused), "authorization": f"Bearer {next(unused)}"}
    httpx.request(method, home + url, json=body, headers=headers, trust_env=False, timeout=60)
    spans = recorder.wait(lambda spans: len(servers(spans)) == 1)
    (server,) = servers(spans)
    assert (server.name, server.parent) == (name, None)
    assert [one.name for one in spans if one is not server] == ([operation] if operation else [])
    assert "private" not in recorder.text()


def test_a_refusal_is_no_error_of_the_server_and_a_failing_store_is_one(home: str, recorder: Recorder) -> None:
    httpx.get(f"{home}/api/v1/agents", trust_env=False, timeout=60)
    (refused,) = recorder.wait(lambda spans: len(spans) == 1)
    assert attributes(refused)["http.response.status_code"] == 401
    assert refused.status.status_code is StatusCode.UNSET
    recorder.clear()
    httpx.get(f"{home}/health", headers={"host": "evil.example"}, trust_env=False, timeout=60)
    (foreign,) = recorder.wait(lambda spans: len(spans) == 1)
    assert attributes(foreign)["http.response.status_code"] == 421

    from kronmem.errors import StoreError
    from tests.services.in_process import served_in_process

    class Failing:
        def answer(self, *_: Any) -> Any:
            raise StoreError("disk full at /private/path")

        def close(self) -> None: ...

    recorder.clear()
    with served_in_process(service=Failing()) as url:  # type: ignore[arg-type] # enough of one
        httpx.get(f"{url}/api/v1/agents/ada/memories", trust_env=False, timeout=60)
        spans = recorder.wait(lambda spans: len(servers(spans)) == 1)
    assert [(one.name, attributes(one)["error.type"]) for one in spans] == [
        ("search_memory", "StoreError"),
        (f"GET {AGENT}/memories", "503"),
    ]
    assert "private" not in recorder.text()


def test_a_trace_that_somebody_else_began_goes_on(home: str, recorder: Recorder) -> None:
    header = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x-api-key": next(unused)}
    httpx.get(f"{home}/api/v1/agents", headers=header, trust_env=False, timeout=60)
    (server,) = recorder.wait(lambda spans: len(spans) == 1)
    assert f"{server.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert server.parent is not None
    assert f"{server.parent.span_id:016x}" == "b7ad6b7169203331"
    recorder.clear()
    httpx.get(f"{home}/health", headers={"traceparent": "garbage"}, trust_env=False, timeout=60)
    (server,) = recorder.wait(lambda spans: len(spans) == 1)
    assert server.parent is None


@pytest.mark.anyio
async def test_the_access_log_names_the_trace(recorder: Recorder) -> None:
    seen: list[ServedRequest] = []
    service = sqlite_service(":memory:")
    transport = httpx.ASGITransport(create_app(service, log_request=seen.append))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as web:
        await web.get("/api/v1/agents/ada/memories?search=private")
    service.close()
    (server,) = servers(recorder.wait(lambda spans: len(servers(spans)) == 1))
    (logged,) = seen
    assert logged.trace_id == f"{server.context.trace_id:032x}"
    assert (logged.route, logged.path, logged.status) == (f"{AGENT}/memories", "/api/v1/agents/ada/memories", 200)


@pytest.mark.anyio
async def test_a_request_without_a_trace_is_a_root_wherever_the_server_was_started(recorder: Recorder) -> None:
    """An app in the middle of somebody's span: only the request's own headers say whose trace it is."""
    service = sqlite_service(":memory:")
    with TRACER.start_as_current_span("start"):
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as web:
            await web.get("/health")
    service.close()
    (server,) = servers(recorder.wait(lambda spans: len(spans) == 2))
    assert server.parent is None


@pytest.mark.anyio
async def test_an_exception_in_the_app_is_named_by_its_class(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def explode(*_: Any) -> Any:
        raise ZeroDivisionError("private words")

    monkeypatch.setattr("kronmem.server.app.read", explode)
    service = sqlite_service(":memory:")
    transport = httpx.ASGITransport(create_app(service), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as web:
        assert (await web.get("/api/v1/agents")).status_code == 500
    service.close()
    (server,) = recorder.wait(lambda spans: len(spans) == 1)
    found = attributes(server)
    assert (found["http.response.status_code"], found["error.type"]) == (500, "ZeroDivisionError")
    assert "private words" not in recorder.text()


def test_state_belongs_to_the_callers_trace(home: str, recorder: Recorder) -> None:
    with Client(home, api_key=next(unused), outbox=False) as client, TRACER.start_as_current_span("turn"):
        client.state("ada").set("colour", "green")
    spans = recorder.wait(lambda spans: len(spans) == 2)
    assert path(servers(spans)[0], spans) == ["turn", f"PUT {AGENT}/state/{{key}}"]


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_tool_over_mcp_is_one_tree(home: str, recorder: Recorder) -> None:
    pytest.importorskip("mcp")
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "remember", "arguments": {"content": "Ada likes private tea"}},
    }
    headers = {
        "authorization": f"Bearer {next(unused)}",
        "accept": "application/json, text/event-stream",
        "x-kronmem-agent": "ada",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "mcp-protocol-version": "2025-06-18",
    }
    async with httpx.AsyncClient(trust_env=False, timeout=60.0) as web:
        reply = await web.post(f"{home}/mcp", json=call, headers=headers)
    assert "Stored" in reply.text, reply.text
    spans = recorder.wait(lambda spans: "POST /mcp" in names(spans))
    ours = next(one for one in spans if one.name == "create_memory")
    names_down = path(ours, spans)
    assert (names_down[0], names_down[-1]) == ("POST /mcp", "create_memory")
    assert f"{ours.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert (ours.kind, attributes(ours)[STORE]) == (SpanKind.INTERNAL, "ada")
    assert "private tea" not in recorder.text()


STDIO = """
import sys, anyio
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=open(sys.argv[1], "a"), formatter=lambda span: f"{span.name} {span.context.trace_id:032x}\\n")))
trace.set_tracer_provider(provider)
from kronmem import AsyncClient
from kronmem.mcp import serve_stdio
anyio.run(serve_stdio, AsyncClient("sqlite://"), "ada")
"""


@pytest.mark.slow
def test_a_tool_over_stdio_goes_on_with_the_trace_in_its_message(tmp_path: Path) -> None:
    """mcp 2.x reads `_meta.traceparent` itself; our span is the child of its own."""
    if not find_spec("mcp") or int(version("mcp").split(".")[0]) < 2:
        pytest.skip("mcp 2.x is not installed")
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    meta = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    call = {"name": "remember", "arguments": {"content": "Ada likes tea"}, "_meta": meta}
    command = [sys.executable, "-c", STDIO, str(tmp_path / "spans.txt")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for message in (
            {"id": 1, "method": "initialize", "params": hello},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": call},
        ):
            child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            child.stdin.flush()
            if "id" in message:
                answer = child.stdout.readline()
        child.stdin.close()
        assert "Stored" in answer
    spans = [line.rsplit(" ", 1) for line in (tmp_path / "spans.txt").read_text().splitlines()]
    assert ["create_memory", "0af7651916cd43dd8448eb211c80319c"] in spans
