"""The reply parser beside h11: the same replies read the same, and nothing accepted that h11 reads otherwise."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kronmem.errors import KronmemError
from kronmem.transport.reply_parser import ProtocolError, ReplyParser


@dataclass(frozen=True)
class Outcome:
    """What became of some bytes."""

    status: int
    headers: dict[str, str]
    body: bytes
    reusable: bool


def ours(pieces: list[bytes]) -> Outcome | None:
    """Our reading of a stream that ends after the pieces; None: refused."""
    parser = ReplyParser()
    try:
        for piece in (*filter(None, pieces), b""):
            whole = parser.feed(piece)
            while not whole and not parser.starved:
                whole = parser.feed(None)
            if whole:
                return Outcome(parser.status, parser.headers, parser.body, parser.reusable)
    except (ProtocolError, KronmemError):
        return None
    raise AssertionError("neither a reply nor an error at the end of the stream")


def theirs(pieces: list[bytes]) -> Outcome | None:
    """h11's."""
    protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=100 * 1024)
    protocol.send(h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")]))
    protocol.send(h11.EndOfMessage())
    status, headers, body = 0, dict[str, str](), b""
    try:
        for piece in (*filter(None, pieces), b""):
            protocol.receive_data(piece)
            while (event := protocol.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Response):
                    status = event.status_code
                    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    kept = protocol.their_state is h11.DONE and not protocol.trailing_data[0]
                    return Outcome(status, headers, body, kept)
                elif not isinstance(event, h11.InformationalResponse):
                    return None
    except h11.ProtocolError:
        return None
    return None


def cut(stream: bytes, at: list[int]) -> list[bytes]:
    """The stream in pieces."""
    places = sorted({0, len(stream), *(place % (len(stream) + 1) for place in at)})
    return [stream[start:end] for start, end in itertools.pairwise(places)]


ENDS = st.sampled_from([b"\r\n", b"\n"])
BODIES = st.one_of(st.binary(max_size=40), st.just(b'{"results": []}'))
CUTS = st.lists(st.integers(0, 1000), max_size=6)


@st.composite
def heads(draw: st.DrawFn, framing: list[bytes]) -> bytes:
    """A final head with that framing, perhaps after interim ones."""
    end = draw(ENDS)
    status = draw(
        st.sampled_from([b"200 OK", b"200", b"201 ", b"404 Not Found", b"500 \xff", b"204 No Content", b"304 x"])
    )
    others = [
        *[b"Date: Mon, 16 Nov 2026 00:00:00 GMT", b"x:", b"X-Y: \t a b \xe9\t ", b"fold: a\r\n  b", b"~!#: c:d"],
        *[b"Connection: close", b"connection: keep-alive, Close", b"connection: keep-alive"],
    ]
    chosen = [*draw(st.lists(st.sampled_from(others), max_size=4)), *framing]
    lines = [draw(st.sampled_from([b"HTTP/1.1 ", b"HTTP/1.0 "])) + status, *draw(st.permutations(chosen))]
    interim = draw(
        st.lists(st.sampled_from([b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103\r\nlink: x\r\n\r\n"]), max_size=2)
    )
    return b"".join((*interim, end.join(lines), end, end))


@st.composite
def replies(draw: st.DrawFn) -> bytes:
    """A well-formed reply with any of the three ends, and perhaps something after it."""
    body, kind = draw(BODIES), draw(st.sampled_from(["length", "chunked", "end"]))
    if kind == "end":
        return draw(heads([])) + body
    after = draw(st.sampled_from([b"", b"", b"HTTP/1.1 200 OK\r\n\r\n"]))
    if kind == "length":
        length = draw(st.sampled_from([b"Content-Length:%d", b"content-length: %d, %d"]))
        return draw(heads([length.replace(b"%d", str(len(body)).encode())])) + body + after
    size = draw(st.integers(1, 15))
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    style = draw(st.sampled_from([b"%x\r\n", b"0%X;a=b\r\n", b"%x \r\n"]))
    chunks = b"".join(style % len(part) + part + b"\r\n" for part in parts)
    trailer = draw(st.sampled_from([b"", b"t: 1\r\n"]))
    return draw(heads([b"Transfer-Encoding: Chunked"])) + chunks + b"0\r\n" + trailer + b"\r\n" + after


@given(replies(), CUTS)
def test_a_well_formed_reply_is_read_as_h11_reads_it(stream: bytes, cuts: list[int]) -> None:
    pieces = cut(stream, cuts)
    found = ours(pieces)
    assert found is not None
    expected = theirs(pieces)
    assert expected is not None
    assert (found.status, found.body) == (expected.status, expected.body)
    framed = found.status in (204, 304) or not {"content-length", "transfer-encoding"}.isdisjoint(found.headers)
    assert found.reusable == (framed and expected.reusable)  # h11 leaves it to its user to notice the end
    plain = {name: value for name, value in expected.headers.items() if name not in ("connection", "transfer-encoding")}
    assert {name: found.headers[name] for name in plain if name != "content-length"} == {
        name: value for name, value in plain.items() if name != "content-length"
    }


SOUP = [
    *[b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 101 x\r\n", b"HTTP/1.1 100\r\n", b"HTTP/1.1 204\n"],
    *[b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b",", b";", b"\0", b"\x0b", b"{}", b"2", b"0", b"-1", b"+2", b"0x2"],
    *[b"content-length: 2\r\n", b"content-length: 3\r\n", b"content-length : 2\r\n", b"transfer-encoding: chunked\r\n"],
    *[b"transfer-encoding: gzip, chunked\r\n", b"connection: close\r\n", b"2\r\n{}\r\n", b"0\r\n\r\n", b"2\r\n{}xx", b"x: y\r\n"],
]  # fmt: skip


@given(st.lists(st.one_of(st.sampled_from(SOUP), st.binary(max_size=3)), max_size=12), st.booleans())
def test_nothing_is_accepted_that_h11_reads_otherwise(pieces: list[bytes], begun: bool) -> None:
    stream = [b"HTTP/1.1 200 OK\r\n", *pieces] if begun else pieces
    if (found := ours(stream)) is not None:
        assert (expected := theirs(stream)) is not None
        assert (found.status, found.body) == (expected.status, expected.body)
        assert expected.reusable or not found.reusable


@pytest.mark.parametrize(
    "stream",
    [
        b"HTTP/2.0 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: a\x01b\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n content-length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: \xb2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length:\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}xx0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n" + b"t: 1\r\n" * 20_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;" + b"x" * 200_000,
    ],
)
def test_a_reply_that_could_end_in_two_places_is_refused(stream: bytes) -> None:
    assert ours([stream]) is None
    assert ours([bytes([byte]) for byte in stream[:300]] + [stream[300:]]) is None


def test_a_length_beside_chunks_ends_the_connection() -> None:
    both = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    assert (found := ours([both])) is not None
    assert (found.body, found.reusable) == (b"{}", False)
