"""OpenTelemetry spans by the `gen_ai.memory` conventions (status: development; every name of theirs stands here).

`opentelemetry` is no dependency and is never imported by us first: while nobody else has loaded it, nobody listens.
A tracer or exporter that fails never fails a call.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from kronmem import settings

if TYPE_CHECKING:
    from opentelemetry import trace
    from opentelemetry.context import Context

Value: TypeAlias = "str | int | float | bool"

OPERATION, STORE = "gen_ai.operation.name", "gen_ai.memory.store.id"
RECORD, COUNT = "gen_ai.memory.record.id", "gen_ai.memory.record.count"
PROVIDER, CONVERSATION = "gen_ai.provider.name", "gen_ai.conversation.id"
QUERY, RECORDS = "gen_ai.memory.query.text", "gen_ai.memory.records"
ERROR = "error.type"
QUEUED, ATTEMPT, WAIT, BREAKER = "kronmem.queued", "kronmem.attempt", "kronmem.wait", "kronmem.breaker"
"""Ours: the conventions have no names for these."""

OPERATIONS = {
    "remember": "create_memory",
    "remember_later": "create_memory",
    "remember_many": "create_memory",
    "restore": "create_memory",
    "upsert": "upsert_memory",
    "recall": "search_memory",
    "inject_context": "search_memory",
    "memories": "search_memory",
    "history": "search_memory",
    "get": "search_memory",
    "update": "update_memory",
    "forget": "delete_memory",
    "clear": "delete_memory",
    "erase": "delete_memory_store",
}
"""The calls that are memory operations, and their names in the conventions; other calls have no span."""

SWITCH = "KRONMEM_TRACING"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CARRIED = ("traceparent", "tracestate")
"""The headers that go out; never `baggage`, which may hold a user's data."""

log = logging.getLogger("kronmem.tracing")
_modules = sys.modules
_UNKNOWN = object()
_BY_ENVIRONMENT = "OTEL_PYTHON_TRACER_PROVIDER" in os.environ
"""Whether OpenTelemetry is to load a provider by itself, at the first question for one."""
_failed: set[str] = set()


def listening() -> bool:
    """Whether a span of this call would reach anybody. Cheap: the first thing that every call asks."""
    api = _modules.get("opentelemetry.trace")
    if api is None and not _BY_ENVIRONMENT:
        return False
    try:
        if not _has_provider(api):
            return False
    except Exception as error:  # noqa: BLE001 -- half imported by another thread, or a provider that cannot be loaded
        _complain(error)
        return False
    return os.environ.get(SWITCH, "").lower() != "off"


def _has_provider(api: ModuleType | None) -> bool:
    # Past the public getter, which searches the environment at every call and so takes longer than all the rest.
    provider: object = vars(api).get("_TRACER_PROVIDER", _UNKNOWN) if api is not None else _UNKNOWN
    if provider is None and not _BY_ENVIRONMENT:
        return False
    from opentelemetry import trace

    if provider is None or provider is _UNKNOWN:
        provider = trace.get_tracer_provider()
    return not isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider))


def captures_content() -> bool:
    """Whether the user asked for texts in spans: the word "true" and nothing else."""
    return os.environ.get(CONTENT) == "true"


@dataclass(frozen=True)
class TracedService:
    """The side that answers, as spans name it: a service, or the engine in this process."""

    remote: bool
    attributes: Mapping[str, Value] = field(default_factory=lambda: dict[str, Value]())


