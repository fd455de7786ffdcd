"""Errors of the network as kronmem's own: each names the address, the cause and the remedy; no path, id or key."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from typing import TYPE_CHECKING

from kronmem.core.wire import Request
from kronmem.errors import CertificateError, DeadlineError, TransportError
from kronmem.transport.reply_parser import ProtocolError

if TYPE_CHECKING:
    from kronmem.transport.http1 import Target

FAILURES = (OSError, ProtocolError)
"""Exceptions of the network, TLS and timeouts included, for `failure` to translate."""

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


def failure(target: Target, error: BaseException, request: Request, *, sent: bool) -> TransportError | CertificateError:
    """Our error for one of the network's. Addresses and reasons are named, paths and keys never."""
    if isinstance(error, TimeoutError) and error.errno is None:  # with a number it is the kernel's, not the call's
        return timed_out(target, request, sent=sent)
    if isinstance(error, ssl.SSLError) and (distrust := _distrust(error)):
        return CertificateError(
            f"the TLS of {_peer(target, error)} cannot be trusted: {distrust.rstrip('.')}. "
            "Check the url; an authority of your own is named by SSL_CERT_FILE."
        )
    if sent and not isinstance(error, ProxyRefusedError):
        return TransportError(
            f"the connection to {target.address} broke ({_reason(error)}) before a reply had come. "
            "Look at the service's log, or that of a proxy in between."
        )
    if target.proxy is not None:
        way = f"{target.address} through the proxy {target.proxy.address}"
        return TransportError(
            f"cannot connect to {way} ({_reason(error)}). Check HTTP_PROXY, HTTPS_PROXY, NO_PROXY.", sent=False
        )
    return TransportError(
        f"cannot connect to {target.address} ({_reason(error)}). Is the service running? `kronmem doctor` checks.",
        sent=False,
    )


def timed_out(target: Target, request: Request, *, sent: bool) -> DeadlineError:
    """The error of a call past its deadline."""
    return DeadlineError(
        f"timed out after {seconds(request.timeout)} s: {request.method} {target.address}/…", sent=sent
    )


def crowded(target: Target, request: Request, most: int) -> DeadlineError:
    """The error of a call that no connection became free for."""
    waited = f"timed out after {seconds(request.timeout)} s: all {most} connections to {target.address} are in use"
    return DeadlineError(f"{waited}. Make fewer calls at a time, or pass a longer timeout=.", sent=False)


def _peer(target: Target, error: ssl.SSLError) -> str:
    return str(getattr(error, "peer", "") or target.address)


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
    if isinstance(error, ProtocolError):
        return "no valid HTTP reply"
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
