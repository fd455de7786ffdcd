"""OpenTelemetry spans by the `gen_ai.memory` conventions (status: development; every name of theirs stands here).

`opentelemetry` is no dependency and is never imported by us first: until a program has loaded it, it has no provider.
A tracer or exporter that fails never fails a call.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast
from urllib.parse import unquote, urlsplit

from kronmem import settings
from kronmem.api import routes
from kronmem.core.calls import ContextQuery, Draft, MemoryFilter, RecallQuery
from kronmem.core.wire import Reply, Request
from kronmem.errors import status_class
from kronmem.models import Erasure, Hit, Memory

if TYPE_CHECKING:
    from opentelemetry import context, trace

    from kronmem.core.exchange import Event, Flow, Step
    from kronmem.core.flows import Walk

T = TypeVar("T")
Attributes: TypeAlias = "dict[str, str | int | float | bool]"

OPERATION, STORE = "gen_ai.operation.name", "gen_ai.memory.store.id"
RECORD, COUNT = "gen_ai.memory.record.id", "gen_ai.memory.record.count"
CONVERSATION, QUEUED = "gen_ai.conversation.id", "kronmem.queued"
OPERATIONS: Mapping[object, str] = {
    **dict.fromkeys(("remember", "remember_later", "remember_many", "restore"), "create_memory"),
    **dict.fromkeys((routes.REMEMBER, routes.BATCH, routes.BULK_IMPORT, routes.RESTORE), "create_memory"),
    **dict.fromkeys(("upsert", routes.UPSERT), "upsert_memory"),
    **dict.fromkeys(("recall", "inject_context", "memories", "history", "get"), "search_memory"),
    **dict.fromkeys((routes.RECALL, routes.INJECT_CONTEXT, routes.HISTORY, routes.EXPORT), "search_memory"),
    **dict.fromkeys((routes.LIST_MEMORIES, routes.GET_MEMORY), "search_memory"),
    **dict.fromkeys(("update", routes.UPDATE, routes.UPDATE_MEMORY), "update_memory"),
    **dict.fromkeys(("forget", "clear", routes.FORGET, routes.CLEAR, routes.CLEAR_SOME), "delete_memory"),
    routes.CLEAR_SESSION: "delete_memory",
    **dict.fromkeys(("erase", routes.ERASE, routes.DELETE_AGENT), "delete_memory_store"),
}
"""The calls of a client and the routes of a service that are memory operations; others have no span."""

log = logging.getLogger("kronmem.tracing")
_LOADS_ITSELF = "OTEL_PYTHON_TRACER_PROVIDER" in os.environ
"""Whether OpenTelemetry loads a provider named by the environment, once it is imported."""
_failed: set[type] = set()


class _Harmless:
    """Logs each kind of exception once and goes on without the span: a broken tracer fails at every call."""

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        if isinstance(error, Exception) and type(error) not in _failed:
            _failed.add(type(error))
            log.warning("a span could not be recorded (%s); calls go on without it", type(error).__name__)
        return isinstance(error, Exception)


harmless = _Harmless()


def listening() -> bool:
    """Whether spans of this call would be recorded. Cheap: it is the first thing that every call asks."""
    if "opentelemetry.trace" in sys.modules or _LOADS_ITSELF:
        with harmless:  # half imported by another thread, or a provider that cannot be loaded
            from opentelemetry import trace

            silent = isinstance(trace.get_tracer_provider(), (trace.ProxyTracerProvider, trace.NoOpTracerProvider))
            return not silent and os.environ.get("KRONMEM_TRACING", "").lower() != "off"
    return False


class Span:
    """One span that ends with its block, or none where tracing is off or failed. No method raises."""

    def __init__(self, inner: trace.Span | None = None) -> None:
        self._inner = inner

    def _do(self, change: Callable[[trace.Span], object]) -> None:
        if self._inner is not None:
            with harmless:
                change(self._inner)

    def set(self, attributes: Attributes) -> None:
        """Add attributes."""
        self._do(lambda inner: inner.set_attributes(attributes))

    def fail(self, kind: str) -> None:
        """Mark it as failed by the name of the error's class: messages hold texts, paths and addresses."""
        if self._inner is not None:
            from opentelemetry.trace import StatusCode

            self.set({"error.type": kind})
            self._do(lambda inner: inner.set_status(StatusCode.ERROR))

    def __enter__(self) -> Span:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and kind is not GeneratorExit:  # dropped half-way is no error
            self.fail(kind.__name__)
        self._do(lambda inner: inner.end())

    def current(self) -> AbstractContextManager[object]:
        """Make it the current span: spans of others become its children, and requests carry it."""
        if self._inner is None:
            return nullcontext()
        from opentelemetry.trace import use_span

        return use_span(self._inner, record_exception=False, set_status_on_exception=False)

    def carry(self, flow: Flow[T]) -> Flow[T]:
        """The flow with this span as the current one."""
        with self.current():
            return (yield from flow)


