"""What a contract is to the server: its rows, how a request is answered, where the key stands, how it says no."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, JsonValue, ValidationError

from kronmem.core.wire import Reply, Request
from kronmem.engine.service import Service
from kronmem.server.keys import Headers


class Row(Protocol):
    """One row of the API, as the engine's own table has it; the document is made of nothing else."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def reads(self) -> type[BaseModel]: ...
    @property
    def status(self) -> int: ...


@dataclass(frozen=True)
class Entry:
    """A row of a contract that is translated into requests to the service."""

    method: str
    path: str
    reads: type[BaseModel]
    status: int = 200


@dataclass(frozen=True)
class Contract:
    """One vendor's way of speaking."""

    name: str
    rows: Sequence[Row]
    answer: Callable[[Service, Request, str], Reply]
    key: Callable[[Headers], str | None]
    refusal: Callable[[int, str], JsonValue]


def said(status: int, value: JsonValue) -> Reply:
    """A reply in JSON."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")
    return Reply(status, body, {"content-type": "application/json"})


def problems(error: ValidationError, place: str) -> list[JsonValue]:
    """What is wrong with a request, as FastAPI says it; what was sent is not echoed."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return [{"type": one["type"], "loc": [place, *one["loc"][:8]], "msg": one["msg"]} for one in found]
