"""TLS and proxies, on real sockets, in every shell."""

from __future__ import annotations

import base64
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
import trustme

from kronmem import CertificateError, ConfigError, DeadlineError, Retry, TransportError
from tests.services import RawServer
from tests.services.proxies import Tunnels, secured
from tests.services.raw import hang, respond
from tests.shells import shell

FOUND: dict[str, Any] = {"results": []}
ONCE = Retry(attempts=1)


@pytest.mark.usefixtures("trusted")
def test_one_connection_carries_many_calls(kind: str, authority: trustme.CA) -> None:
    big = {"results": [], "padding": "x" * 300_000}
    with secured(RawServer([respond(200, body=FOUND), respond(200, body=big)]), authority) as server:
        with shell(kind, server.url, api_key="kv-x") as client:
            for _ in range(4):
                assert client.recall("alice", "question " * 500) == []
        assert server.connections == 1
        assert [request.headers["x-api-key"] for request in server.requests] == ["kv-x"] * 4


def test_a_certificate_of_unknown_origin_is_refused_before_anything_is_sent(kind: str, authority: trustme.CA) -> None:
    with secured(RawServer([respond(200, body=FOUND)]), authority) as server:
        with shell(kind, server.url, api_key="kv-x", retry=ONCE) as client:
            with pytest.raises(CertificateError, match=f"{server.url} cannot be trusted: .*issuer"):
                client.recall("alice", "question")
        assert server.requests == []


@pytest.mark.parametrize("held", [None, b"no certificate"])
def test_certificates_that_cannot_be_read_are_said_to_be_the_problem(
    kind: str, held: bytes | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if held:
        (tmp_path / "authority.pem").write_bytes(held)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    with shell(kind, "https://127.0.0.1:1") as client, pytest.raises(ConfigError, match="SSL_CERT_FILE"):
        client.recall("alice", "question")


@pytest.mark.usefixtures("trusted")
def test_a_certificate_for_another_name_is_refused(kind: str, authority: trustme.CA) -> None:
    with secured(RawServer([respond(200, body=FOUND)]), authority, "memory.example") as server:
        with shell(kind, server.url) as client, pytest.raises(CertificateError, match="mismatch"):
            client.recall("alice", "question")
        assert server.requests == []


@pytest.mark.slow
@pytest.mark.usefixtures("trusted")
def test_a_slow_service_holds_nobody_beyond_the_deadline(kind: str, authority: trustme.CA) -> None:
    with secured(RawServer([hang()]), authority) as server, shell(kind, server.url, timeout=0.3) as client:
        with pytest.raises(DeadlineError):
            client.recall("alice", "question")


@pytest.mark.slow
def test_a_handshake_that_never_ends_holds_nobody_beyond_the_deadline(kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with shell(kind, f"https://127.0.0.1:{silent.getsockname()[1]}", timeout=0.3) as client:
            with pytest.raises(DeadlineError):
                client.recall("alice", "question")


def test_a_service_without_tls_is_a_typed_error(kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as plain:
        with shell(kind, f"https://127.0.0.1:{plain.getsockname()[1]}", retry=ONCE, timeout=5) as client:

            def answer() -> None:
                connection, _ = plain.accept()
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
                connection.close()

            threading.Thread(target=answer, daemon=True).start()
            with pytest.raises(TransportError, match="TLS: wrong version number"):
                client.recall("alice", "question")


# ── proxies ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_plain_http_goes_through_the_proxy_with_its_password(
    kind: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RawServer([respond(200, body=FOUND)]) as proxy:
        monkeypatch.setenv(name, proxy.url.replace("//", "//some:p%40ss@"))
        with shell(kind, "http://memory.example/base") as client:
            assert client.recall("alice", "question") == []
            assert client.recall("alice", "question") == []
        assert proxy.requests[0].target == "http://memory.example/base/api/v1/agents/alice/recall"
        given = base64.b64encode(b"some:p@ss").decode()
        assert [request.headers["proxy-authorization"] for request in proxy.requests] == [f"Basic {given}"] * 2
        assert proxy.connections == 1


@pytest.mark.usefixtures("trusted")
def test_https_goes_through_a_tunnel_that_sees_no_key(
    kind: str, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        secured(RawServer([respond(200, body=FOUND)]), authority, "memory.example") as server,
        Tunnels(server) as proxy,
    ):
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        with shell(kind, "https://memory.example", api_key="kv-secret") as client:
            assert client.recall("alice", "question") == []
            assert client.recall("alice", "question") == []
        assert [request.target for request in proxy.requests] == ["memory.example:443"]
        assert "kv-secret" not in str(proxy.requests)
        assert len(server.requests) == 2


def test_a_proxy_that_refuses_is_a_typed_error(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with RawServer([respond(407)]) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        with shell(kind, "https://memory.example", retry=ONCE) as client:
            with pytest.raises(
                TransportError, match=rf"through the proxy {proxy.url} \(the proxy answered 407"
            ) as caught:
                client.recall("alice", "question")
            assert not caught.value.sent


def test_a_proxy_that_wants_another_password_is_not_taken_for_the_service(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 4xx of the service would end a memory for good."""
    with RawServer([respond(407)]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        with shell(kind, "http://memory.example", retry=ONCE) as client:
            with pytest.raises(
                TransportError, match="the proxy answered 407: it wants another user or password"
            ) as caught:
                client.recall("alice", "question")
            assert not caught.value.sent


@pytest.mark.parametrize("value", ["socks5://127.0.0.1:1", "http://127.0.0.1:nonsense", "ftp://proxy.example"])
def test_a_proxy_of_another_kind_is_refused(kind: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    with shell(kind, "http://memory.example") as client, pytest.raises(ConfigError, match="proxy"):
        client.recall("alice", "question")


def test_this_machine_and_what_the_environment_excepts_are_not_proxied(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "memory.invalid")
    with RawServer([respond(200, body=FOUND)]) as server, shell(kind, server.url) as client:
        assert client.recall("alice", "question") == []
    with shell(kind, "http://memory.invalid", retry=ONCE) as client:
        with pytest.raises(TransportError, match=r"cannot connect to http://memory\.invalid:80"):
            client.recall("alice", "question")
