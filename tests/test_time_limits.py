"""A caller's own time limit (Celery's, RQ's, an alarm) at any step of an embedded call reaches the caller as it is."""

from __future__ import annotations

import logging
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from inspect import CO_GENERATOR
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import pytest

from kronmem import Client
from kronmem.core.wire import Reply, Request
from kronmem.transport.local import LocalTransport
from tests.services.in_process import served_in_process
from tests.shells import shell

ENGINE = ("/kronmem/engine/", "/kronmem/sqlite_file/", "/kronmem/transport/local.py")


class SoftTimeLimitExceeded(Exception):
    """As Celery calls it: no error of a database, none of the system."""


class Limit:
    """Raises where the engine calls a function for the n-th time or returns from the one of a name."""

    def __init__(self, step: int | str = "", error: Exception | None = None) -> None:
        self.step, self.error = step, error or SoftTimeLimitExceeded()
        self.raised = False
        self.seen: list[str] = []

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if (
            self.raised
            or frame.f_code.co_name == "<genexpr>"
            or not any(one in frame.f_code.co_filename for one in ENGINE)
        ):  # a generator expression is entered when it is thrown away, too
            return
        if event == "call":
            self.seen.append(frame.f_code.co_name)
            self.raised = len(self.seen) == self.step
        elif event == "return" and not frame.f_code.co_flags & CO_GENERATOR:  # no signal comes in the midst of a yield
            self.raised = frame.f_code.co_name == self.step
        if self.raised:
            raise self.error

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Within it the engine's thread is interrupted, whichever that is."""
        plain = LocalTransport.send

        def send(transport: LocalTransport, request: Request) -> Reply:
            sys.setprofile(self)
            try:
                return plain(transport, request)
            finally:
                sys.setprofile(None)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LocalTransport, "send", send)
            yield


CALLS: dict[str, Callable[[Any], object]] = {
    "remember": lambda client: client.remember("ada", "tea"),
    "recall": lambda client: client.recall("ada", "before"),
    "memories": lambda client: client.memories("ada"),
    "forget": lambda client: client.forget("ada", client.memories("ada")[0].id),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("error", [SoftTimeLimitExceeded, TimeoutError])
def test_a_time_limit_reaches_the_caller_as_it_is(kind: str, error: type[Exception], name: str, tmp_path: Path) -> None:
    raised = 0
    with shell(kind, tmp_path / "memory.db", timeout=30.0) as client:
        client.remember("ada", "before")
        for step in range(1, 300, 11):
            limit, found = Limit(step, error("the caller's own")), None
            try:
                with limit.armed():
                    CALLS[name](client)
            except Exception as given:  # noqa: BLE001 -- which one it is, is the question
                found = given
            assert found is (limit.error if limit.raised else None), step
            raised += limit.raised
            client.remember("ada", "after")
    assert raised > 3


def inside(thread: threading.Thread) -> bool:
    """Whether a thread is committing."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code.co_name != "commit":
        frame = frame.f_back
    return frame is not None


def interrupt_a_writer(path: Path, limit: Limit) -> list[threading.Thread]:
    """One thread writes and is interrupted while four others wait to; they are those that have not come back."""
    with Client(path, timeout=10.0) as client, closing(sqlite3.connect(path, isolation_level=None)) as lock:

        def write(text: str) -> None:
            with suppress(SoftTimeLimitExceeded):
                client.remember("ada", text)

        def start(text: str) -> threading.Thread:
            thread = threading.Thread(target=write, args=(text,), daemon=True)
            thread.start()
            while thread.is_alive() and not inside(thread):
                threading.Event().wait(0.001)
            return thread

        client.remember("ada", "before")
        lock.execute("BEGIN IMMEDIATE")
        with limit.armed():
            first = start("the interrupted one")
        others = [start(f"note {number}") for number in range(4)]
        lock.execute("ROLLBACK")
        for thread in (first, *others):
            thread.join(9.0)
        return [thread for thread in others if thread.is_alive()]


def test_a_thread_that_is_interrupted_while_it_writes_holds_up_no_other(tmp_path: Path) -> None:
    every = Limit()
    with Client(tmp_path / "memory.db") as client, every.armed():
        client.remember("ada", "which functions a write goes through")
    for name in dict.fromkeys(every.seen[every.seen.index("commit") :]):
        assert not interrupt_a_writer(tmp_path / "memory.db", Limit(name)), name


def test_a_server_answers_a_failure_of_its_own_with_500_and_logs_it_without_contents(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from kronmem.engine.service import Service

    class Broken:
        def close(self) -> None: ...

    service = Service(Broken())  # type: ignore[arg-type]  # no engine: everything fails
    for path in ("/api/v1/agents/bot/remember", "/v1/memory/remember"):
        with served_in_process(service=service) as url, caplog.at_level(logging.ERROR, logger="kronmem.server"):
            reply = httpx.post(url + path, json={"content": "my secret"}, trust_env=False)
        assert reply.status_code == 500
        assert reply.headers["content-type"] == "application/json"
        assert caplog.records[-1].exc_info is not None
        assert "my secret" not in caplog.text
