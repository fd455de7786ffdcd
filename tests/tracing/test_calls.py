"""One span a public call, as the conventions' table says: embedded and served, in every shell."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.trace import SpanKind, StatusCode

from kronmem import Client, NotFoundError, Retry, memory_tools
from tests.conftest import unused
from tests.outbox.services import NOBODY, keeping
from tests.services import RawServer
from tests.services.raw import respond
from tests.shells import shell
from tests.tracing.recorder import COUNT, RECORD, STORE, Recorder, attributes, names, path, traceparent

TRACER = trace.get_tracer("test")


def asked_at(place: str, kind: str) -> AbstractContextManager[Any]:
    """A client of one shell, embedded or at a service in this process."""
    if place == "embedded":
        return shell(kind, "sqlite://")
    return shell(kind, place, api_key=next(unused), outbox=False)


@pytest.fixture(params=["embedded", "served"])
def place(request: pytest.FixtureRequest) -> str:
    """Where the memory is: "embedded", or the url of a service."""
    return str(request.getfixturevalue("home") if request.param == "served" else request.param)


def stored(client: Any, *texts: str) -> list[Any]:
    return [client.remember("ada", text) for text in texts]


# call → its span and the attributes beside operation, store and server
ROWS: dict[str, tuple[Callable[[Any, list[Any]], Any], str, Callable[[Any, list[Any]], dict[str, Any]]]] = {
    "remember": (lambda c, _: c.remember("ada", "one"), "create_memory", lambda a, _: {RECORD: a.id, COUNT: 1}),
    "key": (lambda c, _: c.remember("ada", "x", key="k"), "upsert_memory", lambda a, _: {RECORD: a.id, COUNT: 1}),
    "supersedes": (
        lambda c, old: c.remember("ada", "x", supersedes=old[0].id),
        "upsert_memory",
        lambda a, _: {RECORD: a.id, COUNT: 1},
    ),
    "session": (
        lambda c, _: c.remember("ada", "x", session_id="s-1"),
        "create_memory",
        lambda a, _: {RECORD: a.id, COUNT: 1, "gen_ai.conversation.id": "s-1"},
    ),
    "remember_many": (lambda c, _: c.remember_many("ada", ["x", "y", "z"]), "create_memory", lambda _a, _: {COUNT: 3}),
    "recall": (lambda c, _: c.recall("ada", "peanuts"), "search_memory", lambda a, _: {COUNT: len(a)}),
    "inject_context": (lambda c, _: c.inject_context("ada", "peanuts"), "search_memory", lambda _a, _: {COUNT: 2}),
    "inject_nothing": (
        lambda c, _: c.inject_context("ada", "peanuts", session_id="none"),
        "search_memory",
        lambda _a, _: {COUNT: 0, "gen_ai.conversation.id": "none"},
    ),
    "memories": (lambda c, _: c.memories("ada"), "search_memory", lambda _a, _: {COUNT: 2}),
    "history": (lambda c, old: c.history("ada", old[0].id), "search_memory", lambda a, _: {COUNT: len(a)}),
    "get": (lambda c, old: c.get("ada", old[0].id), "search_memory", lambda _a, old: {RECORD: old[0].id, COUNT: 1}),
    "update": (
        lambda c, old: c.update("ada", old[0].id, content="new"),
        "update_memory",
        lambda _a, old: {RECORD: old[0].id, COUNT: 1},
    ),
    "forget": (
        lambda c, old: c.forget("ada", old[0].id),
        "delete_memory",
        lambda _a, old: {RECORD: old[0].id, COUNT: 1},
    ),
    "clear": (lambda c, _: c.clear("ada"), "delete_memory", lambda _a, _: {COUNT: 2}),
    "erase": (lambda c, _: c.erase("ada"), "delete_memory_store", lambda _a, _: {COUNT: 2}),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_call_is_one_span_of_the_conventions(row: str, place: str, kind: str, recorder: Recorder) -> None:
    call, operation, expected = ROWS[row]
    with asked_at(place, kind) as client:
        old = stored(client, "Ada is allergic to peanuts", "Ada likes tea")
        recorder.clear()
        answer = call(client, old)
        (span,) = recorder.calls()
    assert (span.name, span.parent, span.status.status_code) == (operation, None, StatusCode.UNSET)
    assert span.kind is (SpanKind.INTERNAL if place == "embedded" else SpanKind.CLIENT)
    found = attributes(span)
    if place != "embedded":
        assert found.pop("server.address") == "127.0.0.1"
        assert isinstance(found.pop("server.port"), int)
    assert found == {"gen_ai.operation.name": operation, STORE: "ada", **expected(answer, old)}


def test_many_questions_are_one_span_each_under_one(place: str, kind: str, recorder: Recorder) -> None:
    with asked_at(place, kind) as client:
        stored(client, "Ada likes tea")
        recorder.clear()
        client.recall_many("ada", ["tea", "coffee", "milk"])
        client.recall_across(["ada", "bob"], "tea")
        spans = recorder.calls()
    assert names(spans) == [*["search_memory"] * 3, "recall_many", *["search_memory"] * 2, "recall_across"]
    many, across = spans[3], spans[6]
    assert (many.kind, across.kind, many.parent, across.parent) == (SpanKind.INTERNAL, SpanKind.INTERNAL, None, None)
    assert {one.parent and one.parent.span_id for one in spans[:3]} == {many.context.span_id}
    assert {one.parent and one.parent.span_id for one in spans[4:6]} == {across.context.span_id}
    assert sorted((attributes(one)[STORE], attributes(one)[COUNT]) for one in spans[4:6]) == [("ada", 1), ("bob", 0)]


def test_restoring_an_export_is_one_span_a_batch_under_one(place: str, kind: str, recorder: Recorder) -> None:
    with asked_at(place, kind) as client:
        stored(client, "Ada likes tea", "Ada likes milk")
        exported = client.memories("ada")
        recorder.clear()
        client.restore("bob", exported)
        spans = recorder.calls()
    assert [path(one, spans) for one in spans] == [["restore", "create_memory"], ["restore"]]
    assert (attributes(spans[0])[STORE], attributes(spans[0])[COUNT]) == ("bob", 2)


def test_other_calls_have_no_span_and_still_belong_to_the_callers_trace(kind: str, recorder: Recorder) -> None:
    with RawServer([respond(200, body=[])]) as server, shell(kind, server.url, outbox=False, retry=Retry(1)) as client:
        with TRACER.start_as_current_span("turn"):
            client.agents() if kind == "sync" else None
            client.health() if kind == "sync" else None
        if kind != "sync":
            client.agents()
        assert recorder.calls() == []
        if kind == "sync":
            (turn,) = recorder.wait(lambda spans: len(spans) == 1)
            sent = [request.headers["traceparent"] for request in server.requests]
            assert [one[:52] for one in sent] == [traceparent(turn)] * 2


def test_state_has_no_span(place: str, kind: str, recorder: Recorder) -> None:
    with asked_at(place, kind) as client:
        state = client.state("ada")
        state.set("colour", "green")
        assert state.get("colour") == "green"
        state.delete("colour")
        client.sessions("ada")
        assert recorder.calls() == []


def test_a_listing_of_many_pages_is_one_span(place: str, kind: str, recorder: Recorder) -> None:
    with asked_at(place, kind) as client:
        client.remember_many("ada", [f"memory number {number}" for number in range(250)])
        assert [attributes(one).get(COUNT) for one in recorder.calls()] == [250]  # in three batches
        recorder.clear()
        assert len(client.memories("ada")) == 250
        (span,) = recorder.calls()
    assert attributes(span)[COUNT] == 250


def test_a_dropped_listing_ends_its_span_and_never_is_the_current_one(recorder: Recorder) -> None:
    with Client("sqlite://") as client:
        client.remember_many("ada", [f"memory number {number}" for number in range(150)])
        recorder.clear()
        listing = client.memories("ada")
        next(listing)
        assert not trace.get_current_span().get_span_context().is_valid
        assert recorder.calls() == []
        del listing
        (span,) = recorder.calls()
    assert (span.name, attributes(span)[COUNT], span.status.status_code) == ("search_memory", 100, StatusCode.UNSET)


@pytest.mark.anyio
async def test_a_dropped_async_listing_ends_its_span(recorder: Recorder) -> None:
    from kronmem import AsyncClient

    client = AsyncClient("sqlite://")
    await client.remember_many("ada", ["one", "two"])
    recorder.clear()
    listing = client.memories("ada")
    async for _ in listing:
        assert not trace.get_current_span().get_span_context().is_valid
        break
    await listing.aclose()  # type: ignore[attr-defined] # an async generator
    (span,) = recorder.calls()
    assert (attributes(span)[COUNT], span.status.status_code) == (2, StatusCode.UNSET)
    await client.close()


def test_an_error_is_named_by_its_class_and_nothing_else(place: str, kind: str, recorder: Recorder) -> None:
    with asked_at(place, kind) as client:
        with pytest.raises(NotFoundError):
            client.forget("ada", "no-such-memory")
        (span,) = recorder.calls()
    assert span.status.status_code is StatusCode.ERROR
    assert (span.status.description, span.events) == (None, ())
    assert attributes(span)["error.type"] == "NotFoundError"
    assert (attributes(span)[RECORD], attributes(span)[COUNT]) == ("no-such-memory", 1)


def test_retries_are_events_and_every_attempt_carries_the_trace(kind: str, recorder: Recorder) -> None:
    retry = Retry(attempts=3, first=0.001)
    with RawServer([respond(503), respond(429), keeping]) as server:
        with shell(kind, server.url, outbox=False, retry=retry) as client:
            client.remember("ada", "text")
        (span,) = recorder.calls()
        sent = [request.headers["traceparent"] for request in server.requests]
    assert [one[:52] for one in sent] == [traceparent(span)] * 3
    assert [event.name for event in span.events] == ["kronmem.retry"] * 2
    found = [dict(event.attributes or {}) for event in span.events]
    assert [(one["kronmem.attempt"], one["error.type"]) for one in found] == [(1, "ServerError"), (2, "RateLimitError")]
    assert all(isinstance(one["kronmem.wait"], float) for one in found)
    assert span.status.status_code is StatusCode.UNSET


def test_a_breaker_that_opens_is_an_event(recorder: Recorder) -> None:
    with Client(NOBODY, outbox=False, retry=Retry(attempts=1)) as client:
        for _ in range(6):
            with pytest.raises(Exception, match=r"connect|breaker"):
                client.recall("ada", "tea")
    spans = recorder.calls()
    assert [len(one.events) for one in spans] == [0, 0, 0, 0, 1, 0]
    (event,) = spans[4].events
    assert (event.name, dict(event.attributes or {})) == ("kronmem.breaker", {"kronmem.breaker.state": "open"})
    kinds = [attributes(one)["error.type"] for one in spans]
    assert kinds == [*["TransportError"] * 5, "UnavailableError"]


def test_every_call_is_a_child_of_the_callers_span(place: str, recorder: Recorder) -> None:
    with asked_at(place, "sync") as client:
        with TRACER.start_as_current_span("turn"):
            client.remember("ada", "Ada likes tea")
            client.recall_many("ada", ["tea"])
            list(client.memories("ada"))
        turn = recorder.wait(lambda spans: "turn" in names(spans))
        paths = [path(one, turn) for one in recorder.calls()]
    assert paths == [
        ["turn", "create_memory"],
        ["turn", "recall_many", "search_memory"],
        ["turn", "recall_many"],
        ["turn", "search_memory"],
    ]


def test_a_bound_memory_and_its_tools_make_no_second_span(recorder: Recorder) -> None:
    with Client("sqlite://") as client:
        memory = client.agent("ada", session_id="s-1")
        tools = memory_tools(memory)
        with TRACER.start_as_current_span("turn"):
            memory.recall("tea")
            tools.remember("Ada likes tea")
            tools.recall("tea")
        spans = recorder.wait(lambda spans: "turn" in names(spans))
    assert [path(one, spans) for one in recorder.calls()] == [
        ["turn", "search_memory"],
        ["turn", "create_memory"],
        ["turn", "search_memory"],
    ]
    assert {attributes(one)["gen_ai.conversation.id"] for one in recorder.calls()} == {"s-1"}


def test_functions_of_the_user_run_under_the_span_of_the_call(recorder: Recorder) -> None:
    """An embedding model that is traced by itself belongs to the recall that asked it."""
    seen: list[str] = []

    def redact(text: str) -> str:
        return text

    class Watching:
        def send(self, request: Any) -> Any:
            seen.append(f"{trace.get_current_span().get_span_context().span_id:016x}")
            raise NotFoundError("no", status=404)

        def close(self) -> None: ...

    with Client("sqlite://", transport=Watching(), redact=redact) as client, pytest.raises(NotFoundError):
        client.recall("ada", "tea")
    (span,) = recorder.calls()
    assert seen == [f"{span.context.span_id:016x}"]
    assert not trace.get_current_span().get_span_context().is_valid


def test_baggage_stays_at_home(recorder: Recorder) -> None:
    token = context.attach(baggage.set_baggage("user", "ada@example.com"))
    try:
        with RawServer([keeping]) as server, Client(server.url, outbox=False) as client:
            client.remember("ada", "text")
            assert "traceparent" in server.requests[0].headers
            assert "baggage" not in server.requests[0].headers
    finally:
        context.detach(token)


def test_kronvex_is_named_as_the_provider_and_no_other_service_is(recorder: Recorder) -> None:
    def answer(request: Any) -> Any:
        import httpx

        return httpx.Response(200, json={"results": []})

    import httpx

    for url, provider in [("https://api.kronvex.io", "kronvex"), ("https://kronvex.io.example", None)]:
        recorder.clear()
        with Client(url, api_key="kv-x", outbox=False, transport=httpx.MockTransport(answer)) as client:
            client.recall("ada", "tea")
        (span,) = recorder.calls()
        assert attributes(span).get("gen_ai.provider.name") == provider
        assert (attributes(span)["server.port"], span.kind) == (443, SpanKind.CLIENT)
