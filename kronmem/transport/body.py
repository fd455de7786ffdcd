"""Collects a reply's body within bounds. No I/O."""

from __future__ import annotations

import zlib

from kronmem.errors import ReplyError, TransportError

MAX_BODY = 8 * 1024 * 1024


class Body:
    """Collects a reply's body, unpacked, up to a cap: a small compressed body can unpack to gigabytes."""

    def __init__(self, headers: dict[str, str]) -> None:
        packing = headers.get("content-encoding", "identity").strip().lower()
        if packing not in ("identity", "", "gzip", "x-gzip", "deflate"):
            raise ReplyError("the service's answer cannot be read: it is packed in a way that was not asked for")
        self._packed = zlib.decompressobj(wbits=47) if packing not in ("identity", "") else None
        self._data = bytearray()

    def add(self, chunk: bytes) -> None:
        """Take a chunk as it came from the socket."""
        if self._packed is not None:
            try:
                chunk = self._packed.decompress(chunk, MAX_BODY + 1 - len(self._data))
            except zlib.error:
                raise ReplyError("the service's answer cannot be read: it cannot be unpacked") from None
        self._data += chunk
        if len(self._data) > MAX_BODY:
            raise ReplyError(f"the service's answer is larger than {MAX_BODY // 1024**2} MB")

    def bytes(self) -> bytes:
        """The whole body."""
        if self._packed is not None and self._data and not self._packed.eof:
            raise TransportError("the service's answer was cut short")
        return bytes(self._data)
