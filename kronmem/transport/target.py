"""Where requests go, what can go wrong on the way, and transports that users pass in; the only module with httpx."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes, urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio
import h11
import httpcore
import httpx
from pydantic import SecretStr

from kronmem.core.wire import Reply, Request
from kronmem.errors import ConfigError, DeadlineError, TransportError
from kronmem.settings import is_loopback
from kronmem.transport.body import Body

HttpxTransport = httpx.BaseTransport | httpx.AsyncBaseTransport

IN_FLIGHT = 100
KEEP_ALIVE = 30.0

_TIMEOUTS = (httpcore.TimeoutException, httpx.TimeoutException, TimeoutError)
_NOT_SENT = (
    httpcore.ConnectError,
    httpcore.ConnectTimeout,
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpcore.ProxyError,
)
FAILURES = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    httpcore.ConnectionNotAvailable,
    httpx.TransportError,
    h11.ProtocolError,
    OSError,
    *_TIMEOUTS,
)


class Target:
    """Where requests go and what every one of them carries."""

    def __init__(self, url: str, key: SecretStr | None) -> None:
        parts = urlsplit(url)
        name = parts.hostname or ""
        self.scheme = parts.scheme
        self.host = name if name.isascii() else name.encode("idna").decode("ascii")
        self.port = parts.port or (443 if parts.scheme == "https" else 80)
        self.prefix = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
        self.netloc = parts.netloc if name.isascii() else parts.netloc.lower().replace(name, self.host)
        self._key = key

    def headers(self, request: Request) -> list[tuple[bytes, bytes]]:
        """Every header of a request; the key is read out of its wrapper only here."""
        found = [
            (b"host", self.netloc.encode("ascii")),
            (b"accept", b"application/json"),
            (b"accept-encoding", b"gzip, deflate"),
            (b"user-agent", b"kronmem"),
        ]
        if self._key is not None:
            found.append((b"x-api-key", self._key.get_secret_value().encode("ascii")))
        found += [(name.encode("ascii"), value.encode("ascii")) for name, value in request.headers]
        if request.body is not None or request.method in ("POST", "PUT", "PATCH"):
            found.append((b"content-length", str(len(request.body or b"")).encode("ascii")))
        return found

    def path(self, request: Request) -> str:
        """The request's target with its query."""
        query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in request.query)
        return f"{self.prefix}{request.path}{'?' + query if query else ''}"

    def url(self, request: Request) -> str:
        """The whole address, for a transport that was passed in."""
        return f"{self.scheme}://{self.netloc}{self.path(request)}"

    @property
    def origin(self) -> httpcore.Origin:
        """Scheme, host and port, as httpcore wants them."""
        return httpcore.Origin(self.scheme.encode("ascii"), self.host.encode("ascii"), self.port)

    @cached_property
    def tls(self) -> ssl.SSLContext | None:
        """Built once, and only where it is needed: it costs more than a hundred requests."""
        try:
            return httpx.create_ssl_context() if self.scheme == "https" else None
        except OSError as error:  # an SSLError is one too
            raise ConfigError("SSL_CERT_FILE or SSL_CERT_DIR names certificates that cannot be read") from error

    @cached_property
    def proxy(self) -> Proxy | None:
        """The proxy that the environment names for this host; read once. This machine is never proxied."""
        if is_loopback(self.host) or proxy_bypass(self.host):
            return None
        found = getproxies().get(self.scheme) or getproxies().get("all")
        return _proxy(found) if found else None


class Proxy(NamedTuple):
    """A proxy and who we are there."""

    url: httpcore.URL
    auth: tuple[bytes, bytes] | None


def _proxy(found: str) -> Proxy:
    try:
        parts = urlsplit(found if "://" in found else f"http://{found}")
        usual = {"http": 80, "https": 443}[parts.scheme]
        port = parts.port or usual
        host = (parts.hostname or "").encode("idna")
    except (ValueError, KeyError):
        raise ConfigError(
            "the environment names a proxy that is not spoken to in HTTP; "
            "name another one, or pass an httpx transport that knows it as transport="
        ) from None
    auth = (unquote_to_bytes(parts.username), unquote_to_bytes(parts.password or "")) if parts.username else None
    return Proxy(httpcore.URL(scheme=parts.scheme, host=host, port=port, target="/"), auth)


def failure(error: BaseException) -> TransportError:
    """Our error for theirs; only the kind is told, for their text may hold the address with its query."""
    if isinstance(error, _TIMEOUTS):
        return DeadlineError(
            "the call's time was up before the service had answered", sent=not isinstance(error, _NOT_SENT)
        )
    if isinstance(error, _NOT_SENT):
        return TransportError(f"the service cannot be reached ({type(error).__name__})", sent=False)
    return TransportError(f"the connection to the service broke ({type(error).__name__})")


def names(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by their names in lower case."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}


class Injected:
    """Requests through an httpx transport that the user passed in, for tests and special networks."""

    def __init__(self, target: Target, transport: httpx.BaseTransport | httpx.AsyncBaseTransport) -> None:
        self._target, self._transport = target, transport

    def _request(self, request: Request) -> httpx.Request:
        limits = dict.fromkeys(("connect", "read", "write", "pool"), request.timeout)
        headers = self._target.headers(request)
        url = self._target.url(request)
        return httpx.Request(request.method, url, headers=headers, content=request.body, extensions={"timeout": limits})

    def send(self, request: Request) -> Reply:
        """Send once."""
        if not isinstance(self._transport, httpx.BaseTransport):
            raise ConfigError("this transport can only be awaited; use it with AsyncClient")
        try:
            response = self._transport.handle_request(self._request(request))
            try:
                body = _collect(response.iter_bytes())
            finally:
                response.close()
        except FAILURES as error:
            raise failure(error) from None
        return Reply(response.status_code, body, names(response.headers.raw), time.time())

    async def asend(self, request: Request) -> Reply:
        """Send once, awaiting."""
        if not isinstance(self._transport, httpx.AsyncBaseTransport):
            raise ConfigError("this transport cannot be awaited; use it with Client")
        try:
            with anyio.fail_after(request.timeout):
                response = await self._transport.handle_async_request(self._request(request))
                try:
                    body = _collect([chunk async for chunk in response.aiter_bytes()])
                finally:
                    await response.aclose()
        except FAILURES as error:
            raise failure(error) from None
        return Reply(response.status_code, body, names(response.headers.raw), time.time())

    def close(self) -> None:
        """Nothing: whoever passed the transport in closes it."""

    async def aclose(self) -> None:
        """Nothing: whoever passed the transport in closes it."""


def _collect(chunks: Iterable[bytes]) -> bytes:
    body = Body({})
    for chunk in chunks:
        body.add(chunk)
    return body.bytes()
