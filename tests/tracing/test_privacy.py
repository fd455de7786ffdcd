"""Nothing private in any span unless the convention's switch is on; and a span is never in anybody's way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.trace import StatusCode

from kronmem import Client, KronmemError, Retry
from tests.outbox.services import NOBODY
from tests.services.in_process import served_in_process
from tests.shells import shell
from tests.tracing.recorder import Recorder, attributes, installed, names

ROOT = Path(__file__).parent.parent.parent
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
PRIVATE = ["peanut", "secretquery", "privatetag", "privatemeta", "privatekey", "privatestate", "kv-private", "o.db"]


def everything(client: Any) -> None:
    """Every call that takes a text, and every error that might quote one."""
    first = client.remember("ada", "allergic to peanuts", tags=["privatetag"], metadata={"privatemeta": "peanut"})
    client.remember("ada", "peanut butter", key="privatekey")
    client.remember_many("ada", ["one peanut", "two peanuts"])
    client.remember_later("ada", "later peanuts")
    client.recall("ada", "secretquery peanuts", tags=["privatetag"])
    client.recall_many("ada", ["secretquery one", "secretquery two"])
    client.inject_context("ada", "secretquery")
    client.memories("ada")
    client.update("ada", first.id, content="no peanuts any more")
    client.history("ada", first.id)
    state = client.state("ada")
    state.set("privatestate", {"peanut": 1})
    state.get("privatestate")
    for failing in (
        lambda: client.update("ada", first.id, content="one peanut"),  # a conflict
        lambda: client.remember("ada", "peanut", memory_id="not-a-uuid"),
        lambda: client.remember("ada", "peanuts", supersedes="unknown"),
        lambda: client.forget("ada", "unknown"),
        lambda: client.recall("ada", "secretquery", limit=1000),
        lambda: client.remember_many("ada", ["peanut", "x" * 200_000]),
    ):
        with suppress(KronmemError):
            failing()
    client.clear("ada")
    client.erase("ada")


@pytest.mark.parametrize("place", ["embedded", "served"])
def test_no_private_word_is_anywhere_in_a_trace(place: str, kind: str, recorder: Recorder, tmp_path: Path) -> None:
    with served_in_process({"kv-private": "me"}) as url:
        options: dict[str, Any] = {"outbox": tmp_path / "o.db", "api_key": "kv-private"} if place == "served" else {}
        with shell(kind, url if place == "served" else f"sqlite:///{tmp_path}/o.db", **options) as client:
            everything(client)
    text = recorder.text()
    assert len(recorder.calls()) > 15
    assert "ConflictError" in text
    assert "NotFoundError" in text
    for word in PRIVATE:
        assert word not in text, word


def test_no_private_word_is_in_a_trace_of_failures(recorder: Recorder, tmp_path: Path) -> None:
    def redact(text: str) -> str:
        raise ValueError(f"cannot redact {text}")

    with served_in_process({"kv-private": "me"}) as url:
        with Client(url, api_key="kv-private-wrong", outbox=False) as refused, suppress(KronmemError):
            refused.recall("ada", "secretquery")
    with Client(NOBODY, outbox=False, retry=Retry(first=0.0)) as unreachable, suppress(KronmemError):
        unreachable.recall("ada", "secretquery")
    with Client("sqlite://", redact=redact) as client, pytest.raises(ValueError, match="peanuts"):
        client.remember("ada", "peanuts")

    class Exploding:
        def send(self, request: Any) -> Any:
            raise RuntimeError(f"peanuts at kv-private {request.body}")

        def close(self) -> None: ...

    with Client("sqlite://", transport=Exploding()) as client, pytest.raises(RuntimeError):
        client.remember("ada", "peanuts")
    spans = recorder.calls()
    assert [attributes(one).get("error.type") for one in spans] == ["AuthError", "TransportError", "RuntimeError"]
    assert all(one.status.status_code is StatusCode.ERROR and one.status.description is None for one in spans)
    for word in PRIVATE:
        assert word not in recorder.text(), word


@pytest.mark.parametrize("value", ["", "false", "1", "True", "yes", "content"])
def test_only_the_word_true_asks_for_content(value: str, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTENT, value)
    with Client("sqlite://") as client:
        client.remember("ada", "allergic to peanuts")
        client.recall("ada", "peanuts")
    assert "peanut" not in recorder.text()


def test_content_that_was_asked_for_is_redacted_first(
    kind: str, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONTENT, "true")

    def redact(text: str) -> str:
        return text.replace("opensesame", "####")

    with shell(kind, "sqlite://", redact=redact) as client:
        memory = client.remember("ada", "The code is opensesame and the tea is green")
        client.recall("ada", "tea and opensesame")
        client.inject_context("ada", "tea opensesame")
    text = recorder.text()
    stored, recalled, injected = recorder.calls()
    clean = "The code is #### and the tea is green"
    assert json.loads(attributes(stored)["gen_ai.memory.records"]) == [{"id": memory.id, "content": clean}]
    (record,) = json.loads(attributes(recalled)["gen_ai.memory.records"])
    assert (record["id"], record["content"]) == (memory.id, clean)
    assert 0 < record["score"] <= 1
    assert attributes(recalled)["gen_ai.memory.query.text"] == "tea and ####"
    assert attributes(injected)["gen_ai.memory.query.text"] == "tea ####"
    assert json.loads(attributes(injected)["gen_ai.memory.records"])[0]["content"] == clean
    assert "opensesame" not in text


def test_the_switch_is_read_at_each_call(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client("sqlite://") as client:
        for value, expected in [("off", 0), ("on", 1), ("OFF", 1), ("", 2)]:
            monkeypatch.setenv("KRONMEM_TRACING", value)
            client.recall("ada", "tea")
            assert len(recorder.calls()) == expected, value


class _Raising:
    """Fails whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"broken {name}")


