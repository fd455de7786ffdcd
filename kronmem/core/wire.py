"""What travels: a `Request` out, a `Reply` back, and a `Call` that says how to turn one into the other.

Pure data. A `Request` is ready to send: its path is quoted and its body encoded, once, however often it is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Request:
    """One HTTP-shaped request. `path` starts with a slash; `timeout` is what is left of the call's deadline."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    timeout: float = 10.0


@dataclass(frozen=True)
class Reply:
    """What came back. Header names are lower case; `at` is the wall-clock second it arrived."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    at: float = 0.0
