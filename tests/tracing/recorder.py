"""Everything that a process records: one provider for the whole run, installed for a test at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.trace import SpanKind

STORE, COUNT, RECORD = "gen_ai.memory.store.id", "gen_ai.memory.record.count", "gen_ai.memory.record.id"


class Recorder(SpanProcessor):
    """Finished spans in the order of their ends."""

    def __init__(self) -> None:
        self._spans: list[ReadableSpan] = []
        self._servers: set[int] = set()
        self._since = 0
        self._changed = threading.Condition()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        if span.kind is SpanKind.SERVER:
            self._servers.add(span.context.span_id)

    def on_end(self, span: ReadableSpan) -> None:
        if (span.start_time or 0) < self._since:  # of a thread that an earlier test left behind
            return
        with self._changed:
            self._spans.append(span)
            self._changed.notify_all()

    def begin(self) -> None:
        """Record from now on."""
        self._since = time.time_ns()
        self.clear()

    def clear(self) -> None:
        """Forget everything so far."""
        with self._changed:
            self._spans.clear()

    def wait(self, enough: Callable[[list[ReadableSpan]], bool], seconds: float = 60.0) -> list[ReadableSpan]:
        """All spans, once they are enough: a server ends its span after its answer has arrived."""
        with self._changed:
            assert self._changed.wait_for(lambda: enough(self._spans), seconds), names(self._spans)
            return list(self._spans)

    def spans(self) -> list[ReadableSpan]:
        """The spans of our own instrumentation so far."""
        with self._changed:
            return [
                one for one in self._spans if one.instrumentation_scope and one.instrumentation_scope.name == "kronmem"
            ]

    def calls(self) -> list[ReadableSpan]:
        """The spans of public calls: neither the server's nor its engine's."""
        # A server ends its span after its answer has arrived: those under way count too.
        ours = [one for one in self.spans() if one.kind is not SpanKind.SERVER]
        return [one for one in ours if not (one.parent and one.parent.span_id in self._servers)]

    def text(self) -> str:
        """The whole trace, to search for what must not be in it."""
        with self._changed:
            return "\n".join(one.to_json() for one in self._spans)


RECORDER = Recorder()
PROVIDER = TracerProvider(shutdown_on_exit=False)
PROVIDER.add_span_processor(RECORDER)


def names(spans: Sequence[ReadableSpan]) -> list[str]:
    return [one.name for one in spans]


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def path(span: ReadableSpan, spans: Sequence[ReadableSpan]) -> list[str]:
    """The names from the root of a span's trace down to it."""
    by_id = {one.context.span_id: one for one in spans}
    parent = by_id.get(span.parent.span_id) if span.parent else None
    return [*(path(parent, spans) if parent else []), span.name]


def traceparent(span: ReadableSpan) -> str:
    return f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}"


@contextmanager
def installed(provider: trace.TracerProvider | None) -> Iterator[None]:
    """Make a provider the global one for a while. OpenTelemetry itself lets that be done once a process, and then
    every other test of the process would be traced too."""
    before = trace._TRACER_PROVIDER
    trace._TRACER_PROVIDER = provider  # type: ignore[attr-defined] # there is no public way back
    try:
        yield
    finally:
        trace._TRACER_PROVIDER = before  # type: ignore[attr-defined]
