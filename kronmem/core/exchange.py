"""The life of one call, as a generator: every policy lives here, once, for both shells.

`exchange(call, link, timeout)` yields a `Request` to send or a `Pause` to sleep through and is resumed with the
`Reply`, or with the `TransportError` that sending raised. It returns the call's answer or raises a typed error.
It looks at no clock and rolls no dice of its own: `Link` carries both, so a test steps through the policy by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kronmem.core import kronvex, kronvex_asides, kronvex_detection, version_detection
from kronmem.core.circuit_breaker import Breaker
from kronmem.core.kronvex_agents import Names, Resolver
from kronmem.core.retries import LOST, RETRYABLE, Retry, RetryBudget, unheard
from kronmem.core.retry_after import retry_after
from kronmem.core.status_errors import detail, has_no_route, read, unsupported
from kronmem.core.steps import Aside, Event, Flow, Local, Pause, RepairJournal, Step, local
from kronmem.core.wire import UNAVAILABLE, Call, Reply
from kronmem.errors import DeadlineError, NotFoundError, TransportError, status_class

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
    """The knowledge of one client about its service between calls."""

    now: Callable[[], float]
    random: Callable[[], float]
    retry: Retry = field(default_factory=Retry)
    breaker: Breaker = field(default_factory=Breaker)
    budget: RetryBudget = field(default_factory=RetryBudget)
    most_hits: int = kronvex.MOST_HITS
    names: Names = field(default_factory=Names)
    """Under which id the service keeps an agent, where that is not its name."""
    journal: RepairJournal | None = None
    """Where repairs note what they delete for a moment; the outbox keeps it."""
    abandoned: list[Aside] = field(default_factory=lambda: list[Aside]())
    """Rows that a cancelled repair left deleted; the next call brings them back."""
    lacks: set[str] = field(default_factory=lambda: set[str]())
    """Calls that this service turned out not to have."""

    @property
    def address(self) -> str:
        """Scheme, host and port of the service, for messages."""
        return self.breaker.address

    def learn(self, reply: Reply) -> None:
        """Note the kind of the service that a reply shows."""
        names = self.names
        current = version_detection.is_current(reply)
        names.current = names.current or current
        if current and self.lacks:  # learnt from an older one before it, or from a proxy
            self.lacks.clear()
        names.vendor = names.vendor or kronvex_detection.is_vendor(reply)
        names.outdated = not current and not names.vendor and version_detection.is_outdated(reply)

    @property
    def may_lack(self) -> bool:
        """Can a 404 mean that the service has no such call? A current kronmem has all: a proxy before it said so."""
        return self.names.outdated or not self.names.current

    def probes(self, call: Call[T]) -> bool:
        """Whether a call goes by the path that only a current kronmem has: not where the kind of service is known."""
        if call.new_path is None or self.names.current or self.names.vendor:
            return False
        return call.new_path not in self.lacks


def exchange(call: Call[T], link: Link, timeout: float) -> Flow[T]:
    """Carry one call through: send it, retry it, find the agent's id if the service insists, read the answer."""
    deadline = link.now() + timeout
    if link.abandoned:
        yield from kronvex_asides.resume(link.abandoned, Around(link, deadline))
    known = link.names.ids.get(call.agent_id) if call.agent_id else None
    checked = call.before is not None and link.names.vendor
    if call.before is not None and checked:
        yield from call.before(Around(link, deadline))
    if call.drops is not None and link.names.outdated:
        raise unsupported(call.drops)
    reply = yield from _probed(call, known or call.agent_id, link, deadline)
    if call.agent_id and (kronvex_detection.wants_uuid(reply) or kronvex_detection.agent_is_gone(reply)):
        found = yield from _resolver(call, known, link, deadline).run()
        if found is None:
            if call.unknown is None:
                raise NotFoundError("Agent not found", status=404)
            return call.unknown()
        if call.before is not None and not checked:
            yield from call.before(Around(link, deadline))
        reply = yield from _attempts(call, found, link, deadline)
    if call.drops is not None and link.names.outdated and (reply.status < 300 or has_no_route(reply)):
        raise unsupported(call.drops)
    if call.mend is not None and (link.names.vendor or (call.mends_outdated and link.names.outdated)):
        return (yield from call.mend(reply, Around(link, deadline)))
    return read(call, reply)


def _probed(call: Call[T], agent_ref: str | None, link: Link, deadline: float) -> Flow[Reply]:
    """Send, at first by the path that only a current kronmem has; a service of another kind gets the usual one."""
    probing = link.probes(call)
    reply = yield from _attempts(call, agent_ref, link, deadline)
    if probing and has_no_route(reply) and not link.names.outdated:
        link.lacks.add(call.new_path or "")
        reply = yield from _attempts(call, agent_ref, link, deadline)
    return reply


@dataclass(frozen=True)
class Around:
    """An exchange as a repair sees it."""

    link: Link
    deadline: float

    @property
    def journal(self) -> RepairJournal | None:
        """Where to note deletes; None without an outbox."""
        return self.link.journal

    @property
    def known_ids(self) -> dict[str, dict[str, tuple[frozenset[str], int]]]:
        """By agent and row: the ids and a hash of the words of each row that was read for its ids."""
        return self.link.names.known_ids

    @property
    def abandoned(self) -> list[Aside]:
        """The rows that cancelled repairs left deleted."""
        return self.link.abandoned

    def left(self) -> float:
        """Seconds until the deadline of the call."""
        return self.deadline - self.link.now()

    def ask(self, call: Call[U], keep: float = 0.0, /) -> Flow[U]:
        """Carry another call through; `keep` seconds before the deadline it gives up."""
        return exchange(call, self.link, self.left() - keep)


def _resolver(call: Call[T], known: str | None, link: Link, deadline: float) -> Resolver:
    def ask(question: Call[U], /) -> Flow[Reply]:
        return _attempts(question, None, link, deadline)

    return Resolver(link.names, call.agent_id or "", known, call.creates, ask, lambda: deadline - link.now())


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
            if lost and call.gone_is_done and outcome.status == 404 and not kronvex_detection.agent_is_gone(outcome):
                return Reply(204)
            if outcome.status not in RETRYABLE:
                return outcome
        lost = lost or (outcome.status in LOST if isinstance(outcome, Reply) else unheard(outcome))
        wait = link.retry.wait(attempt, link.random)
        if isinstance(outcome, Reply):
            wait = max(wait, retry_after(outcome, detail(outcome)) or 0.0)
        hopeless = link.breaker.state == "open" or link.now() + wait >= deadline
        last = attempt == (call.attempts or link.retry.attempts) or (lost and not call.repeatable)
        if last or hopeless or not link.budget.spend():
            if isinstance(outcome, Reply):
                return replace(outcome, lost=lost)
            outcome.sent = lost
            raise outcome
        yield Pause(wait, _retry(attempt, outcome, wait))
        attempt += 1


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
        reply = yield call.request(deadline - now, agent_ref, vendor=link.names.vendor, probing=link.probes(call))
    except TransportError as error:
        if error.partial:  # the service answers; what it cannot reach is the home of some agents
            link.breaker.succeeded()
        else:
            link.breaker.failed(link.now())
        return error
    except BaseException:
        link.breaker.abandoned()
        raise
    link.learn(reply)
    if reply.status >= 500 and reply.headers.get(UNAVAILABLE) != "agent":
        link.breaker.failed(link.now())
    else:
        link.breaker.succeeded()
        link.budget.earn()
    return replace(reply, agent_ref=agent_ref or "", notice=link.names.notice)
