"""HTTP/1.1 as bytes: a request's head with the key, its bytes to write, and the reply once enough was read. No I/O."""

from __future__ import annotations

import base64
import ipaddress
import json
import re
import ssl
import time
from collections.abc import Generator, Iterable
from typing import NamedTuple, TypeVar
from urllib.parse import quote, unquote_to_bytes, urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import SecretBytes, SecretStr

from kronmem.core.wire import Reply, Request
from kronmem.errors import ConfigError
from kronmem.settings import address_of, is_loopback
from kronmem.transport.failures import ProxyRefusedError
from kronmem.transport.reply_parser import ProtocolError, ReplyParser
from kronmem.transport.tls import trusted

T = TypeVar("T")

Conversation = Generator[bytes | None, bytes | None, T]
"""Yields bytes to write and is resumed with bytes read, none of them meaning the end of the stream.

It yields None after a stretch of work, so that others may run, and is resumed with None.
"""

_AUTHORITY = re.compile("[!-~]+")


class Http1:
    """The protocol of one connection, which carries one request at a time."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._parser: ReplyParser | None = None
        self.reusable = False
        """Is the connection between two requests, with nothing left to read?"""

    def ask(self, request: Request) -> Conversation[Reply]:
        """Send one request and read its reply."""
        incoming = yield self.encode(request)
        while (reply := self.feed(incoming)) is None:
            incoming = yield b"" if self._parser is None or self._parser.starved else None
        return reply

    def encode(self, request: Request) -> bytes:
        """The bytes of a request, head and body."""
        self.reusable = False
        self._parser = ReplyParser()
        return encode_headers(self._target, request)

    def feed(self, data: bytes | None) -> Reply | None:
        """Take bytes that were read, b"" at the end of the stream; returns the reply when it is whole.

        None goes on with bytes that were fed before and not yet looked at.
        """
        parser = self._parser
        if parser is None or not parser.feed(data):
            return None
        self._parser = None  # a connection may be idle for long: it holds no megabytes meanwhile
        status = parser.status
        if status == 407 and self._target.proxy is not None:
            raise ProxyRefusedError(status)
        reply = self._target.reply(status, parser.body, parser.headers)
        # After a 500 some servers drop the connection, but only when it is used again.
        self.reusable = parser.reusable and status < 500
        return reply


def tunnel(target: Target, authorization: bytes | None) -> Conversation[None]:
    """Have a proxy open a tunnel to the target. It learns host and port, nothing else."""
    authority = target.authority
    if _AUTHORITY.fullmatch(authority) is None:
        raise ProtocolError("invalid characters in the host")
    connect = f"CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\nuser-agent: kronmem".encode("ascii")
    if authorization is not None:
        connect += b"\r\nproxy-authorization: " + authorization
    parser = ReplyParser(connect=True)
    incoming = yield connect + b"\r\n\r\n"
    while not parser.feed(incoming):
        incoming = yield b"" if parser.starved else None
    if not 200 <= parser.status < 300:
        raise ProxyRefusedError(parser.status)
    if parser.stray:
        raise ProtocolError("the proxy sent data before the tunnel was used")


def names(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by their names in lower case."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}


# The head of a request: the header with the key, those that every request carries, and its first line. No I/O.


def headers(target: Target, request: Request) -> list[tuple[bytes, bytes]]:
    """Every header of a request; the key is read out of its wrapper only here."""
    headers = [
        (b"host", target.netloc.encode("ascii")),
        (b"accept", b"application/json"),
        (b"accept-encoding", b"gzip, deflate"),
        (b"user-agent", b"kronmem"),
    ]
    if target.key is not None:
        headers.append((b"x-api-key", target.key.get_secret_value().encode("ascii")))
    headers += [(name.encode("ascii"), value.encode("ascii")) for name, value in request.headers]
    if (length := _content_length(request)) is not None:
        headers.append((b"content-length", str(length).encode("ascii")))
    return headers


def encode_headers(target: Target, request: Request) -> bytes:
    """The bytes of a request, head and body; through a proxy that is no tunnel, with the whole address."""
    where = target.url(request) if _forwarded(target) else target.path(request)
    lines = [f"{request.method} {where} HTTP/1.1", *[f"{name}: {value}" for name, value in request.headers]]
    own = "".join(lines)
    if not own.isascii() or not own.isprintable():
        raise ConfigError("a path or header holds a line break or a character beyond ASCII")
    if (length := _content_length(request)) is not None:
        lines.append(f"content-length: {length}")
    return b"".join(("\r\n".join(lines).encode("ascii"), _shared(target), request.body or b""))


def _content_length(request: Request) -> int | None:
    if request.body is None and request.method not in ("POST", "PUT", "PATCH"):
        return None
    return len(request.body or b"")


def _forwarded(target: Target) -> bool:
    return target.proxy is not None and target.scheme == "http"


def _shared(target: Target) -> bytes:
    """The headers that do not change, encoded once, with the empty line after them."""
    if target.shared_head is None:
        lines = [b"", *(name + b": " + value for name, value in headers(target, Request("GET", "/")))]
        if target.proxy is not None and target.proxy.authorization and _forwarded(target):
            lines.append(b"proxy-authorization: " + target.proxy.authorization)
        target.shared_head = SecretBytes(b"\r\n".join([*lines, b"", b""]))
    return target.shared_head.get_secret_value()


# The address of a service as a client reaches it: host and port, path, proxy, trusted certificates.

LEAST_KEY = 6
"""Characters: a shorter key may be a part of any word, and of the names that an error's JSON is read by."""
HIDDEN = "[key]"


