"""The life of one call, as a generator: every policy lives here, once, for both shells.

`exchange(call, link, timeout)` yields a `Request` to send or a `Pause` to sleep through and is resumed with the
`Reply`, or with the `TransportError` that sending raised. It returns the call's answer or raises a typed error.
It looks at no clock and rolls no dice of its own: `Link` carries both, so a test steps through the policy by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kronmem.core import memory_json
from kronmem.core.abilities import RemoteService
from kronmem.core.policy import LOST, RETRYABLE, Breaker, Retry, RetryBudget, read, retry_after, unheard
from kronmem.core.wire import UNAVAILABLE, Call, Event, Flow, Local, Pause, Repeat, Reply, Step, local, no_agent
from kronmem.errors import DeadlineError, TransportError, status_class

__all__ = [
    "Around",
    "Event",
    "Flow",
    "Link",
    "Local",
    "Pause",
    "Step",
    "exchange",
    "local",
]

T = TypeVar("T")
U = TypeVar("U")


@dataclass
class Link:
    """The way of one client to its service, and its patience with it."""

    now: Callable[[], float]
    random: Callable[[], float]
    service: RemoteService
    retry: Retry = field(default_factory=Retry)
    breaker: Breaker = field(default_factory=Breaker)
    budget: RetryBudget = field(default_factory=RetryBudget)
    most_hits: int = memory_json.MOST_HITS

    @property
    def address(self) -> str:
        """Scheme, host and port of the service, for messages."""
        return self.breaker.address


def exchange(call: Call[T], link: Link, timeout: float) -> Flow[T]:
    """Carry one call through: send it, retry it, find the agent's id if the service insists, read the answer."""
    service, vendor = link.service, link.service.vendor
    service.require(call)
    around = Around(link, link.now() + timeout)
    known = vendor.ids.get(call.agent_id) if call.agent_id else None
    if prepared := service.is_vendor:
        call = yield from vendor.prepared(call, around)
    reply = yield from _fitted(call, known or call.agent_id, link, around.deadline)
    if reply.status >= 400 and call.agent_id and vendor.misses_agent(reply):
        service.require(call)  # its kind may be known only now
        found = yield from vendor.find_agent(call, known, around)
        if found is None:
            return (call.unknown or no_agent)()
        if service.is_vendor and not prepared:
            call = yield from vendor.prepared(call, around)
        reply = yield from _fitted(call, found, link, around.deadline)
    service.require(call, reply)
    if service.is_vendor and call.vendor is not None:
        return (yield from vendor.answer(call, reply, around))
    return read(call, reply)


@dataclass(frozen=True)
class Around:
    """An exchange as the further calls within it see it."""

    link: Link
    deadline: float

    def now(self) -> float:
        """Seconds, by the clock of the deadline."""
        return self.link.now()

    def left(self) -> float:
        """Seconds until the deadline of the call."""
        return self.deadline - self.now()

    def ask(self, call: Call[U], keep: float = 0.0, /) -> Flow[U]:
        """Carry another call through; `keep` seconds before the deadline it gives up."""
        return exchange(call, self.link, self.left() - keep)

    def send(self, call: Call[U], /) -> Flow[Reply]:
        """Send another call with retries; the reply as it comes."""
        return _attempts(call, None, self.link, self.deadline)


def _fitted(call: Call[T], agent_ref: str | None, link: Link, deadline: float) -> Flow[Reply]:
    """Send it in a form that the service can answer; which one that is may be known only by its refusal."""
    service = link.service
    sent = service.fitted(call)
    reply = yield from _attempts(sent, agent_ref, link, deadline)
    if reply.status != 422 or service.vendor.misses_agent(reply):
        return reply
    if (older := service.fitted(sent, refused=True)) is sent:
        return reply
    reply = yield from _attempts(older, agent_ref, link, deadline)
    service.took_older(reply)
    return reply


def _attempts(call: Call[T], agent_ref: str | None, link: Link, deadline: float) -> Flow[Reply]:
    """Send until something final comes back, within the deadline, the attempts and the retry budget."""
    attempt, lost = 1, False
    while True:
        try:
            outcome = yield from _once(call, agent_ref, link, deadline)
        except TransportError as error:  # not tried again, but an attempt before may have arrived
            error.sent = error.sent or lost
            raise
        if isinstance(outcome, Reply):
            if lost and outcome.status == 404 and _was_done(call, outcome, link):
                return Reply(204)
            if outcome.status not in RETRYABLE:
                return outcome
        lost = lost or (outcome.status in LOST if isinstance(outcome, Reply) else unheard(outcome))
        wait = link.retry.wait(attempt, link.random)
        if isinstance(outcome, Reply):
            wait = max(wait, retry_after(outcome) or 0.0)
        hopeless = link.breaker.state == "open" or link.now() + wait >= deadline
        last = attempt == link.retry.attempts or not _may_repeat(call, lost=lost)
        if last or hopeless or not link.budget.spend():
            if isinstance(outcome, Reply):
                return replace(outcome, lost=lost)
            outcome.sent = lost
            raise outcome
        yield Pause(wait, _retry(attempt, outcome, wait))
        attempt += 1


def _was_done(call: Call[T], reply: Reply, link: Link) -> bool:
    return call.repeat is Repeat.UNTIL_GONE and not link.service.vendor.misses_agent(reply)


def _may_repeat(call: Call[T], *, lost: bool) -> bool:
    return call.repeat is not Repeat.NEVER and not (lost and call.repeat is Repeat.UNLESS_LOST)


def _retry(attempt: int, outcome: Reply | TransportError, wait: float) -> Event:
    """An attempt that failed and is followed by another."""
    kind = status_class(outcome.status) if isinstance(outcome, Reply) else type(outcome)
    return Event("kronmem.retry", {"kronmem.attempt": attempt, "error.type": kind.__name__, "kronmem.wait": wait})


def _once(call: Call[T], agent_ref: str | None, link: Link, deadline: float) -> Flow[Reply | TransportError]:
    """Send once and tell the breaker how it went."""
    now = link.now()
    if now >= deadline:
        raise DeadlineError(f"timed out before another attempt: {call.method} {link.address}/…", sent=False)
    link.breaker.admit(now)
    try:
        reply = yield call.request(deadline - now, agent_ref)
    except TransportError as error:
        if error.partial:  # the service answers; what it cannot reach is the home of some agents
            link.breaker.succeeded()
        else:
            link.breaker.failed(link.now())
        return error
    except BaseException:
        link.breaker.abandoned()
        raise
    link.service.learn(reply)
    if reply.status >= 400:
        reply = link.service.vendor.received(reply)
    if reply.status >= 500 and reply.headers.get(UNAVAILABLE) != "agent":
        link.breaker.failed(link.now())
    else:
        link.breaker.succeeded()
        link.budget.earn()
    return replace(reply, agent_ref=agent_ref or "")
