"""TLS that cannot be trusted is no outage: named, never retried, never queued."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from kronmem import CertificateError, ConfigError, Retry
from tests.services import RawServer
from tests.services.proxies import Tunnels, secured, server_context
from tests.services.raw import respond
from tests.shells import shell

FOUND: dict[str, Any] = {"results": []}


def expired(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    authority.issue_cert("127.0.0.1", not_before=past, not_after=past).configure_cert(context)
    return context


def too_old(authority: trustme.CA) -> ssl.SSLContext:
    context = server_context(authority, "127.0.0.1")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


UNTRUSTED = {
    "wrong host": (lambda authority: server_context(authority, "memory.example"), "mismatch"),
    "unknown authority": (lambda authority: server_context(trustme.CA(), "127.0.0.1"), "unable to get local issuer"),
    "expired": (expired, "expired"),
    "too old": (too_old, "too old"),
}


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("fault", UNTRUSTED)
def test_tls_that_cannot_be_trusted_is_named_and_neither_retried_nor_queued(
    kind: str, fault: str, authority: trustme.CA, tmp_path: Path
) -> None:
    make, reason = UNTRUSTED[fault]
    server = RawServer([respond(200, body=FOUND)])
    server.tls = make(authority)
    with server, shell(kind, server.url, api_key="kv-secret", outbox=tmp_path / "outbox.db") as client:
        for _ in range(7):  # more than the breaker bears
            with pytest.raises(CertificateError, match=f"{server.url} cannot be trusted: .*{reason}") as caught:
                client.remember("alice", "alpha bravo")
        assert isinstance(caught.value, ConfigError)
        assert "kv-secret" not in str(caught.value)
        assert server.connections == 7
        assert server.requests == []
        health = client.health()
        assert (health.ok, health.breaker, health.pending) == (False, "closed", 0)


@pytest.mark.usefixtures("trusted")
def test_the_certificate_of_a_proxy_is_told_from_that_of_the_service(
    kind: str, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    with secured(RawServer([respond(200, body=FOUND)]), authority, "memory.example") as server:
        proxy = Tunnels(server)
        proxy.tls = server_context(authority, "proxy.example")
        with proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url)
            with shell(kind, "https://memory.example") as client:
                with pytest.raises(CertificateError, match=f"{proxy.url} cannot be trusted"):
                    client.recall("alice", "question")
        with Tunnels(server) as tunnels:
            monkeypatch.setenv("HTTPS_PROXY", tunnels.url)
            with shell(kind, "https://other.example", retry=Retry(attempts=1)) as client:
                with pytest.raises(CertificateError, match=r"https://other\.example:443 cannot be trusted"):
                    client.recall("alice", "question")
        assert server.requests == []
