"""Queued memories: the span that queues one ends on disk, its delivery is a trace of its own that links back."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from kronmem import Client, Retry
from tests.outbox.services import NOBODY, keeping
from tests.services import RawServer
from tests.services.in_process import served_in_process
from tests.services.kronmem import free_port
from tests.services.raw import respond
from tests.shells import shell
from tests.tracing.recorder import COUNT, RECORD, STORE, Recorder, attributes, names, traceparent

ROOT = Path(__file__).parent.parent.parent
TRACER = trace.get_tracer("test")


def deliveries(recorder: Recorder) -> list[ReadableSpan]:
    """Deliveries so far, waited for: they are made in a thread."""
    recorder.wait(lambda spans: any("kronmem.attempt" in attributes(one) for one in spans))
    return [one for one in recorder.calls() if "kronmem.attempt" in attributes(one)]


def linked(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


def test_remember_later_is_a_span_that_ends_on_disk_and_its_delivery_is_linked_to_it(
    kind: str, recorder: Recorder, tmp_path: Path
) -> None:
    with served_in_process() as url, shell(kind, url, outbox=tmp_path / "o.db") as client:
        memory_id = client.remember_later("ada", "Ada likes tea")
        (sent,) = deliveries(recorder)
        (queued,) = [one for one in recorder.calls() if "kronmem.attempt" not in attributes(one)]
    assert (queued.name, queued.kind) == ("create_memory", SpanKind.CLIENT)
    found = attributes(queued)
    assert (found[STORE], found[RECORD], found[COUNT], found["kronmem.queued"]) == ("ada", memory_id, 1, True)
    assert (sent.name, sent.kind, sent.parent) == ("create_memory", SpanKind.CLIENT, None)
    assert linked(sent) == [(queued.context.trace_id, queued.context.span_id)]
    assert sent.context.trace_id != queued.context.trace_id
    delivered = attributes(sent)
    assert (delivered[STORE], delivered["kronmem.attempt"], delivered[COUNT]) == ("ada", 1, 1)
    assert isinstance(delivered[RECORD], str)


def test_remember_later_is_one_span_embedded_too(kind: str, recorder: Recorder) -> None:
    with shell(kind, "sqlite://") as client:
        memory_id = client.remember_later("ada", "Ada likes tea")
    (span,) = recorder.calls()
    found = attributes(span)
    assert (span.name, found[RECORD], found["kronmem.queued"]) == ("create_memory", memory_id, True)


def test_a_memory_that_has_to_be_queued_says_so(kind: str, recorder: Recorder, tmp_path: Path) -> None:
    with shell(kind, NOBODY, outbox=tmp_path / "o.db", retry=Retry(1), timeout=1.0) as client:
        memory = client.remember("ada", "Ada likes tea")
        (span,) = [one for one in recorder.calls() if "kronmem.attempt" not in attributes(one)]
    assert memory.queued
    assert (attributes(span)["kronmem.queued"], attributes(span)[RECORD]) == (True, memory.id)
    (event,) = [one for one in span.events if one.name == "kronmem.queued"]
    assert dict(event.attributes or {}) == {"error.type": "TransportError"}
    assert span.status.status_code is StatusCode.UNSET


def test_a_delivery_inside_another_call_is_no_child_of_it(recorder: Recorder, tmp_path: Path) -> None:
    """`remember` delivers the agent's waiting rows first: they belong to those who queued them."""
    failing = True

    def answer(server: RawServer, connection: Any, request: Any) -> None:
        (respond(503) if failing else keeping)(server, connection, request)

    with RawServer([answer]) as server:
        with Client(server.url, outbox=tmp_path / "o.db", retry=Retry(1), timeout=20.0) as client:
            client.remember_later("ada", "first")
            recorder.wait(lambda spans: any(attributes(one).get("error.type") == "ServerError" for one in spans))
            failing = False
            with TRACER.start_as_current_span("turn"):
                client.remember("ada", "second")
            recorder.wait(lambda spans: "turn" in names(spans))
    spans = recorder.calls()
    first = next(one for one in spans if attributes(one).get("kronmem.queued"))
    (second,) = [one for one in spans if one.parent is not None]
    tries = [one for one in spans if "kronmem.attempt" in attributes(one)]
    assert {tuple(linked(one)) for one in tries} == {((first.context.trace_id, first.context.span_id),)}
    assert {one.parent for one in tries} == {None}
    assert second.name == "create_memory"
    arrived = [request for request in server.requests if request.path.endswith("/remember")]
    parents = {request.body["content"]: request.headers["traceparent"][:52] for request in arrived}
    assert parents == {"first": traceparent(tries[-1]), "second": traceparent(second)}


