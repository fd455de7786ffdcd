"""Collects a reply's body within bounds. No I/O."""

from __future__ import annotations

import zlib

from kronmem.errors import ReplyError, TransportError

MAX_BODY = 8 * 1024 * 1024
"""Bytes after decompression: a page of 100 memories of the largest size that a service takes, twice over."""

_PLAIN = ("", "identity")
_DEFLATED = ("gzip", "x-gzip", "deflate")


class Body:
    """A reply's body, decompressed up to a cap: a small compressed body can expand to gigabytes."""

    def __init__(self, headers: dict[str, str]) -> None:
        encoding = headers.get("content-encoding", "").strip().lower()
        if encoding not in _PLAIN and encoding not in _DEFLATED:
            raise ReplyError("the service's answer cannot be read: unsupported Content-Encoding")
        self._inflate = None if encoding in _PLAIN else zlib.decompressobj(wbits=47)
        self._data = bytearray()

    def add(self, chunk: bytes) -> None:
        """Take a chunk as it came from the socket."""
        if self._inflate is not None:
            try:
                chunk = self._inflate.decompress(chunk, MAX_BODY + 1 - len(self._data))
            except zlib.error:
                raise ReplyError("the service's answer could not be decompressed") from None
        self._data += chunk
        if len(self._data) > MAX_BODY:
            raise ReplyError(f"the service's answer is larger than {MAX_BODY // 1024**2} MB")

    def bytes(self) -> bytes:
        """The whole body."""
        if self._inflate is not None and self._data and not self._inflate.eof:
            raise TransportError("the service's answer was cut short")
        return bytes(self._data)