class BrokenProvider(trace.TracerProvider):
    def get_tracer(self, *args: Any, **options: Any) -> Any:
        return _Raising()


class BrokenSpans(trace.TracerProvider):
    """Starts spans that fail at every touch."""

    def get_tracer(self, *args: Any, **options: Any) -> Any:
        class Tracer:
            def start_span(self, *args: Any, **options: Any) -> Any:
                return _Raising()

        return Tracer()


def broken_exporter() -> trace.TracerProvider:
    class Exporter(SpanExporter):
        def export(self, spans: Any) -> Any:
            raise RuntimeError("the collector is gone")

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(Exporter()))
    return provider


@pytest.mark.slow
@pytest.mark.parametrize("make", [BrokenProvider, BrokenSpans, broken_exporter])
@pytest.mark.parametrize("place", ["embedded", "served"])
def test_a_broken_tracer_breaks_no_call(
    make: Callable[[], trace.TracerProvider], place: str, kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with installed(make()), served_in_process() as url:
        options: dict[str, Any] = {"outbox": tmp_path / "o.db"} if place == "served" else {}
        with shell(kind, url if place == "served" else "sqlite://", **options) as client:
            everything(client)
            client.remember("ada", "Ada likes tea")
            assert [hit.content for hit in client.recall("ada", "tea")] == ["Ada likes tea"]
            assert len(client.memories("ada")) == 1
    assert "peanut" not in "".join(one.getMessage() for one in caplog.records if one.name == "kronmem.tracing")


def test_nobody_listening_records_nothing_and_a_provider_set_later_is_heard(recorder: Recorder) -> None:
    with Client("sqlite://") as client:
        with installed(None):
            client.recall("ada", "tea")
        with installed(trace.NoOpTracerProvider()):
            client.recall("ada", "tea")
        assert recorder.calls() == []
        client.recall("ada", "tea")
        assert names(recorder.calls()) == ["search_memory"]


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
from kronmem import Client
client = Client("sqlite://")
client.remember("ada", "Ada likes tea")
assert [hit.content for hit in client.recall("ada", "tea")] == ["Ada likes tea"]
assert not any(name.startswith("opentelemetry") for name in sys.modules)
print("well")
"""
LATER = """
import sys
from kronmem import Client
client = Client("sqlite://")
client.remember("ada", "Ada likes tea")
assert not any(name.startswith("opentelemetry") for name in sys.modules), "a call loaded OpenTelemetry by itself"
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
client.recall("ada", "tea")
exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
client.recall("ada", "tea")
assert [span.name for span in exporter.get_finished_spans()] == ["search_memory"]
print("well")
"""
BY_ENVIRONMENT = """
from kronmem import Client
client = Client("sqlite://")
client.recall("ada", "tea")
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
assert isinstance(trace.get_tracer_provider(), TracerProvider)
print("well")
"""


@pytest.mark.parametrize(
    ("code", "env"),
    [
        (WITHOUT, {}),
        pytest.param(LATER, {}, marks=pytest.mark.slow),
        pytest.param(BY_ENVIRONMENT, {"OTEL_PYTHON_TRACER_PROVIDER": "sdk_tracer_provider"}, marks=pytest.mark.slow),
    ],
)
def test_opentelemetry_may_be_missing_come_later_or_load_itself(code: str, env: dict[str, str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert ran.stdout == "well\n", ran.stderr
