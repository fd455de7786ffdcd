"""The proxy that the environment names for a host, and the hosts that it excepts (`NO_PROXY`)."""

from __future__ import annotations

import base64
import ipaddress
import re
from typing import NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit
from urllib.request import getproxies, proxy_bypass

from kronmem.errors import ConfigError
from kronmem.settings import is_loopback


class Proxy(NamedTuple):
    """A proxy that speaks HTTP, and the header that authenticates us there."""

    scheme: str
    host: str
    port: int
    authorization: bytes | None = None

    @property
    def address(self) -> str:
        """Scheme, host and port; never the password."""
        return f"{self.scheme}://{bracketed(self.host)}:{self.port}"


def proxy_for(scheme: str, host: str, port: int) -> Proxy | None:
    """Read the environment; this machine is never proxied."""
    if is_loopback(host):
        return None
    named = getproxies()
    if excepted(named.get("no", ""), host, port) or proxy_bypass(host):
        return None
    found = named.get(scheme) or named.get("all")
    return parse(found) if found else None


def parse(url: str) -> Proxy:
    """Read the address of a proxy, with or without scheme and password."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        usual = {"http": 80, "https": 443}[parts.scheme]
        port = parts.port or usual
        host = (parts.hostname or "").encode("idna").decode("ascii")
    except (ValueError, KeyError):
        raise ConfigError(
            "the environment names a proxy that does not speak HTTP (HTTP_PROXY, HTTPS_PROXY or ALL_PROXY); "
            "name another one, or pass an httpx transport that supports it as transport="
        ) from None
    if not parts.username:
        return Proxy(parts.scheme, host, port)
    password = unquote_to_bytes(parts.username) + b":" + unquote_to_bytes(parts.password or "")
    return Proxy(parts.scheme, host, port, b"Basic " + base64.b64encode(password))


def excepted(no_proxy: str, host: str, port: int) -> bool:
    """Does `NO_PROXY` name this host? As host, domain, `*.domain`, `host:port`, address, CIDR or `*`.

    A domain stands for itself and for all below it, with or without the dot in front.
    """
    return any(_matches(entry.lower(), host.lower(), port) for entry in re.split(r"[,\s]+", no_proxy) if entry)


def _matches(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    if (network := _network(entry)) is not None:
        return (address := _address(host)) is not None and address in network
    name, wanted = _split_port(entry)
    if wanted is not None and wanted != port:
        return False
    if (address := _address(name)) is not None:
        return _address(host) == address
    domain = name.lstrip("*").strip(".")
    host = host.rstrip(".")
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def _split_port(entry: str) -> tuple[str, int | None]:
    bracket = re.fullmatch(r"\[(.*)\](?::(\d+))?", entry)
    found = bracket or re.fullmatch(r"([^:]*):(\d+)", entry)
    if found is None:
        return entry, None
    return found[1], int(found[2]) if found[2] else None


def _network(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(entry, strict=False) if "/" in entry else None
    except ValueError:
        return None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def bracketed(host: str) -> str:
    """A host as it stands in front of a port."""
    return f"[{host}]" if ":" in host else host