@lru_cache(maxsize=64)
def service(url: str) -> TracedService:
    """The service at a url, by host and port; never with its user, password, path or query."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return TracedService(remote=False)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    found: dict[str, Value] = {"server.address": parts.hostname or "", "server.port": port}
    if settings.Settings(url, parts.scheme).kronvex:
        found[PROVIDER] = "kronvex"
    return TracedService(remote=True, attributes=found)


class Span:
    """One span, or none where starting it failed. No method raises."""

    def __init__(self, inner: trace.Span | None, parent: Context | None) -> None:
        self._inner, self._parent = inner, parent
        self._carried: Context | None = None

    def set(self, attributes: Mapping[str, Value]) -> None:
        """Add attributes."""
        if self._inner is not None:
            with harmless():
                self._inner.set_attributes(attributes)

    def event(self, name: str, attributes: Mapping[str, Value]) -> None:
        """Note something that happened within it."""
        if self._inner is not None:
            with harmless():
                self._inner.add_event(name, attributes)

    def fail(self, kind: str) -> None:
        """Mark it as failed by the name of the error's class: messages hold texts, paths and addresses."""
        if self._inner is not None:
            with harmless():
                from opentelemetry.trace import Status, StatusCode

                self._inner.set_attribute(ERROR, kind)
                self._inner.set_status(Status(StatusCode.ERROR))

    def end(self) -> None:
        """End it."""
        if self._inner is not None:
            with harmless():
                self._inner.end()

    @property
    def context(self) -> Context | None:
        """The context in which it is the current span; None: it could not be started."""
        if self._carried is None and self._inner is not None:
            with harmless():
                from opentelemetry.trace import set_span_in_context

                self._carried = set_span_in_context(self._inner, self._parent)
        return self._carried

    @property
    def trace_id(self) -> str:
        """The trace that it belongs to, as logs write it; "" for none."""
        with harmless():
            if self._inner is not None and (found := self._inner.get_span_context()).is_valid:
                return f"{found.trace_id:032x}"
        return ""

    @contextmanager
    def current(self) -> Generator[None, None, None]:
        """Make it the current span of this context, so that spans of others become its children."""
        token = attach(self.context)
        try:
            yield
        finally:
            detach(token)


def start(
    name: str,
    attributes: Mapping[str, Value],
    *,
    kind: str = "INTERNAL",
    parent: Context | None = None,
    linked: str | None = None,
) -> Span:
    """Start a span under `parent`, or the current one; `linked` is the traceparent of a span that it follows."""
    with harmless():
        from opentelemetry import trace

        links = [trace.Link(found)] if linked is not None and (found := _read(linked)) is not None else None
        tracer = trace.get_tracer("kronmem", settings.installed_version())
        inner = tracer.start_span(name, parent, trace.SpanKind[kind], attributes, links, record_exception=False)
        return Span(inner, parent)
    return Span(None, parent)


@contextmanager
def spanned(
    name: str, attributes: Mapping[str, Value], *, kind: str = "INTERNAL", parent: Context | None = None
) -> Generator[Span, None, None]:
    """A current span around a block of code; an exception that leaves it is named by its class."""
    span = start(name, attributes, kind=kind, parent=current() if parent is None else parent)
    try:
        with span.current():
            yield span
    except BaseException as error:
        span.fail(type(error).__name__)
        raise
    finally:
        span.end()


def current() -> Context | None:
    """The trace context of the caller, for work that is done elsewhere."""
    with harmless():
        from opentelemetry import context

        return context.get_current()
    return None


def nowhere() -> Context | None:
    """A context without a span: its spans are roots."""
    with harmless():
        from opentelemetry.context import Context

        return Context()
    return None


def incoming(carrier: Mapping[str, str]) -> Context | None:
    """The trace context that a request brought along."""
    with harmless():
        from opentelemetry import propagate

        return propagate.extract({name: carrier[name] for name in CARRIED if name in carrier}, nowhere())
    return None


def headers(context: Context | None) -> tuple[tuple[str, str], ...]:
    """A trace context as headers; none where there is no span."""
    with harmless():
        from opentelemetry import propagate

        carrier: dict[str, str] = {}
        propagate.inject(carrier, context)
        found = ((name, carrier[name]) for name in CARRIED if name in carrier)
        return tuple((name, value) for name, value in found if value.isascii() and value.isprintable())
    return ()


def traceparent() -> str | None:
    """The current span as one line that a file can keep."""
    return dict(headers(None)).get("traceparent")


def attach(context: Context | None) -> object:
    """Make a context current; the answer is for `detach`."""
    if context is not None:
        with harmless():
            from opentelemetry import context as api

            return api.attach(context)
    return None


def detach(token: object) -> None:
    """Go back to the context before `attach`."""
    if token is not None:
        with harmless():
            from opentelemetry import context as api

            api.detach(token)  # type: ignore[arg-type] # as `attach` gave it


def _read(traceparent: str) -> trace.SpanContext | None:
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = TraceContextTextMapPropagator().extract({"traceparent": traceparent}, context=nowhere())
    found = trace.get_current_span(context).get_span_context()
    return found if found.is_valid else None


@contextmanager
def harmless() -> Generator[None, None, None]:
    """Log an exception once and go on without the span."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 -- a tracer is anybody's code, and no call fails because of one
        _complain(error)


def _complain(error: Exception) -> None:
    """Say each kind of failure once: a broken tracer fails at every call."""
    kind = type(error).__name__
    if kind not in _failed:
        _failed.add(kind)
        log.warning("a span could not be recorded (%s); calls go on without it", kind)
