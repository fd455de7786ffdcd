"""Fault 17: who may ask, from where, how much and how slowly; and what a server says about it."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from kronmem import ConfigError, KronmemError, StoreError, TransportError
from kronmem.engine.engine import Engine
from kronmem.server.api_keys import Keys, owners
from kronmem.server.app import CONTRACTS, OPEN, create_app
from kronmem.server.connection_limit import MOST
from kronmem.server.contracts.contract import MAX_BODY
from kronmem.server.guard import Hosts, read
from kronmem.server.serve import run
from kronmem.transport.local import sqlite_service
from tests.server.conftest import ADA
from tests.services.kronmem import ServedKronmem

WRITE = "/api/v1/agents/guarded/remember"


@contextmanager
def dialled(service: ServedKronmem) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as line:
        yield line


def heard(line: socket.socket) -> bytes:
    """Everything until the server hangs up."""
    parts = []
    while part := line.recv(65536):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "example.com"])
def test_beyond_loopback_without_a_key_it_refuses_to_start(host: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="without a key"):
        run(host, 0, str(tmp_path / "memory.db"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["/api/v1/agents", "/memory/ns", "/v1/memory/list"])
@pytest.mark.parametrize("wrong", ["kv-wrong", ADA[:-1], ADA + "x", ADA.upper(), "é"])
def test_a_wrong_key_is_refused_and_never_repeated(path: str, wrong: str, http: httpx.Client) -> None:
    http.get(path, headers={"X-API-Key": ADA})  # wrong keys in a row are counted
    said = wrong.encode("latin-1")
    for headers in ({b"X-API-Key": said}, {b"Authorization": b"Bearer " + said}):
        reply = http.get(path, headers=headers)
        assert reply.status_code == 401
        assert wrong not in reply.text


def test_broken_basic_credentials_are_only_wrong(http: httpx.Client) -> None:
    for header in ("Basic", "Basic ???", "Basic /w==", "basic a2V5"):
        assert http.get("/memory/ns", headers={"Authorization": header}).status_code == 401


def test_every_key_has_one_owner_and_a_name_may_have_two_keys() -> None:
    found = owners("bare", "ada:one,bob:two, ada:three:with-colon")
    assert found == {"bare": "", "one": "ada", "two": "bob", "three:with-colon": "ada"}
    assert owners(None, "") is None
    assert Keys(found).owner("two") == "bob"
    assert Keys(found).owner("tw") is None


@pytest.mark.parametrize("named", ["justakey", "a b:key", ":key", "ada:", "ada:se cret", "ada:x,bob:x"])
def test_unreadable_keys_are_refused_without_being_shown(named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        owners(None, named)
    assert "se cret" not in str(caught.value)
    assert "justakey" not in str(caught.value)


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "[bad", "", "x:y:z"]
)
def test_a_foreign_host_is_refused(host: str, open_http: httpx.Client) -> None:
    assert 400 <= open_http.get("/health", headers={"Host": host}).status_code < 500


def every_route() -> list[tuple[str, str]]:
    """Method and path of each route of each contract, its ids filled in."""
    rows = [(route.method, route.path) for contract in CONTRACTS for route in contract.routes]
    return [(method, re.sub(r"{\w+}", "x", path)) for method, path in rows]


FORGED = [
    *("127.0.0.1/health?x=", "127.0.0.1:7070/health?", "127.0.0.1/health#", "127.0.0.1/openapi.json?", "127.0.0.1/?"),
    *("x@127.0.0.1", "127.0.0.1\\health", "127.0.0.1\t/health", "127.0.0.1 /health", "127.0.0.1:", "127.0.0.1:7070:1"),
]


@pytest.mark.parametrize("host", FORGED)
def test_a_host_with_more_than_a_name_and_a_port_is_refused(host: str, served: ServedKronmem) -> None:
    for method, path in [("GET", "/api/v1/agents"), ("DELETE", "/api/v1/agents/x/memories"), ("GET", "/health")]:
        with dialled(served) as line:
            line.sendall(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            assert heard(line).split()[1] in (b"400", b"421")


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["127.0.0.1", *FORGED])
async def test_no_host_opens_a_route_that_needs_a_key(host: str) -> None:
    """Even where the check of the Host lets it pass: only the route that matched decides."""

    class Anybody(Hosts):
        def allows(self, header: str | None) -> bool:
            return True

    service = sqlite_service(":memory:")
    transport = httpx.ASGITransport(create_app(service, {ADA: "ada"}, Anybody()))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answered = {
            path: (await client.request(method, path, headers={"Host": host})).status_code
            for method, path in [*every_route(), ("GET", "/"), ("GET", "/openapi.json")]
        }
    service.close()
    assert {path for path, status in answered.items() if status != 401} == OPEN
    assert {answered[path] for path in OPEN} == {200}


def spelt_otherwise() -> list[tuple[str, str]]:
    """Every route with a letter, then the last slash, of its fixed words percent-encoded."""
    found: list[tuple[str, str]] = []
    for method, path in every_route():
        words = re.compile(r"(?<=/)(?!x\b)[a-z]")
        encoded = [f"{path[: m.start()]}%{ord(m[0]):02x}{path[m.end() :]}" for m in words.finditer(path)]
        encoded += [f"{path[:at]}%2F{path[at + 1 :]}" for at, sign in enumerate(path) if sign == "/" and at]
        found += [(method, one) for one in encoded]
    return found


@pytest.mark.anyio
@pytest.mark.parametrize("keys", [None, {ADA: "ada", "kv-bob-1": "bob"}])
async def test_a_percent_encoded_word_or_slash_of_a_path_leads_nowhere(keys: dict[str, str] | None) -> None:
    """Fault 43: the same on all contracts, never a 500, never another owner's, and nothing is stored or deleted."""
    service = sqlite_service(":memory:")
    transport = httpx.ASGITransport(create_app(service, keys))
    body = {"content": "planted", "query": "planted", "value": "planted", "name": "planted"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1", headers={"X-API-Key": ADA}
    ) as client:
        await client.post(WRITE, json={"content": "kept"})
        await client.put("/memory/x/x", json={"value": "kept"})
        before = [(await client.get(path)).json() for path in ("/api/v1/agents", "/memory/x/x")]
        for method, path in spelt_otherwise():
            reply = await client.request(method, path, json=body)
            assert reply.status_code == 404, (method, path, reply.text)
            assert "kept" not in reply.text
        assert [(await client.get(path)).json() for path in ("/api/v1/agents", "/memory/x/x")] == before
    service.close()


