"""The head of a request: the header with the key, those that every request carries, and its first line. No I/O."""

from __future__ import annotations

from pydantic import SecretBytes

from kronmem.core.wire import Request
from kronmem.errors import ConfigError
from kronmem.transport.target import Target


def headers(target: Target, request: Request) -> list[tuple[bytes, bytes]]:
    """Every header of a request; the key is read out of its wrapper only here."""
    found = [
        (b"host", target.netloc.encode("ascii")),
        (b"accept", b"application/json"),
        (b"accept-encoding", b"gzip, deflate"),
        (b"user-agent", b"kronmem"),
    ]
    if target.key is not None:
        found.append((b"x-api-key", target.key.get_secret_value().encode("ascii")))
    found += [(name.encode("ascii"), value.encode("ascii")) for name, value in request.headers]
    if (length := _content_length(request)) is not None:
        found.append((b"content-length", str(length).encode("ascii")))
    return found


def encode(target: Target, request: Request) -> bytes:
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
