"""One turn of an agent is one tree, from the framework's own span through the request to the store."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind

from kronmem import Client
from kronmem.packs.deadlines import warm_up
from tests.packs.frameworks import FRAMEWORKS, missing
from tests.services.in_process import served_in_process
from tests.tracing.recorder import STORE, Recorder, attributes, names, path

ROOT = Path(__file__).parent.parent.parent
WORDS = "Remember that I am allergic to peanuts, please."
FACT = "Ada is allergic to peanuts"
AGENT = "/api/v1/agents/{agent_id}"
# The framework's own spans: around the turn, and around a tool in it.
OWN = {
    "classic": ("turn", []),  # it has none: the user's own stands around it
    "agentchat": ("invoke_agent helper", ["execute_tool remember"]),
    "agent_framework": ("invoke_agent helper", ["execute_tool remember"]),
    "ag2": ("invoke_agent helper", ["execute_tool remember"]),
}


def is_ours(span: ReadableSpan) -> bool:
    return span.instrumentation_scope is not None and span.instrumentation_scope.name == "kronmem"


def of_deliveries(spans: list[ReadableSpan]) -> set[int]:
    """The traces of deliveries: those of captured words are by themselves, and linked."""
    return {one.context.trace_id for one in spans if "kronmem.attempt" in attributes(one)}


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_a_turn_is_one_tree_down_to_the_store(framework: str, recorder: Recorder) -> None:
    if missing(framework):
        pytest.skip(f"{framework} is not installed")
    turn, tool = OWN[framework]
    around: AbstractContextManager[Any] = nullcontext()
    with served_in_process() as url:
        memory = FRAMEWORKS[framework][0]("ada", url, 30.0)
        if framework == "ag2":
            from ag2.middleware import TelemetryMiddleware

            memory.middleware = [TelemetryMiddleware(agent_name="helper", capture_content=False)]
        if framework == "classic":
            around = trace.get_tracer("test").start_as_current_span("turn")
        with around:
            seen = await memory.turn(WORDS, ("remember", {"content": FACT}), "Noted.")
        await memory.close()
        spans = recorder.wait(lambda spans: turn in names(spans))
    assert seen.answer == "Noted."
    later = of_deliveries(spans)
    ours = [one for one in spans if is_ours(one) and one.context.trace_id not in later]
    paths = [path(one, spans) for one in ours]
    recall = ["search_memory", f"POST {AGENT}/recall", "search_memory"]
    remember = ["create_memory", f"POST {AGENT}/remember", "create_memory"]
    # AG2 recalls at the first call of the model, whose events are the prompt.
    assert [turn, *(["chat"] if framework == "ag2" else []), *recall] in paths
    assert [turn, *tool, *remember] in paths
    if framework != "agentchat":  # there a finished run is captured outside of it, by the user's own call
        assert {one[0] for one in paths} == {turn}
    assert {link.context.trace_id for one in spans if one.context.trace_id in later for link in one.links} <= {
        one.context.trace_id for one in ours
    }
    assert not [one for one in ours if one.kind is SpanKind.INTERNAL and one.parent is None]
    assert "peanut" not in "".join(one.to_json() for one in ours)


@pytest.mark.slow
@pytest.mark.anyio
async def test_words_captured_in_the_background_belong_to_the_turn(recorder: Recorder) -> None:
    """Classic capture stores in a thread of its own."""
    if missing("classic"):
        pytest.skip("classic AutoGen is not installed")
    with served_in_process() as url:
        memory = FRAMEWORKS["classic"][0]("ada", url, 30.0)
        with trace.get_tracer("test").start_as_current_span("turn"):
            await memory.turn(WORDS, "Noted.")
        await memory.close()
        spans = recorder.wait(lambda spans: "turn" in names(spans))
    queued = [one for one in spans if attributes(one).get("kronmem.queued")]
    assert {tuple(path(one, spans)) for one in queued} == {("turn", "create_memory")}
    assert all(one.links for one in spans if "kronmem.attempt" in attributes(one))


@pytest.mark.slow
def test_the_picture_of_a_turn_shows_every_layer(tmp_path: Path) -> None:
    if missing("agentchat"):
        pytest.skip("agentchat is not installed")
    picture = tmp_path / "trace.svg"
    command = [sys.executable, "-m", "tests.benchmarks.trace_picture", str(picture)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    texts = [one.text for one in ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text")]
    tree = ["invoke_agent helper", "search_memory", f"POST {AGENT}/recall", "search_memory"]
    assert [one for one in texts if one in tree][:4] == tree
    assert {"framework", "client", "server", "engine"} <= set(texts)
    assert picture.stat().st_size < 10_000


def test_a_warm_up_is_nobodys_turn_and_not_traced(recorder: Recorder) -> None:
    with Client.local(":memory:") as client:
        warm_up(client.agent("ada"))
        for thread in threading.enumerate():
            if thread.name == "kronmem-warm-up":
                thread.join(60)
        client.recall("ada", "tea")
        assert [attributes(one)[STORE] for one in recorder.spans()] == ["ada"]
        assert len(recorder.spans()) == 1
