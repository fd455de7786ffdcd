"""`HTTP_PROXY` and `NO_PROXY`, in the forms that people write."""

from __future__ import annotations

import pytest

from kronmem.transport.http1 import excepted, parse, proxy_for


@pytest.mark.parametrize(
    ("no_proxy", "host"),
    [
        ("memory.example", "memory.example"),
        ("MEMORY.Example", "memory.example"),
        ("memory.example", "Memory.EXAMPLE"),
        ("memory.example", "memory.example."),
        ("other.test, memory.example", "memory.example"),
        ("  other.test ,\tmemory.example ,", "memory.example"),
        ("other.test memory.example", "memory.example"),
        (".example", "memory.example"),
        ("example", "memory.example"),
        (".memory.example", "memory.example"),
        ("*.example", "memory.example"),
        ("*.memory.example", "memory.example"),
        ("memory.example:8000", "memory.example"),
        (".example:8000", "memory.example"),
        ("*.example:8000", "memory.example"),
        ("*", "memory.example"),
        ("other.test,*", "memory.example"),
        ("10.1.2.3", "10.1.2.3"),
        ("10.1.2.3:8000", "10.1.2.3"),
        ("10.0.0.0/8", "10.1.2.3"),
        ("10.1.2.3/8", "10.1.2.3"),
        ("fd00::1", "fd00::1"),
        ("fd00:0::1", "fd00::1"),
        ("[fd00::1]", "fd00::1"),
        ("[fd00::1]:8000", "fd00::1"),
        ("fd00::/8", "fd00::1"),
    ],
)
def test_an_excepted_host_is_not_proxied(no_proxy: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert excepted(no_proxy, host, 8000)
    monkeypatch.setenv("ALL_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert proxy_for("https", host, 8000) is None


@pytest.mark.parametrize(
    ("no_proxy", "host"),
    [
        ("", "memory.example"),
        (",", "memory.example"),
        ("mory.example", "memory.example"),
        ("memory.example:9000", "memory.example"),
        ("a.memory.example", "memory.example"),
        (".", "memory.example"),
        ("10.1.2.4", "10.1.2.3"),
        ("10.1.2.3:9000", "10.1.2.3"),
        ("192.168.0.0/16", "10.1.2.3"),
        ("10.0.0.0/8", "memory.example"),
        ("10.0.0.0/99", "10.1.2.3"),
        ("fd00::/8", "10.1.2.3"),
        ("[fd00::1]:9000", "fd00::1"),
    ],
)
def test_any_other_host_is_proxied(no_proxy: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    proxy = proxy_for("https", host, 8000)
    assert proxy is not None
    assert proxy.address == "http://proxy.test:3128"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "app.localhost"])
def test_this_machine_is_never_proxied(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://proxy.test:3128")
    assert proxy_for("http", host, 80) is None


def test_an_address_of_a_proxy_shows_no_password() -> None:
    proxy = parse("https://some:p%40ss@proxy.test")
    assert (proxy.address, proxy.authorization) == ("https://proxy.test:443", b"Basic c29tZTpwQHNz")
    assert parse("proxy.test:3128").address == "http://proxy.test:3128"
    assert parse("http://[fd00::1]:3128").address == "http://[fd00::1]:3128"
