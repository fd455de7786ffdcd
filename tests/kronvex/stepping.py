"""Flows stepped against a stand-in without a socket, stopped before any step as a kill would stop them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import urlencode

from kronmem import TransportError
from kronmem.core import calls
from kronmem.core.abilities import RemoteService
from kronmem.core.exchange import Link, Local, exchange
from kronmem.core.policy import Retry
from kronmem.core.wire import Reply, Request
from kronmem.kronvex import Kronvex
from tests.services import KronvexServer
from tests.services.loopback import Recorded


class Killed(BaseException):
    """The process is gone; nothing of it runs any more."""


@dataclass
class Process:
    """One process: what it knows is gone when it is killed, what is at the server is not."""

    server: KronvexServer
    kill_before: int | None = None
    cancelled: bool = False
    """Only the call is given up, as by a cancelled task or an interrupt: its flow hears of it."""
    steps: int = 0

    def __post_init__(self) -> None:
        clock = count()
        self.link = Link(lambda: next(clock) * 1e-6, lambda: 1.0, RemoteService(Kronvex()), Retry(attempts=1))

    def call(self, call: Any) -> Any:
        return self.drive(exchange(call, self.link, 10.0))

    def drive(self, flow: Any) -> Any:
        try:
            step = next(flow)
            while True:
                if self.steps == self.kill_before:
                    if self.cancelled:
                        flow.throw(Killed())
                    raise Killed
                self.steps += 1
                try:
                    reply = self._do(step)
                except TransportError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(reply)
        except StopIteration as stop:
            return stop.value

    def _do(self, step: Any) -> Reply:
        if isinstance(step, Local):
            step.work()
            return Reply(0)
        assert isinstance(step, Request)
        headers = {**dict(step.headers), "x-api-key": self.server.key}
        target = step.path + (f"?{urlencode(step.query)}" if step.query else "")
        request = self.server.record(Recorded(step.method, target, headers, step.body or b""))
        said = self.server.reply_to(request)
        return Reply(said.status, said.content(), {**self.server.base_headers, **said.headers})


def draft(agent_id: str, client_id: str, content: str, **fields: Any) -> calls.Draft:
    return calls.Draft(agent_id, client_id, content, **fields)