def start(name: str, known: Attributes, kind: str, parent: context.Context | None, origin: str | None = None) -> Span:
    """Start a span under `parent`, or the current one; `origin` is the traceparent of a span that it follows."""
    if listening():
        with harmless:
            from opentelemetry import trace

            linked = trace.get_current_span(_context({"traceparent": origin or ""})).get_span_context()
            links = [trace.Link(linked)] if linked.is_valid else None
            tracer = trace.get_tracer("kronmem", settings.installed_version())
            inner = tracer.start_span(name, parent, trace.SpanKind[kind], known, links, record_exception=False)
            return Span(inner)
    return Span()


@contextmanager
def spanned(
    name: str, known: Attributes, kind: str = "INTERNAL", parent: context.Context | None = None
) -> Generator[Span]:
    """A current span around a block of code."""
    with start(name, known, kind, parent) as span, span.current():
        yield span


def _context(carrier: Mapping[str, str]) -> context.Context:
    """The trace context that headers name; without them one in which spans are roots."""
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract(carrier, Context())


def headers() -> dict[str, str]:
    """The current span as headers, none while tracing is off; never `baggage`, which may hold a user's data."""
    carrier: dict[str, str] = {}
    if listening():
        with harmless:
            from opentelemetry import propagate

            propagate.inject(carrier)
    return {name: carrier[name] for name in ("traceparent", "tracestate") if carrier.get(name, "\n").isprintable()}


def observed(step: Step) -> Step:
    """A step as a driver carries it out: a request takes the trace along, an event is noted."""
    if isinstance(step, Request):
        return replace(step, headers=(*step.headers, *headers().items())) if listening() else step
    if step.event is not None:
        note(step.event)
    return step


def note(event: Event) -> None:
    """Add an event to the current span."""
    if listening():
        with harmless:
            from opentelemetry.trace import get_current_span

            get_current_span().add_event(event.name, event.attributes)


@dataclass(frozen=True)
class Tracer:
    """Puts the flows of one client into spans."""

    url: str
    redacted: Callable[[str], str]

    def traced(self, flow: Flow[T], name: str, agent_id: str | None, subject: object) -> Flow[T]:
        """The flow of one public call inside its span, under the span that is current now."""
        if name not in OPERATIONS or not listening():
            return flow
        from opentelemetry.context import get_current

        # Started with the flow, which may wait for a thread in which another context is the current one.
        begin = partial(_call, self.url, _known(name, agent_id, subject), get_current())
        return _traced(flow, begin, partial(self._outcome, subject=subject))

    @contextmanager
    def walking(self, walk: Walk) -> Generator[Span]:
        """One span for all pages of a listing, which carries the flow of each page."""
        with _call(self.url, _known("memories", walk.agent_id, walk.within)) as span:
            try:
                yield span
            finally:
                span.set({COUNT: walk.found})

    def _outcome(self, answer: object, subject: object) -> Attributes:
        """The attributes that the answer brings, with texts if the environment asks for them."""
        attributes = _counts(answer, subject)
        if os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT") != "true":
            return attributes
        if isinstance(subject, ContextQuery):
            answer, subject = subject.used, subject.asked
        if isinstance(subject, RecallQuery):
            attributes["gen_ai.memory.query.text"] = subject.query  # redacted before it was asked
        many = cast("list[object]", answer) if isinstance(answer, list) else [answer]
        with harmless:  # the redaction is the user's
            scores = [(one.memory, {"score": one.similarity}) for one in many if isinstance(one, Hit)]
            texts = scores or [(one, {}) for one in many if isinstance(one, Memory)]
            if records := [{"id": one.id, "content": self.redacted(one.content), **score} for one, score in texts]:
                attributes["gen_ai.memory.records"] = json.dumps(records, ensure_ascii=False)
        return attributes