CHILD = """
import os, signal, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider())
from kronmem import Client
from kronmem.outbox.queue import OutboxFile
real = OutboxFile.put
def put(*args, **options):
    real(*args, **options)
    print(f"{trace.get_current_span().get_span_context().trace_id:032x}",
          f"{trace.get_current_span().get_span_context().span_id:016x}", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
OutboxFile.put = put
Client(sys.argv[1], outbox=sys.argv[2]).remember_later("ada", "Ada likes tea")
"""


@pytest.mark.slow
def test_a_delivery_after_a_kill_is_linked_to_the_span_of_the_killed_process(
    kind: str, recorder: Recorder, tmp_path: Path
) -> None:
    port, outbox = free_port(), tmp_path / "o.db"
    command = [sys.executable, "-c", CHILD, f"http://127.0.0.1:{port}", str(outbox)]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    trace_id, span_id = (int(part, 16) for part in ran.stdout.split())
    with served_in_process() as url:
        db = sqlite3.connect(outbox)
        with db:  # the service has come back at another address
            db.execute("UPDATE waiting SET service = ?", (url,))
        db.close()
        with shell(kind, url, outbox=outbox) as client:
            client.recall("ada", "tea")
            (sent,) = deliveries(recorder)
            assert [hit.content for hit in client.recall("ada", "tea")] == ["Ada likes tea"]
    assert (sent.name, sent.parent, linked(sent)) == ("create_memory", None, [(trace_id, span_id)])
    assert attributes(sent)["kronmem.attempt"] == 1


def test_the_trace_of_a_row_stands_beside_it_and_goes_with_it(recorder: Recorder, tmp_path: Path) -> None:
    """0.1 reads every field of a body and only the columns it knows: it can deliver these rows."""
    with Client(NOBODY, outbox=tmp_path / "o.db", timeout=0.5) as client:
        client.remember_later("ada", "Ada likes tea", session_id="s")
        db = sqlite3.connect(tmp_path / "o.db")
        (body,) = db.execute("SELECT body FROM waiting").fetchone()
        (kept,) = db.execute("SELECT traceparent FROM origin").fetchone()
        queued = next(one for one in recorder.calls() if "kronmem.attempt" not in attributes(one))
        assert kept.startswith(traceparent(queued))
        assert "traceparent" not in body
        db.execute("DELETE FROM waiting")  # as 0.1 does after a delivery
        assert db.execute("SELECT count(*) FROM origin").fetchone() == (0,)
        db.close()


def test_a_damaged_trace_of_a_row_keeps_nothing_from_delivery(recorder: Recorder, tmp_path: Path) -> None:
    with Client(NOBODY, outbox=tmp_path / "o.db", timeout=0.5) as client:
        client.remember_later("ada", "Ada likes tea")
    with RawServer([keeping]) as server:
        db = sqlite3.connect(tmp_path / "o.db")
        with db:
            db.execute("UPDATE waiting SET service = ?, backoff = 0, lease = 0", (server.url,))
            db.execute("UPDATE origin SET traceparent = CAST(x'ff00' AS TEXT)")
        db.close()
        recorder.clear()
        with Client(server.url, outbox=tmp_path / "o.db") as client:
            assert client.outbox.flush(20.0) == 0
        (sent,) = deliveries(recorder)
    assert sent.links == ()


@pytest.mark.parametrize("listens", [True, False])
def test_rows_are_delivered_with_and_without_a_listener(
    listens: bool, recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not listens:
        monkeypatch.setenv("KRONMEM_TRACING", "off")
    with RawServer([keeping]) as server, Client(server.url, outbox=tmp_path / "o.db") as client:
        client.remember_later("ada", "Ada likes tea")
        assert client.outbox.flush(20.0) == 0
        assert all(("traceparent" in request.headers) is listens for request in server.requests)
    assert bool(recorder.calls()) is listens
