"""Faults 44, 46 and 47: wrong keys, large bodies and silent connections hold up nobody else."""

from __future__ import annotations

import json
import re
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from starlette.exceptions import HTTPException

from kronmem import InvalidRequestError
from kronmem.engine.service import MAX_VALUES, parse
from kronmem.server.api_keys import ALLOWED, WINDOW, WrongKeys
from kronmem.server.connection_limit import MOST
from kronmem.server.contracts.contract import MAX_BODY
from kronmem.server.guard import LARGE, SMALL, BodyRoom
from tests.server.conftest import ADA, addresses
from tests.services.kronmem import ServedKronmem

REMEMBER = "/api/v1/agents/pressed/remember"
STATE = "/api/v1/agents/pressed/state/k"


@contextmanager
def dialled(service: ServedKronmem) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as line:
        yield line


@pytest.fixture
def guesser(served: ServedKronmem) -> Iterator[httpx.Client]:
    """Requests from an address of this machine that no other test uses."""
    local = httpx.HTTPTransport(local_address=f"127.0.77.{next(addresses)}")
    with httpx.Client(base_url=served.url, transport=local, timeout=60) as client:
        yield client


@pytest.mark.parametrize(
    "path", ["/api/v1/agents", "/memory/ns", "/v1/memory/list", pytest.param("/mcp/pressed", marks=pytest.mark.slow)]
)
def test_wrong_keys_are_slowed_whatever_right_ones_come_between_and_those_are_served_all_the_while(
    path: str, guesser: httpx.Client, http: httpx.Client
) -> None:
    def asked(client: httpx.Client, key: str) -> httpx.Response:
        return client.request("POST" if path.startswith("/mcp") else "GET", path, headers={"X-API-Key": key})

    assert asked(guesser, ADA).status_code not in (401, 429)
    replies: list[httpx.Response] = []
    for number in range(ALLOWED + 5):
        replies.append(asked(guesser, f"kv-guess-{number}"))
        assert asked(guesser, ADA).status_code not in (401, 429)
    assert [reply.status_code for reply in replies] == [401] * ALLOWED + [429] * 5
    assert all(1 <= int(reply.headers["retry-after"]) <= WINDOW for reply in replies[ALLOWED:])
    assert asked(http, "kv-mistyped").status_code == 401  # another address
    assert asked(guesser, "kv-guess").status_code == 429


def test_an_address_may_try_again_when_its_time_is_over() -> None:
    time = [0.0]
    wrong = WrongKeys(lambda: time[0])
    assert [wrong.count("a") for _ in range(ALLOWED + 1)] == [0] * ALLOWED + [WINDOW]
    time[0] = WINDOW - 0.5
    assert (wrong.count("a"), wrong.count("b")) == (1, 0)
    time[0] = WINDOW
    assert wrong.count("a") == 0


def test_the_addresses_of_wrong_keys_are_not_kept_without_bound() -> None:
    wrong = WrongKeys()
    for number in range(20_000):
        wrong.count(f"2001:db8::{number:x}")
    assert len(wrong._tried) == 10_000


FULL = MAX_BODY - 100
PATIENCE = 15.0
"""Seconds for an answer to /health: one, on a machine with fifteen times as much to do."""