def delivered(flow: Flow[Memory], draft: Draft, url: str, origin: str | None, attempt: int) -> Flow[Memory]:
    """The delivery of a queued memory in a span of its own, linked to the one that queued it (a traceparent)."""
    if not listening():
        return flow
    # Never a child: it may be hours later, in another process, or in the middle of another call.
    known = _known("remember", draft.agent_id, draft) | {"kronmem.attempt": attempt}
    return _traced(flow, partial(_call, url, known, _context({}), origin), partial(_counts, subject=draft))


def _traced(flow: Flow[T], begin: Callable[[], Span], outcome: Callable[[T], Attributes]) -> Flow[T]:
    with begin() as span:
        answer = yield from span.carry(flow)
        span.set(outcome(answer))
    return answer


def _call(url: str, known: Attributes, parent: context.Context | None = None, origin: str | None = None) -> Span:
    service = _service(url)
    kind = "CLIENT" if service else "INTERNAL"  # the engine in this process has no address
    return start(str(known[OPERATION]), {**known, **service}, kind, parent, origin)


@lru_cache(maxsize=64)
def _service(url: str) -> Attributes:
    """The service at a url, by host and port; never with its user, password, path or query."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return {}
    port = parts.port or (443 if parts.scheme == "https" else 80)
    vendor = {"gen_ai.provider.name": "kronvex"} if settings.Settings(url, parts.scheme).kronvex else {}
    return {"server.address": parts.hostname or "", "server.port": port, **vendor}


def _known(name: str, agent_id: str | None, subject: object) -> Attributes:
    """The attributes that are known before the call is made."""
    upsert = isinstance(subject, Draft) and (subject.key or subject.supersedes)
    single = 1 if isinstance(subject, (Draft, str)) else None
    attributes: dict[str, str | int | bool | None] = {
        OPERATION: "upsert_memory" if upsert else OPERATIONS[name],
        STORE: agent_id,
        CONVERSATION: _session(subject),
        RECORD: subject if isinstance(subject, str) else None,
        COUNT: len(cast("list[object]", subject)) if isinstance(subject, list) else single,
        QUEUED: name == "remember_later" or None,
    }
    return {key: value for key, value in attributes.items() if value is not None}


def _session(subject: object) -> str | None:
    asked = subject.asked if isinstance(subject, ContextQuery) else subject
    within = asked.within if isinstance(asked, RecallQuery) else asked
    many = cast("list[object]", within) if isinstance(within, list) else [within]
    sessions = {one.session_id if isinstance(one, (Draft, Memory, MemoryFilter)) else None for one in many}
    return sessions.pop() if len(sessions) == 1 else None


def _counts(answer: object, subject: object) -> Attributes:
    if isinstance(subject, Draft):  # stored, or put into the outbox instead
        stored = cast("list[object]", answer)[0] if isinstance(answer, list) else answer
        return {RECORD: stored.id, **({QUEUED: True} if stored.queued else {})} if isinstance(stored, Memory) else {}
    if isinstance(subject, ContextQuery):
        # A service that answers a ready text and no memories does not name how many there are.
        return {COUNT: len(subject.used)} if subject.used or not answer else {}
    count = answer.memories if isinstance(answer, Erasure) else answer
    count = len(cast("list[object]", count)) if isinstance(count, list) else count
    return {COUNT: count} if isinstance(count, int) and not isinstance(subject, list) else {}


@contextmanager
def serving(method: str, route: str, carrier: Mapping[str, str], status: Callable[[], int]) -> Generator[None]:
    """The SERVER span of one request, named by its route, in the trace that its sender began."""
    named: Attributes = {"http.route": route} if route else {}
    known = {"http.request.method": method, "url.scheme": "http", **named}
    parent = _context(carrier) if listening() else None
    with spanned(f"{method} {route}".rstrip(), known, "SERVER", parent) as span:
        try:
            yield
        finally:
            if code := status():  # 0: its sender was gone before
                span.set({"http.response.status_code": code})
            if code >= 500:  # only the server's own failures are errors of its span
                span.fail(str(code))


def engine(answer: Callable[[], Reply], route: routes.AnyRoute, segments: Mapping[str, str]) -> Reply:
    """Answer a request in the engine's span, if its route is a memory operation."""
    if route not in OPERATIONS or not listening():
        return answer()
    names = {"agent": STORE, "session": CONVERSATION, "memory": RECORD}
    known: Attributes = {names[part]: unquote(value) for part, value in segments.items() if part in names}
    known |= {OPERATION: OPERATIONS[route], **({COUNT: 1} if RECORD in known else {})}
    with spanned(OPERATIONS[route], known) as span:
        reply = answer()
        if reply.status >= 400:
            span.fail(status_class(reply.status).__name__)
    return reply
