"""Claimed rows come back at once when whoever claimed them is cancelled or fails, and are settled within their lease."""

from __future__ import annotations

import gc
import json
import sqlite3
import time
import weakref
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client, DeadlineError
from kronmem.core.abilities import RemoteService
from kronmem.core.calls import Draft
from kronmem.core.exchange import Flow, Local
from kronmem.core.policy import Breaker
from kronmem.core.wire import Reply, Request, Step
from kronmem.kronvex import Kronvex
from kronmem.outbox.deliver import Delivery, Sender
from kronmem.outbox.policy import LEASE, Delay
from kronmem.outbox.queue import OutboxFile
from tests.outbox.services import NOBODY, ONCE, change, until

NOT_DUE = Delay(backoff=3600.0)


def drafts(*numbers: int) -> list[Draft]:
    return [Draft("alice", f"id-{number}", f"text {number}") for number in numbers]


def leased(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("SELECT count(*) FROM waiting WHERE lease > 0").fetchone()[0])


class Recording:
    """A service that keeps what it is told and fails on poison; notes how long each request may take."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, float]] = []

    def send(self, request: Request) -> Reply:
        self.asked.append((f"{request.method} {request.path.rsplit('/', 1)[1]}", request.timeout))
        if request.method == "DELETE":
            return Reply(204)
        body = json.loads(request.body or b"{}")
        if "content" not in body:
            return Reply(200, b'{"results": []}')
        return Reply(500) if "poison" in body["content"] else Reply(201, json.dumps({**body, "id": "m1"}).encode())

    def close(self) -> None:
        pass


def sender(transport: Recording, timeout: float = 10.0) -> Sender:
    return Sender("http://s", "", transport, Breaker(), timeout, RemoteService(Kronvex()))


# ── cancelled ────────────────────────────────────────────────────────────────────────────────────────────────────


class Cancelled(BaseException):
    """As anyio's: no KronmemError, no Exception."""


def done(step: Step) -> Reply:
    if isinstance(step, Local):
        step.work()
    if not isinstance(step, Request):
        return Reply(0)
    return Reply(201, json.dumps({"id": "m1", "content": json.loads(step.body or b"")["content"]}).encode())


def cancelled_after(flow: Flow[Any], steps: int) -> bool:
    """Cancel a flow when the next step is done and its answer not yet heard; False: it came to its end before."""
    try:
        step = next(flow)
        for _ in range(steps):
            step = flow.send(done(step))
    except StopIteration:
        return False
    done(step)
    with pytest.raises(Cancelled):
        flow.throw(Cancelled())
    return True


def test_a_remember_cancelled_at_any_step_keeps_no_row_for_itself(tmp_path: Path) -> None:
    for steps in count():
        path = tmp_path / f"{steps}.db"
        with closing(OutboxFile(str(path))) as file:
            file.put(file.lane(NOBODY, ""), drafts(1, 2, 3), NOT_DUE)
        with Client(NOBODY, outbox=path, retry=ONCE) as client:
            assert client._post is not None
            flow = client._post.remember(*drafts(4), client._wiring.link, 60.0)
            cancelled = cancelled_after(flow, steps)
            until(lambda of=path: not leased(of))
        if not cancelled:
            break
    assert steps > 8  # a look, a claim, three rows sent and settled, another look, the new one


# ── failed ───────────────────────────────────────────────────────────────────────────────────────────────────────


class LockedOnce(OutboxFile):
    """A file whose lock another process holds at the first call of one method."""

    def __init__(self, path: Path, method: str) -> None:
        super().__init__(str(path))
        self._method, self._found = method, list[str]()

    def _lock(self, method: str) -> None:
        if method == self._method and not self._found:
            self._found.append(method)
            raise DeadlineError(f"{self.path} is busy", sent=False)

    def done(self, *args: Any) -> bool:
        self._lock("done")
        return super().done(*args)

    def release(self, *args: Any) -> None:
        self._lock("release")
        super().release(*args)


@pytest.fixture(params=["done", "release"])
def locked_once(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OutboxFile]:
    with closing(LockedOnce(tmp_path / "o.db", request.param)) as file:
        yield file


@pytest.mark.slow
def test_rows_that_could_not_be_settled_are_tried_again_and_do_not_wait_for_their_lease(
    locked_once: OutboxFile,
) -> None:
    file, way = locked_once, sender(Recording())
    lane = way.lane(file)
    file.put(lane, drafts(1, 2))
    delivery = Delivery(file)
    if file._method == "release":  # type: ignore[attr-defined] # of LockedOnce
        delivery.hand_back(file.claim(lane))
    delivery.join(way)
    until(lambda: not file.pending(lane))
    delivery.leave(way, 30.0)


def test_rows_that_were_given_back_are_free_when_the_file_is_closed(tmp_path: Path) -> None:
    file = OutboxFile(str(tmp_path / "o.db"))
    lane = file.lane("http://s", "")
    file.put(lane, drafts(1, 2))
    delivery = Delivery(file)
    delivery.hand_back(file.claim(lane))
    delivery.close()
    assert not leased(tmp_path / "o.db")


# ── in time ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "changed", "then"),
    [("poison", "refused = 2", "POST recall"), ("second thoughts", "cancelled = 1", "DELETE m1")],
)
def test_a_row_is_settled_within_its_lease_however_patient_the_client(
    tmp_path: Path, text: str, changed: str, then: str
) -> None:
    service = Recording()
    with closing(OutboxFile(str(tmp_path / "o.db"))) as file:
        way = sender(service, timeout=3600.0)
        lane = way.lane(file)
        file.put(lane, [Draft("alice", "id-1", text)])
        change(tmp_path / "o.db", f"UPDATE waiting SET {changed}")
        assert Delivery(file)._deliver(way, file.claim(lane), time.monotonic() + 3600.0)
    assert [name for name, _ in service.asked] == ["POST remember", then]
    # A batch is renewed after a third of a lease, so that much may have gone by already.
    assert sum(allowed for _, allowed in service.asked) <= LEASE * 2 / 3


def test_rows_that_a_patient_remember_delivers_are_settled_within_their_lease(tmp_path: Path) -> None:
    with closing(OutboxFile(str(tmp_path / "o.db"))) as file:
        file.put(file.lane(NOBODY, ""), drafts(1, 2), NOT_DUE)
    with Client(NOBODY, outbox=tmp_path / "o.db", retry=ONCE) as client:
        assert client._post is not None
        flow = client._post.remember(*drafts(3), client._wiring.link, 3600.0)
        step = next(flow)
        while not isinstance(step, Request):
            step = flow.send(done(step))
        assert step.timeout <= LEASE / 2
        flow.close()


def way_of_a_closed_client(path: Path) -> weakref.ref[Sender]:
    with Client(NOBODY, outbox=path, api_key="another", retry=ONCE) as client:
        client.remember_later("alice", "text")
        assert client._post is not None
        way = weakref.ref(client._post.arrive()[1])
        until(lambda: client.outbox.list()[0].attempts)
    return way


def test_the_way_of_a_closed_client_is_not_kept_by_others_on_its_file(tmp_path: Path) -> None:
    with Client(NOBODY, outbox=tmp_path / "o.db", retry=ONCE) as stays:
        stays.remember_later("alice", "text")
        way = way_of_a_closed_client(tmp_path / "o.db")

        def is_gone() -> bool:
            gc.collect()
            return way() is None

        until(is_gone)