class Target:
    """A service's address and key, and how it is reached."""

    def __init__(self, url: str, key: SecretStr | None) -> None:
        parts = urlsplit(url)
        name = parts.hostname or ""
        self.scheme = parts.scheme
        self.host = name if name.isascii() else name.encode("idna").decode("ascii")
        self.port = parts.port or (443 if parts.scheme == "https" else 80)
        self.prefix = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
        self.netloc = parts.netloc if name.isascii() else parts.netloc.lower().replace(name, self.host)
        self.address = address_of(url)
        self.key = key
        self.shared_head: SecretBytes | None = None
        """The headers that do not change, encoded once by `headers`."""
        self._proxy: Proxy | None = None
        self._proxied: bool | None = None
        self._context: ssl.SSLContext | None = None

    def path(self, request: Request) -> str:
        """The request's target with its query."""
        if not request.query:
            return f"{self.prefix}{request.path}"
        query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in request.query)
        return f"{self.prefix}{request.path}?{query}"

    def url(self, request: Request) -> str:
        """The whole address of a request."""
        return f"{self.scheme}://{self.netloc}{self.path(request)}"

    def reply(self, status: int, body: bytes, headers: dict[str, str]) -> Reply:
        """The reply as it came; an error that repeats the key comes without it."""
        key = self.key.get_secret_value() if self.key else ""
        if status >= 300 and len(key) >= LEAST_KEY:
            quoted = json.dumps(key)[1:-1]
            for written in (key, quoted, quoted.replace("/", "\\/")):
                body = body.replace(written.encode(), HIDDEN.encode())
            headers = {name: value.replace(key, HIDDEN) for name, value in headers.items()}
        return Reply(status, body, headers, time.time())

    @property
    def authority(self) -> str:
        """Host and port, as CONNECT names them."""
        return f"{bracketed(self.host)}:{self.port}"

    @property
    def proxy(self) -> Proxy | None:
        """The proxy that the environment names for this host, read once."""
        if self._proxied is None:
            self._proxy = proxy_for(self.scheme, self.host, self.port)
            self._proxied = self._proxy is not None
        return self._proxy

    @property
    def context(self) -> ssl.SSLContext:
        """The trusted certificates, read once and only where they are needed.

        Without a lock: one that another thread held at a fork would stay locked, and two contexts do no harm.
        """
        if self._context is None:
            self._context = trusted()
        return self._context


# The proxy that the environment names for a host, and the hosts that it excepts (`NO_PROXY`).


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
    proxy = named.get(scheme) or named.get("all")
    return parse(proxy) if proxy else None


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
    parts = bracket or re.fullmatch(r"([^:]*):(\d+)", entry)
    if parts is None:
        return entry, None
    return parts[1], int(parts[2]) if parts[2] else None


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