def filled(unit: str, before: str, after: str) -> bytes:
    return (before + ",".join([unit] * ((FULL - len(before)) // (len(unit) + 1))) + after).encode()


BODIES = {
    "objects": ("POST", REMEMBER, lambda: filled("{}", "[", "]")),
    "batch": ("POST", "/api/v1/agents/pressed/memories/batch", lambda: filled("{}", '{"memories":[', "]}")),
    "metadata": ("POST", REMEMBER, lambda: filled("{}", '{"content":"x","metadata":{"a":[', "]}}")),
    "state": ("PUT", STATE, lambda: filled("{}", '{"value":[', "]}")),
    "floats": ("PUT", STATE, lambda: filled("1.2345678901234567e-300", '{"value":[', "]}")),
    "escapes": ("PUT", STATE, lambda: b'{"value":"' + rb"\u00e9" * (FULL // 6) + b'"}'),
    "content": ("POST", REMEMBER, lambda: b'{"content":"' + rb"\u00e9" * (FULL // 6) + b'"}'),
    "tags": ("POST", REMEMBER, lambda: filled("1", '{"content":"x","tags":[', "]}")),
    "number": ("PUT", STATE, lambda: b'{"value":' + b"1" * FULL + b"}"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_health_is_answered_while_large_bodies_are_read(name: str, unlocked: ServedKronmem) -> None:
    method, path, made = BODIES[name]
    body = made()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    with ExitStack() as stack, httpx.Client(base_url=unlocked.url, trust_env=False, timeout=PATIENCE) as http:
        lines = [stack.enter_context(dialled(unlocked)) for _ in range(3)]
        for line in lines:
            line.sendall(head.encode() + body[:-1])
        assert http.get("/health").status_code == 200
        for line in lines:
            line.sendall(body[-1:])
        while len(select.select(lines, [], [], 0)[0]) < len(lines):
            assert http.get("/health").status_code == 200
        assert {line.recv(4096).split()[1] for line in lines} <= {b"200", b"422"}


@pytest.mark.parametrize(
    "body",
    [b"[" + b"{}," * (MAX_VALUES + 1) + b"{}]", b"[" + rb'"\\",' * (MAX_VALUES + 1) + b"1]", b"[" * (2 * MAX_VALUES)],
)
def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(body: bytes) -> None:
    with pytest.raises(InvalidRequestError, match="more than 1000000 values"):
        parse(body)


@pytest.mark.parametrize("text", ["{[,", '\\"{[,\\\\', "\\\\", '\\\\\\"', "é,\\n"])
def test_commas_and_brackets_in_a_text_are_no_values(text: str) -> None:
    encoded = text * (3_000_000 // len(text))
    body = f'{{"value": "{encoded}"}}'.encode()
    assert parse(body) == json.loads(body)


def test_large_bodies_share_a_room_and_small_ones_always_fit() -> None:
    room = BodyRoom(100)
    with room.share() as first, room.share() as second:
        first(SMALL + 60)
        first(SMALL + 70)
        second(SMALL + 30)
        with pytest.raises(HTTPException) as caught:
            second(SMALL + 31)
        assert (caught.value.status_code, (caught.value.headers or {})["retry-after"]) == (503, "1")
        with room.share() as third:
            third(SMALL)
    with room.share() as again:
        again(SMALL + 100)


@pytest.mark.slow
def test_many_large_bodies_at_once_take_bounded_memory(tmp_path: Path) -> None:
    body = b'{"value":"' + b"x" * (FULL - 12) + b'"}'
    head = f"PUT {STATE} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with ServedKronmem(tmp_path / "memory.db") as service, ExitStack() as stack:
        lines = [stack.enter_context(dialled(service)) for _ in range(3 * LARGE // FULL)]
        for line in lines:
            with suppress(ConnectionError):  # refused, and closed before all of it was sent
                line.sendall(head + body[:-1])
        reply = httpx.post(service.url + REMEMBER, json={"content": "small"}, trust_env=False, timeout=60)
        assert reply.status_code == 201
        assert megabytes(service) < 1.5 * LARGE / 2**20 + 200
        refused = [line for line in lines if select.select([line], [], [], 0)[0]]
        assert len(refused) >= len(lines) // 2
        for line in lines:
            line.close()
        for _ in range(600):  # until the server has noticed
            reply = httpx.put(service.url + STATE, content=body, trust_env=False, timeout=60)
            if reply.status_code != 503:
                break
        assert reply.status_code == 422  # room for it, but longer than a state may be


def megabytes(service: ServedKronmem) -> float:
    status = Path(f"/proc/{service.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1024


def test_a_body_that_a_get_declares_is_not_waited_for(served: ServedKronmem) -> None:
    with dialled(served) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n")
        assert line.recv(65536).startswith(b"HTTP/1.1 200")
        line.sendall(b"12345GET /api/v1/agents HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answered = b""
        while part := line.recv(65536):
            answered += part
        assert b"HTTP/1.1 401" in answered


HALVES = {
    "nothing": b"",
    "half a header": b"GET /health HTTP/1.1\r\nHost: loc",
    "half a body": b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{" % REMEMBER.encode(),
}


def healthy(service: ServedKronmem) -> bool:
    with dialled(service) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return line.recv(4096).startswith(b"HTTP/1.1 200")


@pytest.mark.slow
@pytest.mark.parametrize("half", HALVES)
def test_thousands_of_silent_connections_make_room_for_those_who_ask(half: str, unlocked: ServedKronmem) -> None:
    with ExitStack() as stack:
        for _ in range(6):
            for number in range(MOST):
                stack.enter_context(dialled(unlocked)).sendall(HALVES[half])
                if number % 10 == 9:  # those before have been heard by now, not only accepted
                    assert healthy(unlocked)
            assert httpx.get(f"{unlocked.url}/health", trust_env=False, timeout=60).status_code == 200
            reply = httpx.post(unlocked.url + REMEMBER, json={"content": "asked"}, trust_env=False, timeout=60)
            assert reply.status_code == 201
        open_files = len(list(Path(f"/proc/{unlocked.pid}/fd").iterdir()))
        assert open_files < MOST + 50
        assert megabytes(unlocked) < 1000