@pytest.mark.anyio
async def test_a_method_that_a_path_lacks_is_told_which_it_has() -> None:
    service = sqlite_service(":memory:")
    transport = httpx.ASGITransport(create_app(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        reply = await client.post("/api/v1/agents/x/memories")
        odd = await client.request("BREW", "/health")
        head = await client.head("/health")
    service.close()
    assert (reply.status_code, reply.headers["allow"]) == (405, "GET, DELETE, HEAD")
    assert (odd.status_code, odd.headers["allow"]) == (405, "GET, HEAD")
    assert head.status_code == 200


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "status", "away"),
    [
        (TransportError("lost", sent=False), 503, "store"),
        (TransportError("lost while it committed", sent=True), 504, "store"),
        (TransportError("a node is lost", sent=False, partial=True), 503, "agent"),
        (StoreError("the disk is full", outage=True), 503, "store"),
        (StoreError("a row is damaged"), 503, None),
    ],
)
async def test_a_store_that_fails_says_what_is_away_and_whether_it_may_have_stored(
    monkeypatch: pytest.MonkeyPatch, error: KronmemError, status: int, away: str | None
) -> None:
    def fail(*_: object) -> None:
        raise error

    service = sqlite_service(":memory:")
    monkeypatch.setattr(Engine, "remember", fail)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(create_app(service)), base_url="http://127.0.0.1"
    ) as client:
        reply = await client.post("/api/v1/agents/x/remember", json={"content": "text"})
    service.close()
    assert (reply.status_code, reply.headers.get("kronmem-unavailable")) == (status, away)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:7070", "LOCALHOST", "[::1]:7070", "me.localhost"])
def test_the_names_of_this_machine_are_served(host: str, open_http: httpx.Client) -> None:
    assert open_http.get("/health", headers={"Host": host}).status_code == 200


def test_on_all_interfaces_numbers_are_served_and_names_only_when_they_are_allowed() -> None:
    hosts = Hosts("0.0.0.0", ["memory.example"])
    assert hosts.allows("192.0.2.7:7070")
    assert hosts.allows("memory.example")
    assert hosts.allows(socket.gethostname())
    assert not hosts.allows("evil.example")
    assert not Hosts("127.0.0.1").allows("192.0.2.7")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_another_site_may_not_write(headers: dict[str, str], open_http: httpx.Client) -> None:
    for method in ("POST", "DELETE", "PUT", "PATCH"):
        reply = open_http.request(method, WRITE, headers=headers, json={"content": "planted"})
        assert reply.status_code == 403
    assert "access-control-allow-origin" not in open_http.get("/api/v1/agents", headers=headers).headers


