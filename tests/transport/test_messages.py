"""Errors of the transport tell the address, the cause and the remedy; never an id, a query or a key."""

from __future__ import annotations

import json
import logging
import re
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from kronmem import DeadlineError, KronmemError, Retry, TransportError, UnavailableError
from kronmem.transport.failures import seconds
from kronmem.transport.pools import IN_FLIGHT
from tests.outbox.services import asked
from tests.services import RawServer
from tests.services.raw import close, hang, respond, respond_raw
from tests.shells import shell

ONCE = Retry(attempts=1)
PRIVATE = ("kv-secret", "alice", "question", "recall")


def told(error: KronmemError) -> str:
    """The message, without a trace of anything private."""
    assert not [word for word in PRIVATE if word in str(error)]
    return re.sub(r":\d{4,5}", ":PORT", str(error))


def test_a_refused_connection_names_the_address_and_what_to_check(kind: str) -> None:
    with RawServer([close()]) as server:
        url = server.url
    with shell(kind, url, api_key="kv-secret", retry=ONCE) as client, pytest.raises(TransportError) as caught:
        client.recall("alice", "question")
    assert told(caught.value) == (
        "cannot connect to http://127.0.0.1:PORT (connection refused). Is the service running? `kronmem doctor` checks."
    )


def test_a_timeout_names_the_seconds_and_the_address(kind: str) -> None:
    with RawServer([hang()]) as server:
        with (
            shell(kind, server.url, api_key="kv-secret", timeout=0.2) as client,
            pytest.raises(DeadlineError) as caught,
        ):
            client.recall("alice", "question")
    assert told(caught.value) == "timed out after 0.2 s: POST http://127.0.0.1:PORT/…"


@pytest.mark.parametrize(
    ("action", "reason"), [(close(), "no valid HTTP reply"), (respond_raw(b"kv-secret\r\n\r\n"), "no valid HTTP reply")]
)
def test_a_broken_connection_names_the_address(kind: str, action: object, reason: str) -> None:
    with RawServer([action]) as server:  # type: ignore[list-item] # a parameter
        with (
            shell(kind, server.url, api_key="kv-secret", retry=ONCE) as client,
            pytest.raises(TransportError) as caught,
        ):
            client.recall("alice", "question")
    assert told(caught.value) == (
        f"the connection to http://127.0.0.1:PORT broke ({reason}) before a reply had come. "
        "Look at the service's log, or that of a proxy in between."
    )


def test_a_call_without_a_free_connection_names_the_address_and_the_seconds(kind: str) -> None:
    busy = threading.Barrier(IN_FLIGHT + 1)

    def hold(server: RawServer, connection: Any, _request: Any) -> None:
        busy.wait(60)
        server.stopping.wait()
        connection.close()

    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        server = RawServer([hold])
        with server, shell(kind, server.url, api_key="kv-secret", retry=ONCE, timeout=60) as client:
            calls = [pool.submit(client.recall, "alice", "question") for _ in range(IN_FLIGHT)]
            busy.wait(60)
            with pytest.raises(DeadlineError) as caught:
                client.agent("alice").with_timeout(0.2).recall("question")
            server.close()
            assert all(isinstance(call.exception(), TransportError) for call in calls)
    assert told(caught.value) == (
        "timed out after 0.2 s: all 100 connections to http://127.0.0.1:PORT are in use. "
        "Make fewer calls at a time, or pass a longer timeout=."
    )


def test_an_open_breaker_names_the_address(kind: str) -> None:
    with RawServer([respond(503)]) as server, shell(kind, server.url, api_key="kv-secret", retry=ONCE) as client:
        with pytest.raises(UnavailableError) as caught:
            for _ in range(10):
                with pytest.raises(KronmemError) as last:
                    client.recall("alice", "question")
                if isinstance(last.value, UnavailableError):
                    raise last.value
    assert told(caught.value) == "circuit breaker open for http://127.0.0.1:PORT, next attempt in 1 s"


@pytest.mark.parametrize(
    ("time", "said"), [(10.0, "10"), (9.9996, "10"), (0.25, "0.25"), (0.2999, "0.3"), (7.44, "7.4"), (120.0, "120")]
)
def test_seconds_are_told_without_idle_digits(time: float, said: str) -> None:
    assert seconds(time) == said


KEY = 'kv-own/"secret"'


@pytest.mark.parametrize("injected", [False, True])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 429, 500, 503, 302])
def test_a_service_that_repeats_the_key_does_not_put_it_into_errors_and_logs(
    kind: str, status: int, injected: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    body = {"detail": f"{KEY} is no good", "message": KEY}
    escaped = json.dumps(body).replace("/", "\\/")
    mock = httpx.MockTransport(
        lambda _: httpx.Response(status, json=body, headers={"x-request-id": KEY, "location": KEY})
    )
    options: dict[str, Any] = {"transport": mock, "outbox": False} if injected else {"outbox": tmp_path / "o.db"}
    with (
        RawServer([respond(status, {"x-request-id": KEY, "location": KEY}, escaped)]) as server,
        shell(kind, server.url, api_key=KEY, retry=Retry(attempts=1), **options) as client,
        caplog.at_level(logging.DEBUG),
    ):
        told: list[object] = []
        for ask in (
            lambda: client.recall("ada", "tea"),
            lambda: client.remember("ada", "tea"),
            lambda: client.health(),
        ):
            try:
                ask()
            except KronmemError as error:
                told += [str(error), repr(error), vars(error), *traceback.format_exception(error)]
        assert told
        if not injected:
            told += [*asked(client, "list"), *asked(client, "dead")]
    assert "secret" not in f"{told} {caplog.text}".replace(str(tmp_path), "")
