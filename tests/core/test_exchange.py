"""The policy of a call, stepped by hand: no clock, no socket, no sleep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, cast

import pytest

from kronmem import (
    ConfigError,
    DeadlineError,
    FanOutError,
    NotFoundError,
    QuotaError,
    RateLimitError,
    ReplyError,
    Retry,
    ServerError,
    TransportError,
    UnavailableError,
)
from kronmem.core import calls, flows
from kronmem.core.abilities import RemoteService
from kronmem.core.exchange import Link, Pause, exchange
from kronmem.core.flows import Walk
from kronmem.core.policy import Breaker, RetryBudget, retry_after
from kronmem.core.wire import Reply, Request
from kronmem.kronvex import Kronvex
from kronmem.kronvex.agents import Resolver

RECALL = calls.recall("alice", "question", 5, calls.MemoryFilter(), None, most=20)
FORGET = calls.forget("alice", "m1")
FOUND = Reply(200, b'{"results": []}')
NO_UUID = Reply(422, b'{"detail":[{"type":"uuid_parsing","loc":["path","agent_id"],"msg":"no","input":"alice"}]}')
NO_AGENT = Reply(404, b'{"detail":"Agent not found"}')


@dataclass
class Clock:
    """A clock that only moves when told to."""

    time: float = 1000.0

    def __call__(self) -> float:
        return self.time


class Steps:
    """Plays the driver: answers each request from a list and lets pauses pass on the clock."""

    def __init__(self, flow: Any, clock: Clock, *answers: Reply | TransportError | float) -> None:
        self.flow, self.clock, self.answers = flow, clock, list(answers)
        self.requests: list[Request] = []
        self.pauses: list[float] = []

    def run(self) -> Any:
        try:
            step = next(self.flow)
            while True:
                step = self._answer(step)
        except StopIteration as stop:
            return stop.value

    def _answer(self, step: Request | Pause) -> Any:
        if isinstance(step, Pause):
            self.pauses.append(step.seconds)
            self.clock.time += step.seconds
            return self.flow.send(Reply(0))
        self.requests.append(step)
        answer = self.answers.pop(0)
        if isinstance(answer, float):  # time passes on the wire, then comes the next answer
            self.clock.time += answer
            answer = self.answers.pop(0)
        return self.flow.throw(answer) if isinstance(answer, TransportError) else self.flow.send(answer)


def link(clock: Clock, *, version: tuple[int, ...] | None = None, missing: Iterable[str] = (), **options: Any) -> Link:
    return Link(clock, lambda: 1.0, RemoteService(Kronvex(), version, missing=set(missing)), **options)


def vendor_of(known: Link) -> Kronvex:
    return cast("Kronvex", known.service.vendor)


def steps(call: Any, *answers: Any, timeout: float = 10.0, **options: Any) -> Steps:
    clock = Clock()
    return Steps(exchange(call, link(clock, **options), timeout), clock, *answers)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_passing_fault_is_tried_again(status: int) -> None:
    played = steps(RECALL, Reply(status, b"<html>"), Reply(status), FOUND)
    assert played.run() == []
    assert played.pauses == [0.25, 0.5]
    assert len({request.body for request in played.requests}) == 1


def test_a_broken_connection_is_tried_again() -> None:
    assert steps(RECALL, TransportError("refused", sent=False), TransportError("reset"), FOUND).run() == []


def test_three_attempts_are_all() -> None:
    played = steps(RECALL, *[Reply(503, b'{"detail":"down"}')] * 3)
    with pytest.raises(ServerError, match="503: down"):
        played.run()
    assert len(played.requests) == 3
    with pytest.raises(TransportError, match="third"):
        steps(RECALL, TransportError("first"), TransportError("second"), TransportError("third")).run()


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 409, 422])
def test_a_refusal_is_final(status: int) -> None:
    played = steps(RECALL, Reply(status, b'{"detail":"no"}'))
    with pytest.raises(Exception, match="no"):
        played.run()
    assert len(played.requests) == 1


def test_every_attempt_of_a_remember_carries_the_same_id() -> None:
    draft = calls.Draft("alice", "id-1", "text")
    played = steps(
        calls.remember(draft), Reply(503), TransportError("reset"), Reply(201, b'{"id":"x","content":"text"}')
    )
    assert played.run().id == "x"
    assert {dict(request.headers)["idempotency-key"] for request in played.requests} == {"id-1"}
    assert all(b'"kronmem":{"id":"id-1"}' in (request.body or b"") for request in played.requests)


def test_waits_double_up_to_the_longest_with_full_jitter() -> None:
    retry = Retry(attempts=9, first=1.0, longest=5.0)
    assert [retry.wait(attempt, lambda: 1.0) for attempt in range(1, 6)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert retry.wait(3, lambda: 0.25) == 1.0
    with pytest.raises(ConfigError):
        Retry(attempts=0)


def test_retry_after_is_obeyed_when_there_is_time() -> None:
    played = steps(RECALL, Reply(429, headers={"retry-after": "3"}), FOUND)
    assert played.run() == []
    assert played.pauses == [3.0]


def test_retry_after_beyond_the_deadline_is_surfaced_at_once() -> None:
    played = steps(RECALL, Reply(429, b'{"detail":"slow"}', {"retry-after": "60"}))
    with pytest.raises(RateLimitError) as caught:
        played.run()
    assert (caught.value.retry_after, caught.value.status, caught.value.message) == (60.0, 429, "slow")
    assert played.pauses == []


def test_retry_after_takes_both_forms_and_ignores_garbage() -> None:
    def read(value: str, **headers: str) -> float | None:
        return retry_after(Reply(429, headers={"retry-after": value, **headers}, at=1_700_000_000.0))

    date = format_datetime(datetime.fromtimestamp(1_700_000_030, UTC), usegmt=True)
    theirs = format_datetime(datetime.fromtimestamp(1_700_000_020, UTC), usegmt=True)
    assert read("7") == 7.0
    assert read("0.5") == 0.5
    assert read(date) == 30.0
    assert read(date, date=theirs) == 10.0
    assert [read(value) for value in ("-1", "soon", "nan", "inf", "1e999", "", "Mon, 99 Foo 2026", "٣")] == [
        None
    ] * 7 + [3.0]
    assert read(format_datetime(datetime.fromtimestamp(1, UTC), usegmt=True)) is None


@pytest.mark.parametrize("said", ['{"error": "no_such_thing"}', '["no such thing"]'])
def test_a_404_may_say_anything(said: str) -> None:
    for call in (RECALL, calls.update("alice", "m1", calls.MemoryChange(content="x"))):
        with pytest.raises(NotFoundError):
            steps(call, Reply(404, f'{{"detail": {said}}}'.encode())).run()


@pytest.mark.parametrize("date", ["Mon, 01 Jan 99999999999 00:00:00 GMT", "soon", ""])
def test_a_used_up_day_ends_at_midnight_by_the_time_of_arrival_without_a_date(date: str) -> None:
    evening = datetime(2026, 6, 1, 18, tzinfo=UTC).timestamp()
    spent = b'{"detail": {"error": "daily_quota_exceeded"}}'
    with pytest.raises(RateLimitError) as caught:
        steps(RECALL, Reply(429, spent, {"retry-after": "86400", "date": date}, evening)).run()
    assert caught.value.retry_after == 6 * 3600.0


def test_the_deadline_covers_attempts_and_pauses() -> None:
    played = steps(RECALL, 1.0, Reply(503), 8.9, Reply(503), FOUND)
    with pytest.raises(ServerError):
        played.run()
    assert [round(request.timeout, 2) for request in played.requests] == [10.0, 8.75]
    late = steps(RECALL, 11.0, Reply(422, NO_UUID.body))
    with pytest.raises(DeadlineError):
        late.run()


def test_a_delete_that_was_done_unheard_is_done() -> None:
    gone = Reply(404, b'{"detail":"Memory not found"}')
    assert steps(FORGET, TransportError("reset"), gone).run() is None
    assert steps(FORGET, Reply(504), Reply(503), gone).run() is None
    with pytest.raises(NotFoundError):
        steps(FORGET, gone).run()


@pytest.mark.parametrize("first", [Reply(503), Reply(429), TransportError("refused", sent=False)])
def test_a_delete_that_never_arrived_finds_nothing_to_delete(first: Any) -> None:
    with pytest.raises(NotFoundError):
        steps(FORGET, first, Reply(404, b'{"detail":"Memory not found"}')).run()


class Interrupted(Exception):
    """Out of a signal handler."""


@pytest.mark.parametrize("work", ["_find_or_make", "_rename"])
def test_a_look_up_that_a_signal_breaks_off_at_its_first_step_is_nobodys(
    work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    known = link(clock)
    remember = calls.remember(calls.Draft("alice", "id-1", "text"))
    one_agent = Reply(402, b'{"detail":{"limit":1}}')
    only = Reply(200, b'[{"id":"u1","name":"demo","memory_count":0}]')

    def interrupt(*_: object) -> Any:
        raise Interrupted

    with monkeypatch.context() as patched:
        patched.setattr(Resolver, work, interrupt)
        with pytest.raises(Interrupted):
            Steps(exchange(remember, known, 10), clock, NO_UUID, only, one_agent, only).run()
    assert vendor_of(known).flights == {}
    found = Reply(200, b'[{"id":"u2","name":"alice"}]')
    assert Steps(exchange(RECALL, known, 10), clock, NO_UUID, found, FOUND).run() == []


# ── names and ids ────────────────────────────────────────────────────────────────────────────────────────────────


def agents(*rows: tuple[str, str, int]) -> Reply:
    items = [f'{{"id":"{one}","name":"{name}","created_at":"2026-01-0{day}T00:00:00Z"}}' for one, name, day in rows]
    return Reply(200, f"[{','.join(items)}]".encode())


def test_a_read_of_an_unknown_name_is_empty_and_creates_nothing() -> None:
    played = steps(RECALL, NO_UUID, agents(("u9", "bob", 1)))
    assert played.run() == []
    assert [request.method for request in played.requests] == ["POST", "GET"]


def test_a_name_is_looked_up_once_and_the_oldest_wins() -> None:
    clock = Clock()
    known = link(clock)
    first = Steps(exchange(RECALL, known, 10), clock, NO_UUID, agents(("u2", "alice", 2), ("u1", "alice", 1)), FOUND)
    assert first.run() == []
    assert [request.path for request in first.requests][-1] == "/api/v1/agents/u1/recall"
    second = Steps(exchange(RECALL, known, 10), clock, FOUND)
    second.run()
    assert [request.path for request in second.requests] == ["/api/v1/agents/u1/recall"]


def test_a_write_creates_the_agent_and_ends_on_the_oldest() -> None:
    stored, made = Reply(201, b'{"id":"m","content":"text"}'), Reply(201, b'{"id":"u5","name":"alice"}')
    write = calls.remember(calls.Draft("alice", "id-1", "text"))
    played = steps(write, NO_UUID, agents(), made, agents(("u5", "alice", 5), ("u4", "alice", 4)), stored)
    assert played.run().agent_id == "alice"
    assert played.requests[2].body == b'{"name":"alice"}'
    assert played.requests[-1].path == "/api/v1/agents/u4/remember"


def test_a_refused_creation_is_an_error_unless_someone_else_made_it() -> None:
    refused = Reply(402, b'{"detail":{"error":"agent_limit_reached","message":"one agent only"}}')
    write = calls.remember(calls.Draft("alice", "id-1", "text"))
    with pytest.raises(Exception, match="402: one agent only"):
        steps(write, NO_UUID, agents(), refused, agents()).run()
    stored = Reply(201, b'{"id":"m","content":"text"}')
    assert steps(write, NO_UUID, agents(), refused, agents(("u1", "alice", 1)), stored).run().id == "m"


def test_an_agent_that_vanished_is_looked_up_again() -> None:
    clock = Clock()
    known = link(clock)
    vendor_of(known).ids["alice"] = "old"
    played = Steps(exchange(RECALL, known, 10), clock, NO_AGENT, agents(("new", "alice", 1)), FOUND)
    assert played.run() == []
    assert [request.path.split("/")[4:] for request in played.requests] == [["old", "recall"], [], ["new", "recall"]]


@pytest.mark.parametrize("name", ["0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d", "0b9f1c1e6d5a4d3f9c552f3f3a0f7b1d"])
def test_a_uuid_of_the_users_own_is_a_name_like_any_other(name: str) -> None:
    read = calls.recall(name, "question", 5, calls.MemoryFilter(), None, most=20)
    assert steps(read, NO_AGENT, agents()).run() == []
    write, made = (
        calls.remember(calls.Draft(name, "id-1", "text")),
        Reply(201, f'{{"id":"u5","name":"{name}"}}'.encode()),
    )
    played = steps(write, NO_AGENT, agents(), made, agents(("u5", name, 5)), Reply(201, b'{"id":"m","content":"text"}'))
    assert played.run().agent_id == name
    assert played.requests[-1].path == "/api/v1/agents/u5/remember"


# ── breaker and budget ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_breaker_opens_probes_once_and_doubles_its_pause() -> None:
    said: list[str] = []
    breaker = Breaker(said.append)
    for now in range(5):
        breaker.admit(now)
        breaker.failed(now)
    with pytest.raises(UnavailableError) as caught:
        breaker.admit(4.5)
    assert caught.value.retry_after == 0.5
    breaker.admit(5.0)
    with pytest.raises(UnavailableError):
        breaker.admit(5.0)
    pauses = []
    for _ in range(7):
        breaker.failed(10.0)
        pauses.append(breaker.pause)
        breaker.admit(10.0 + breaker.pause)
    assert pauses == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    breaker.succeeded()
    breaker.admit(0.0)
    assert said[:3] == ["open", "half-open", "open"]
    assert said[-1] == "closed"


def test_an_open_breaker_names_the_address_and_the_next_attempt() -> None:
    breaker = Breaker(address="https://memory.example:443", state="open", opened_at=10.0, pause=4.0)
    with pytest.raises(
        UnavailableError, match=r"^circuit breaker open for https://memory\.example:443, next attempt in 4 s$"
    ):
        breaker.admit(10.5)
    breaker.admit(14.0)
    with pytest.raises(UnavailableError, match="next attempt after the probe under way"):
        breaker.admit(20.0)


def test_a_probe_that_nobody_heard_of_again_does_not_bar_others_for_ever() -> None:
    breaker = Breaker(state="open", opened_at=0.0, pause=1.0)
    breaker.admit(1.0)
    breaker.admit(31.0)
    assert breaker.state == "half-open"


def test_a_probe_that_was_given_up_does_not_block_the_next() -> None:
    clock = Clock()
    known = link(clock, breaker=Breaker(state="open"))
    flow = exchange(RECALL, known, 10)
    next(flow)
    assert known.breaker.state == "half-open"
    with pytest.raises(KeyboardInterrupt):
        flow.throw(KeyboardInterrupt())
    assert known.breaker.state == "open"
    known.breaker.admit(clock())


def test_an_outage_costs_few_requests_and_fails_fast() -> None:
    clock = Clock()
    known = link(clock)
    sent = 0
    for _ in range(1000):
        played = Steps(exchange(RECALL, known, 10), clock, *[Reply(503)] * 3)
        with pytest.raises((ServerError, UnavailableError)):
            played.run()
        sent += len(played.requests)
        clock.time += 0.01
    assert sent < 20


def test_retries_are_bounded_by_a_budget_that_successes_refill() -> None:
    budget = RetryBudget()
    assert [budget.spend() for _ in range(11)] == [True] * 10 + [False]
    for _ in range(4):
        budget.earn()
    assert not budget.spend()
    budget.earn()
    assert budget.spend()


@pytest.mark.parametrize(
    "answer",
    [Reply(503, b"{}", {"kronmem-unavailable": "agent"}), TransportError("a node is away", partial=True)],
    ids=["served", "direct"],
)
def test_agents_on_a_dead_node_keep_the_breaker_closed_for_all_others(answer: Reply | TransportError) -> None:
    clock = Clock()
    known = link(clock)
    for _ in range(20):
        with pytest.raises((ServerError, TransportError)):
            Steps(exchange(RECALL, known, 10), clock, *[answer] * 3).run()
    assert known.breaker.state == "closed"
    assert Steps(exchange(RECALL, known, 10), clock, FOUND).run() == []


def test_a_refusal_keeps_the_breaker_closed() -> None:
    clock = Clock()
    known = link(clock)
    for _ in range(20):
        with pytest.raises(NotFoundError):
            Steps(exchange(RECALL, known, 10), clock, Reply(404, b"{}")).run()
    assert known.breaker.state == "closed"


# ── flows and pages ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_service_without_batches_is_asked_one_by_one_from_then_on() -> None:
    clock = Clock()
    known = link(clock)
    drafts = [calls.Draft("alice", f"id-{n}", f"text {n}") for n in range(2)]
    stored = [Reply(201, f'{{"id":"m{n}","content":"text {n}"}}'.encode()) for n in range(2)]
    played = Steps(
        flows.remember_many(drafts, known, 10, []), clock, Reply(405, b'{"detail":"Method Not Allowed"}'), *stored
    )
    assert [memory.id for memory in played.run()] == ["m0", "m1"]
    again = Steps(flows.remember_many(drafts, known, 10, []), clock, *stored)
    assert len(again.run()) == 2


def test_a_batch_that_breaks_half_way_says_what_was_stored() -> None:
    clock = Clock()
    known = link(clock, retry=Retry(attempts=1), missing=["remember_many"])
    drafts = [calls.Draft("alice", f"id-{n}", f"text {n}") for n in range(3)]
    played = Steps(
        flows.remember_many(drafts, known, 10, []), clock, Reply(201, b'{"id":"m0","content":"t"}'), Reply(402, b"{}")
    )
    with pytest.raises(Exception, match="1 memories were stored") as caught:
        played.run()
    assert [memory.id for memory in caught.value.partial.values()] == ["m0"]  # type: ignore[attr-defined] # FanOutError
    assert list(caught.value.causes) == [1]  # type: ignore[attr-defined] # FanOutError


def test_a_second_batch_that_fails_says_what_the_first_stored() -> None:
    clock, stored = Clock(), list[Any]()
    drafts = [calls.Draft("alice", f"id-{n}", f"text {n}") for n in range(150)]
    rows = ",".join(f'{{"id":"m{n}","content":"t"}}' for n in range(100))
    first = Reply(201, f'{{"memories":[{rows}]}}'.encode())
    with pytest.raises(FanOutError, match="100 memories were stored") as caught:
        Steps(
            flows.remember_many(drafts, link(clock), 10, stored), clock, first, Reply(402, b'{"detail":"full"}')
        ).run()
    assert [one.id for one in caught.value.partial.values()] == [f"m{n}" for n in range(100)]  # type: ignore[attr-defined] # memories
    assert isinstance(caught.value.__cause__, QuotaError)
    assert len(stored) == 100


def test_a_first_batch_that_fails_is_the_plain_error() -> None:
    clock = Clock()
    drafts = [calls.Draft("alice", f"id-{n}", f"text {n}") for n in range(150)]
    with pytest.raises(QuotaError):
        Steps(flows.remember_many(drafts, link(clock), 10, []), clock, Reply(402, b'{"detail":"full"}')).run()


def listing(first: int, count: int, total: int) -> Reply:
    rows = ",".join(f'{{"id":"m{n}","content":"text {n}"}}' for n in range(first, first + count))
    return Reply(200, f'{{"memories":[{rows}],"total":{total}}}'.encode())


def test_pages_already_read_are_read_again_when_memories_were_deleted() -> None:
    walk = Walk("alice", calls.MemoryFilter())
    pages = [(1, listing(0, 100, 250)), (2, listing(200, 50, 150)), (1, listing(100, 100, 100)), (1, listing(0, 0, 0))]
    given: list[str] = []
    for number, reply in pages:
        assert not walk.done
        assert dict(walk.call().query)["page"] == str(number)
        given += [memory.id for memory in walk.take(walk.call().parse(reply))]
    assert walk.done
    assert sorted(given) == sorted(f"m{n}" for n in range(250))


def test_a_reply_of_neither_dialect_is_a_typed_error() -> None:
    with pytest.raises(ReplyError):
        steps(RECALL, Reply(200, b"{}")).run()