def test_our_own_page_may_write(open_http: httpx.Client, unlocked: ServedKronmem) -> None:
    headers = {"Origin": unlocked.url, "Sec-Fetch-Site": "same-origin"}
    assert open_http.post(WRITE, headers=headers, json={"content": "from the page"}).status_code == 201


def test_a_body_over_the_limit_is_refused_declared_or_not(unlocked: ServedKronmem) -> None:
    with dialled(unlocked) as line:
        line.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n" % WRITE.encode())
        assert heard(line).startswith(b"HTTP/1.1 413")
    chunks = (b"x" * 65536 for _ in range(MAX_BODY // 65536 + 1))
    reply = httpx.post(unlocked.url + WRITE, content=chunks, trust_env=False, timeout=60)
    assert reply.status_code == 413


@pytest.mark.anyio
async def test_a_body_that_never_comes_is_not_waited_for() -> None:
    async def receive() -> Any:
        await anyio.sleep_forever()

    scope = {
        "type": "http",
        "method": "POST",
        "path": WRITE,
        "raw_path": WRITE.encode(),
        "headers": [],
        "query_string": b"",
    }
    with pytest.raises(HTTPException) as caught:
        await read(Request(scope, receive), MAX_BODY, seconds=0.001)
    assert caught.value.status_code == 408


def test_idle_connections_make_room_for_those_who_ask(unlocked: ServedKronmem) -> None:
    with ExitStack() as stack:
        lines = [stack.enter_context(dialled(unlocked)) for _ in range(MOST + 100)]
        assert httpx.get(f"{unlocked.url}/health", trust_env=False, timeout=60).status_code == 200
        assert lines[0].recv(1) == b""  # the longest silent one had to go
    with dialled(unlocked) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert heard(line).startswith(b"HTTP/1.1 200")


def test_a_request_id_is_echoed_or_made(open_http: httpx.Client) -> None:
    assert open_http.get("/health", headers={"X-Request-ID": "abc-1"}).headers["x-request-id"] == "abc-1"
    for bad in ("a b", "x" * 200, "<script>"):
        made = open_http.get("/health", headers={"X-Request-ID": bad}).headers["x-request-id"]
        assert made != bad
        assert len(made) == 32


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/nope", "GET", 404),
        ("/health", "POST", 405),
        ("/memory/", "GET", 404),
        ("/v1/memory/recall", "POST", 405),
        ("/api/v1/agents/", "GET", 404),
    ],
)
def test_what_is_not_there_is_said_in_json(path: str, method: str, status: int, open_http: httpx.Client) -> None:
    reply = open_http.request(method, path)
    assert reply.status_code == status
    assert set(reply.json()) in ({"detail"}, {"error", "message"})


def test_answers_are_not_kept_by_browsers_and_proxies(open_http: httpx.Client) -> None:
    assert open_http.get("/api/v1/agents").headers["cache-control"] == "no-store"
    assert "server" not in open_http.get("/health").headers


def test_a_write_that_was_accepted_is_finished_before_the_server_ends(tmp_path: Path) -> None:
    body = json.dumps({"content": "half a body when the signal came"}).encode()
    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (WRITE.encode(), len(body))
    with ServedKronmem(tmp_path / "memory.db") as service:
        with dialled(service) as line:
            line.sendall(head + body[:10])
            httpx.get(f"{service.url}/health", trust_env=False, timeout=60)  # by now the other request is being read
            process = service._process
            assert process is not None
            process.send_signal(signal.SIGTERM)
            line.sendall(body[10:])
            assert b" 201 Created" in heard(line)
        assert process.wait(10) == 0
        assert service.contents("guarded") == ["half a body when the signal came"]
        assert not (tmp_path / "memory.db-wal").exists()


@pytest.mark.slow
def test_a_body_that_trickles_does_not_hold_the_end(tmp_path: Path) -> None:
    """Fault 49: the client goes on sending one byte after another, without end."""
    with ServedKronmem(tmp_path / "memory.db") as service, dialled(service) as line:
        line.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{" % WRITE.encode())
        httpx.get(f"{service.url}/health", trust_env=False, timeout=60)  # by now the other request is being read
        process = service._process
        assert process is not None
        process.send_signal(signal.SIGTERM)
        while process.poll() is None:
            with suppress(OSError):
                line.sendall(b" ")
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
        assert process.returncode == 0
