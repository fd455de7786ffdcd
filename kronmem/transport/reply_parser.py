"""HTTP/1.1 replies out of bytes, by RFC 9112 and strictly, their bodies within bounds. No I/O.

A reply that two readers could end at different places is refused or ends its connection: conflicting lengths,
codings other than chunked, line breaks inside values. `tests/transport/test_reply_parser.py` holds it against h11.
"""

from __future__ import annotations

import re
import zlib

from kronmem.errors import ReplyError, TransportError

# Collects a reply's body within bounds. No I/O.

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


MAX_HEAD = 100 * 1024
"""Bytes of a head, of a chunk's first line, or of trailers: httpcore's bound."""
STRETCH = 200
"""Steps in a row: a few milliseconds, so that a reply in tiny pieces does not hold up an event loop."""

_PREFIX = b"HTTP/1."
_BLANK_LINE = re.compile(rb"\n\r?\n")
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [\t -~\x80-\xff]*)?\r?\n")
_FIELDS = re.compile(r"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t -~\x80-\xff]*\r?\n)*")
_FOLD = re.compile(r"[ \t]*\r?\n[ \t]+")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\t -~\x80-\xff]*)?")
_LENGTH = re.compile(r"[0-9]{1,15}")
_FRAMING = frozenset({"content-length", "transfer-encoding", "connection"})
_NOTHING = Body({})


class ProtocolError(Exception):
    """The bytes are no HTTP reply, or end before the reply does. Holds none of them."""


class ReplyParser:
    """Reads one reply, the interim ones before it skipped; of the answer to CONNECT, the head alone."""

    def __init__(self, *, connect: bool = False) -> None:
        self.status, self.headers = 0, dict[str, str]()
        self.starved = True
        """Are more bytes needed, rather than another turn?"""
        self._connect, self._whole, self._keep_alive = connect, False, False
        self._buffer, self._at, self._searched, self._ended = b"", 0, 0, False
        self._step, self._rest, self._body = self._read_head, 0, _NOTHING

    def feed(self, data: bytes | None) -> bool:
        """Take bytes that were read, b"" at the end of the stream; returns whether the reply is whole.

        None goes on with bytes that were fed before and not yet looked at.
        """
        if data:
            self._buffer = self._buffer[self._at :] + data if self._at < len(self._buffer) else data
            self._searched, self._at = max(self._searched - self._at, 0), 0
        elif data is not None:
            self._ended = True
        for _ in range(STRETCH):
            self.starved = not self._step()
            if self._whole:
                return True
            if self.starved:
                if self._ended or len(self._buffer) - self._at > MAX_HEAD:
                    raise ProtocolError("the reply ends too early, or its head is too long")
                return False
        return False

    @property
    def body(self) -> bytes:
        """The whole body, decompressed."""
        return self._body.bytes()

    @property
    def stray(self) -> bool:
        """Did anything come after the reply? Taken for the next one, it would answer another call."""
        return self._at < len(self._buffer)

    @property
    def reusable(self) -> bool:
        """May another request follow on the connection?"""
        return self._keep_alive and not self.stray

    # Each step takes what it can from the buffer and returns whether it took anything.

    def _read_head(self) -> bool:
        buffer, at = self._buffer, self._at
        if (blank := _BLANK_LINE.search(buffer, max(self._searched - 2, at))) is None:
            self._searched = len(buffer)
            if not buffer.startswith(_PREFIX[: len(buffer) - at], at):
                raise ProtocolError("no HTTP/1 reply")
            return False
        if (line := _STATUS_LINE.match(buffer, at)) is None:
            raise ProtocolError("no status line")
        self.status, self._at = int(line[2]), blank.end()
        self.headers = _fields(buffer[line.end() : blank.start() + 1])
        if self.status >= 200:
            self._frame(line[1] == b"1")
        elif self.status == 101:
            raise ProtocolError("unexpected 101 Switching Protocols")
        return True

    def _frame(self, current: bool) -> None:
        """Find out where the reply ends (RFC 9112, 6.3)."""
        coding, length = self.headers.get("transfer-encoding"), self.headers.get("content-length")
        self._keep_alive = current and not _closes(self.headers)
        if coding is not None and coding.lower() != "chunked":
            raise ProtocolError("unknown transfer coding")
        self._rest = 0 if length is None else _length(length)
        if self._connect or self.status in (204, 304):
            self._whole = True
            return
        self._body = Body(self.headers)
        if coding is not None:
            self._keep_alive = self._keep_alive and length is None  # both: some reader may have gone by the other
            self._step = self._read_chunk_size
        elif length is not None:
            self._step, self._whole = self._read_length, self._rest == 0
        else:
            self._step, self._keep_alive = self._read_until_end, False

    def _read_length(self) -> bool:
        taken = self._take()
        self._whole = self._rest == 0
        return taken

    def _read_until_end(self) -> bool:
        if (rest := len(self._buffer) - self._at) > 0:
            self._rest = rest
            return self._take()
        self._whole = self._ended
        return False

    def _read_chunk_size(self) -> bool:
        if (line := self._line()) is None:
            return False
        if (size := _CHUNK_SIZE.fullmatch(line)) is None:
            raise ProtocolError("invalid chunk size")
        self._rest = int(size[1], 16)
        self._step = self._read_chunk if self._rest else self._read_trailer
        return True

    def _read_chunk(self) -> bool:
        if self._rest:
            return self._take()
        if len(self._buffer) - self._at < 2:
            return False
        if not self._buffer.startswith(b"\r\n", self._at):
            raise ProtocolError("chunk longer than its size")
        self._at += 2
        self._step = self._read_chunk_size
        return True

    def _read_trailer(self) -> bool:
        if (line := self._line()) is None:
            return False
        self._whole = not line
        self._rest += len(line) + 2
        _fields(line + b"\n" if line else b"")
        if self._rest > MAX_HEAD:
            raise ProtocolError("trailers too long")
        return True

    def _take(self) -> bool:
        """Move bytes of the body, at most as many as it still needs."""
        taken = self._buffer[self._at : self._at + self._rest]
        self._at += len(taken)
        self._rest -= len(taken)
        self._body.add(taken)
        return bool(taken)

    def _line(self) -> bytes | None:
        if (end := self._buffer.find(b"\r\n", self._at)) < 0:
            return None
        line, self._at = self._buffer[self._at : end], end + 2
        return line


def _fields(block: bytes) -> dict[str, str]:
    """The fields of a head by their names in lower case; of a repeated one the last, where it does not frame."""
    text = block.decode("latin-1")
    if "\n " in text or "\n\t" in text:
        text = _FOLD.sub(" ", text)
    if _FIELDS.fullmatch(text) is None:
        raise ProtocolError("no header")
    fields: dict[str, str] = {}
    for line in text.split("\n")[:-1]:
        name, _, value = line.partition(":")
        name, value = name.lower(), value.strip(" \t\r")
        fields[name] = f"{fields[name]},{value}" if name in fields and name in _FRAMING else value
    return fields


def _length(value: str) -> int:
    """One length, however often it is repeated."""
    length, *others = {one.strip(" \t") for one in value.split(",")}
    if others or _LENGTH.fullmatch(length) is None:
        raise ProtocolError("invalid Content-Length")
    return int(length)


def _closes(headers: dict[str, str]) -> bool:
    options = headers.get("connection")
    return options is not None and any(one.strip(" \t").lower() == "close" for one in options.split(","))
