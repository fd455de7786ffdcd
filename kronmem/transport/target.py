"""The address of a service, the headers that every request to it carries, and errors that name it."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from urllib.parse import quote, urlsplit

import h11
import httpx
from pydantic import SecretBytes, SecretStr

from kronmem.core.wire import Request
from kronmem.errors import CertificateError, ConfigError, DeadlineError, TransportError
from kronmem.settings import address_of
from kronmem.transport.proxy import Proxy, bracketed, proxy_for

IN_FLIGHT = 100
"""Connections of one client at most: httpx's default, and what the usual servers take from one peer."""
KEEP_ALIVE = 30.0
"""Seconds that an idle connection may be used again: the usual balancers close after 60, uvicorn after 5."""

FAILURES = (OSError, h11.ProtocolError)
"""Exceptions of the network, TLS and timeouts included, for `Target.failure` to translate."""

_UNTRUSTED = {
    "UNSUPPORTED_PROTOCOL": "its TLS version is too old",
    "TLSV1_ALERT_PROTOCOL_VERSION": "its TLS version is too old",
    "NO_PROTOCOLS_AVAILABLE": "no TLS version in common",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "no cipher in common",
    "TLSV1_ALERT_INSUFFICIENT_SECURITY": "no cipher in common",
    "DH_KEY_TOO_SMALL": "its key is too short",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it asks for a client certificate",
}
"""OpenSSL's names for a handshake that no repetition mends."""


class Target:
    """A service's address, and all that a request to it carries beside its own content."""

    def __init__(self, url: str, key: SecretStr | None) -> None:
        parts = urlsplit(url)
        name = parts.hostname or ""
        self.scheme = parts.scheme
        self.host = name if name.isascii() else name.encode("idna").decode("ascii")
        self.port = parts.port or (443 if parts.scheme == "https" else 80)
        self.prefix = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
        self.netloc = parts.netloc if name.isascii() else parts.netloc.lower().replace(name, self.host)
        self.address = address_of(url)
        self._key = key
        self._head: SecretBytes | None = None
        self._proxy: Proxy | None = None
        self._proxied: bool | None = None
        self._context: ssl.SSLContext | None = None

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

    def encode(self, request: Request) -> bytes:
        """The bytes of a request, head and body; through a proxy that is no tunnel, with the whole address."""
        forwarded = self.proxy is not None and self.scheme == "http"
        where = self.url(request) if forwarded else self.path(request)
        own = [where, *(f"{name}: {value}" for name, value in request.headers)]
        if not all(line.isascii() and line.isprintable() for line in own):
            raise ConfigError("a path or header holds a line break or a character beyond ASCII")
        if request.body is not None or request.method in ("POST", "PUT", "PATCH"):
            own.append(f"content-length: {len(request.body or b'')}")
        own[0] = f"{request.method} {where} HTTP/1.1"
        return b"".join(("\r\n".join(own).encode("ascii"), self._same_for_all(), request.body or b""))

    def _same_for_all(self) -> bytes:
        """The headers that do not change, encoded once, with the empty line after them."""
        if self._head is None:
            lines = [b"", *(name + b": " + value for name, value in self.headers(Request("GET", "/")))]
            if self.proxy is not None and self.scheme == "http" and self.proxy.authorization:
                lines.append(b"proxy-authorization: " + self.proxy.authorization)
            self._head = SecretBytes(b"\r\n".join([*lines, b"", b""]))
        return self._head.get_secret_value()

    def path(self, request: Request) -> str:
        """The request's target with its query."""
        if not request.query:
            return f"{self.prefix}{request.path}"
        query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in request.query)
        return f"{self.prefix}{request.path}?{query}"

    def url(self, request: Request) -> str:
        """The whole address of a request."""
        return f"{self.scheme}://{self.netloc}{self.path(request)}"

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
        """The trusted certificates, read once and only where they are needed: it costs more than a hundred requests.

        Without a lock: one that another thread held at a fork would stay locked, and two contexts do no harm.
        """
        if self._context is None:
            try:
                self._context = httpx.create_ssl_context()
            except OSError as error:  # an SSLError is one too
                raise ConfigError("SSL_CERT_FILE or SSL_CERT_DIR names certificates that cannot be read") from error
        return self._context

    # ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────

    def failure(self, error: BaseException, request: Request, *, sent: bool) -> TransportError | CertificateError:
        """Our error for one of the network's. Addresses and reasons are named, paths and keys never."""
        if isinstance(error, TimeoutError) and error.errno is None:  # with a number it is the kernel's, not the call's
            return self.timed_out(request, sent=sent)
        if isinstance(error, ssl.SSLError) and (distrust := _distrust(error)):
            return CertificateError(
                f"the TLS of {self._peer(error)} cannot be trusted: {distrust.rstrip('.')}. "
                "Check the url; an authority of your own is named by SSL_CERT_FILE."
            )
        if sent and not isinstance(error, ProxyRefusedError):
            return TransportError(f"the connection to {self.address} broke ({_reason(error)})")
        if self.proxy is not None:
            way = f"{self.address} through the proxy {self.proxy.address}"
            return TransportError(
                f"cannot connect to {way} ({_reason(error)}). Check HTTP_PROXY, HTTPS_PROXY, NO_PROXY.", sent=False
            )
        return TransportError(
            f"cannot connect to {self.address} ({_reason(error)}). Is the service running? `kronmem doctor` checks.",
            sent=False,
        )

    def timed_out(self, request: Request, *, sent: bool) -> DeadlineError:
        """The error of a call whose deadline has passed."""
        return DeadlineError(
            f"timed out after {seconds(request.timeout)} s: {request.method} {self.address}/…", sent=sent
        )

    def _peer(self, error: ssl.SSLError) -> str:
        return str(getattr(error, "peer", "") or self.address)


class ProxyRefusedError(OSError):
    """A proxy did not let us through."""

    def __init__(self, status: int) -> None:
        hint = ": it wants another user or password" if status == 407 else ""
        super().__init__(f"the proxy answered {status}{hint}")
        self.status = status


def _distrust(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return _UNTRUSTED.get(error.reason or "", "")


def _reason(error: BaseException) -> str:
    if isinstance(error, h11.ProtocolError):
        return "no valid HTTP reply"  # its own text may quote the reply
    if isinstance(error, ssl.SSLError):
        return f"TLS: {(error.reason or 'connection closed').lower().replace('_', ' ')}"
    if isinstance(error, OSError):
        known = error.errno in errno.errorcode and not isinstance(error, socket.gaierror)
        text = os.strerror(error.errno or 0) if known else error.strerror or str(error)
        return text[:1].lower() + text[1:] if text else "connection closed"
    return type(error).__name__


def seconds(time: float) -> str:
    """A time for a message, without digits that mean nothing."""
    return f"{time:.2f}".rstrip("0").rstrip(".") if time < 1 else f"{time:.1f}".removesuffix(".0")
