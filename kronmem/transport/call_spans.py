"""A flow inside its span: both drivers carry it like any other, so tracing exists once for both shells.

With nobody listening the flow itself comes back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from kronmem import tracing
from kronmem.core.calls import ContextQuery, Draft, MemoryFilter, RecallQuery
from kronmem.core.circuit_breaker import Breaker
from kronmem.core.exchange import Flow, Step
from kronmem.core.memory_json import WirePage
from kronmem.core.paging import Walk
from kronmem.core.wire import Request
from kronmem.models import Erasure, Hit, Memory
from kronmem.tracing import COUNT, RECORD, Span, Value

if TYPE_CHECKING:
    from opentelemetry.context import Context

T = TypeVar("T")
PageFlow: TypeAlias = Flow[WirePage]


@dataclass(frozen=True)
class Tracer:
    """Puts the flows of one client into spans."""

    url: str
    breaker: Breaker
    redacted: Callable[[str], str]

    def traced(self, flow: Flow[T], name: str, agent_id: str | None, subject: object) -> Flow[T]:
        """The flow of one public call inside its span, under the span that is current now."""
        if not tracing.listening():
            return flow
        parent = tracing.current()
        if name not in tracing.OPERATIONS:
            return _observed(flow, Span(None, parent), parent)
        return self._traced(flow, name, agent_id, subject, parent)

    def walking(self, walk: Walk) -> AbstractContextManager[Callable[[PageFlow], PageFlow]]:
        """One span for all pages of a listing; the flow of each page goes through the answer."""
        return self._walking(walk) if tracing.listening() else nullcontext(_untouched)

    def around(self, name: str) -> AbstractContextManager[object]:
        """The span of a call that is made of many."""
        return tracing.spanned(name, {}) if tracing.listening() else nullcontext()

    def _traced(
        self, flow: Flow[T], name: str, agent_id: str | None, subject: object, parent: Context | None
    ) -> Flow[T]:
        span = _start(self.url, _known(name, agent_id, subject), parent)
        with _ending(span):
            answer = yield from _observed(flow, span, span.context, self.breaker)
            span.set(_outcome(answer, subject))
            if tracing.captures_content():
                with tracing.harmless():  # the redaction is the user's
                    span.set(self._content(answer, subject))
        return answer

    @contextmanager
    def _walking(self, walk: Walk) -> Generator[Callable[[PageFlow], PageFlow], None, None]:
        span = _start(self.url, _known("memories", walk.agent_id, walk.within), tracing.current())
        with _ending(span):
            try:
                yield lambda flow: _observed(flow, span, span.context, self.breaker)
            finally:
                span.set({COUNT: walk.found})

    def _content(self, answer: object, subject: object) -> dict[str, Value]:
        """The texts that went out and came back, redacted."""
        found: dict[str, Value] = {}
        asked = subject.asked if isinstance(subject, ContextQuery) else subject
        if isinstance(asked, RecallQuery):
            found[tracing.QUERY] = asked.query  # redacted before it was asked
        memories = subject.used if isinstance(subject, ContextQuery) else answer
        many = cast("list[object]", memories) if isinstance(memories, list) else [memories]
        if records := [self._record(one) for one in many if isinstance(one, (Hit, Memory))]:
            found[tracing.RECORDS] = json.dumps(records, ensure_ascii=False)
        return found

    def _record(self, one: Hit | Memory) -> dict[str, Value]:
        if isinstance(one, Hit):
            return {**self._record(one.memory), "score": one.similarity}
        return {"id": one.id, "content": self.redacted(one.content)}


def delivered(flow: Flow[Memory], draft: Draft, url: str, origin: str | None, attempt: int) -> Flow[Memory]:
    """The delivery of a queued memory in a span of its own, linked to the one that queued it (a traceparent)."""
    return _delivered(flow, draft, url, origin, attempt) if tracing.listening() else flow


def _delivered(flow: Flow[Memory], draft: Draft, url: str, origin: str | None, attempt: int) -> Flow[Memory]:
    attributes = _known("remember", draft.agent_id, draft) | {tracing.ATTEMPT: attempt}
    # Never a child: it may be hours later, in another process, or in the middle of somebody else's call.
    span = _start(url, attributes, tracing.nowhere(), origin)
    with _ending(span):
        stored = yield from _observed(flow, span, span.context)
        span.set(_outcome(stored, draft))
    return stored


def propagated(flow: Flow[T]) -> Flow[T]:
    """A flow without a span of its own, whose requests belong to the caller's trace."""
    return _observed(flow, Span(None, None), tracing.current()) if tracing.listening() else flow


