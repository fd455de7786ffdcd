"""TLS as bytes, by the standard library's `SSLObject`: the same for every shell, and around itself.

No I/O but reading the trusted certificates.
"""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING, TypeVar

import httpx

from kronmem.errors import ConfigError

if TYPE_CHECKING:
    from kronmem.transport.http1 import Conversation

T = TypeVar("T")

_AT_ONCE = 64 * 1024
"""Bytes decrypted at a time: as many as a socket reads."""


def trusted() -> ssl.SSLContext:
    """Read the certificates that httpx trusts, or those that SSL_CERT_FILE or SSL_CERT_DIR names.

    Costs more than a hundred requests: done once, and only for https.
    """
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):  # httpx 0.27 passes over one that is not there
        if (path := os.environ.get(name)) and not os.path.exists(path):
            raise ConfigError(f"{name} names {path}, which does not exist")
    try:
        return httpx.create_ssl_context()
    except OSError as error:  # an SSLError is one too
        raise ConfigError("SSL_CERT_FILE or SSL_CERT_DIR names certificates that cannot be read") from error


class Tls:
    """One layer of TLS around a conversation."""

    def __init__(self, context: ssl.SSLContext, host: str, address: str) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._address = address

    @property
    def drained(self) -> bool:
        """Is nothing left to read, neither decrypted nor encrypted?"""
        return not self._incoming.pending and not self._ssl.pending()

    def handshake(self) -> Conversation[None]:
        """Agree on keys and check the certificate."""
        while True:
            try:
                return self._ssl.do_handshake()
            except ssl.SSLWantReadError:
                self._feed((yield self._outgoing.read()))
            except ssl.SSLError as error:
                error.peer = self._address  # type: ignore[attr-defined] # for the message: there may be two layers
                raise

    def carry(self, inner: Conversation[T]) -> Conversation[T]:
        """The conversation `inner`, encrypted.

        Each record is handed on before the next is decrypted, so that one beyond the reply stays where `drained`
        sees it: half a record inside OpenSSL shows nowhere.
        """
        try:
            outgoing = next(inner)
            while True:
                outgoing = inner.send((yield from self._swap(outgoing)))
        except StopIteration as stop:
            answer: T = stop.value
            return answer

    def _swap(self, outgoing: bytes | None) -> Conversation[bytes | None]:
        if outgoing is None:
            return (yield None)
        self._encrypt(outgoing)
        incoming = None if outgoing else self._decrypted()
        while incoming is None:
            self._feed((yield self._outgoing.read()))
            incoming = self._decrypted()
        return incoming

    def _encrypt(self, outgoing: bytes) -> None:
        rest = memoryview(outgoing)
        while rest:
            rest = rest[self._ssl.write(rest) :]

    def _decrypted(self) -> bytes | None:
        try:
            return self._ssl.read(_AT_ONCE)
        except ssl.SSLWantReadError:
            return None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def _feed(self, incoming: bytes | None) -> None:
        self._incoming.write(incoming) if incoming else self._incoming.write_eof()