def _untouched(flow: PageFlow) -> PageFlow:
    return flow


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _observed(flow: Flow[T], span: Span, context: Context | None, breaker: Breaker | None = None) -> Flow[T]:
    """Pass every step on under the trace context; events are noted, and requests carry it."""
    state = breaker.state if breaker is not None else ""
    token = tracing.attach(context)
    try:
        step = next(flow)
        while True:
            try:
                reply = yield _outgoing(step, span, context)
            except BaseException as error:  # noqa: BLE001 -- the flow decides what to do, cancellation included
                step = flow.throw(error)
            else:
                step = flow.send(reply)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
    finally:
        tracing.detach(token)
        if breaker is not None and breaker.state != state:
            span.event(tracing.BREAKER, {f"{tracing.BREAKER}.state": breaker.state})


def _outgoing(step: Step, span: Span, context: Context | None) -> Step:
    if not isinstance(step, Request):
        if step.event is not None:
            span.event(step.event.name, step.event.attributes)
        return step
    if any(name == "traceparent" for name, _ in step.headers):  # of a delivery within this call
        return step
    return replace(step, headers=(*step.headers, *tracing.headers(context)))


# ── spans ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _start(url: str, attributes: dict[str, Value], parent: Context | None, origin: str | None = None) -> Span:
    service = tracing.service(url)
    kind = "CLIENT" if service.remote else "INTERNAL"
    name = str(attributes[tracing.OPERATION])
    return tracing.start(name, {**attributes, **service.attributes}, kind=kind, parent=parent, linked=origin)


@contextmanager
def _ending(span: Span) -> Generator[None, None, None]:
    try:
        yield
    except GeneratorExit:  # dropped half-way, which is no error
        raise
    except BaseException as error:
        span.fail(type(error).__name__)
        raise
    finally:
        span.end()


def _known(name: str, agent_id: str | None, subject: object) -> dict[str, Value]:
    """The attributes that are known before the call is made."""
    found: dict[str, Value] = {tracing.OPERATION: tracing.OPERATIONS[name]}
    if agent_id is not None:
        found[tracing.STORE] = agent_id
    if (session := _session(subject)) is not None:
        found[tracing.CONVERSATION] = session
    if isinstance(subject, Draft):
        found[COUNT] = 1
        if subject.key is not None or subject.supersedes is not None:
            found[tracing.OPERATION] = tracing.OPERATIONS["upsert"]
    elif isinstance(subject, list):
        found[COUNT] = len(cast("list[object]", subject))
    elif isinstance(subject, str):
        found |= {RECORD: subject, COUNT: 1}
    if name == "remember_later":
        found[tracing.QUEUED] = True
    return found


def _session(subject: object) -> str | None:
    if isinstance(subject, list):
        many = cast("list[Draft | Memory]", subject)
        return many[0].session_id if len({one.session_id for one in many}) == 1 else None
    if isinstance(subject, (Draft, MemoryFilter)):
        return subject.session_id
    asked = subject.asked if isinstance(subject, ContextQuery) else subject
    return asked.within.session_id if isinstance(asked, RecallQuery) else None


def _outcome(answer: object, subject: object) -> dict[str, Value]:
    """The attributes that the answer brings."""
    if isinstance(subject, ContextQuery):
        # A service that answers a ready text and no memories does not tell how many there are.
        return {COUNT: len(subject.used)} if subject.used or not answer else {}
    if isinstance(subject, Draft):
        return _stored(answer)
    if isinstance(subject, list):
        return {}
    if isinstance(answer, list):
        return {COUNT: len(cast("list[object]", answer))}
    if isinstance(answer, Erasure):
        return {COUNT: answer.memories}
    return {COUNT: answer} if isinstance(answer, int) else {}


def _stored(answer: object) -> dict[str, Value]:
    """The id of the memory that was stored, or put into the outbox instead."""
    stored = cast("list[object]", answer)[0] if isinstance(answer, list) else answer
    if not isinstance(stored, Memory):
        return {}
    return {RECORD: stored.id, tracing.QUEUED: True} if stored.queued else {RECORD: stored.id}
