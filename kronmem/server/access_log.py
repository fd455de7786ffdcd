"""The access log: one line a request, as text or as JSON. Without query and contents, which nobody else should read."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TypeAlias

_log = logging.getLogger("kronmem.access")


@dataclass(frozen=True)
class ServedRequest:
    """A request that was answered. `route` is "" when none matched, `status` 0 when its sender was gone before."""

    id: str
    method: str
    path: str
    route: str
    status: int
    seconds: float
    trace_id: str = ""


LogRequest: TypeAlias = Callable[[ServedRequest], None]


def log_as_text(request: ServedRequest) -> None:
    """A line for people."""
    took = request.seconds * 1000
    _log.info("%s %s %s %s %.1fms", request.id, request.method, request.path, request.status, took)


def log_as_json(request: ServedRequest) -> None:
    """A line for programs; `trace_id` finds the spans of the request."""
    if not _log.isEnabledFor(logging.INFO):
        return
    line: dict[str, str | int | float] = {
        "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        "request_id": request.id,
        "method": request.method,
        "path": request.path,
        "route": request.route,
        "status": request.status,
        "duration_ms": round(request.seconds * 1000, 3),
    }
    _log.info("%s", json.dumps(line | ({"trace_id": request.trace_id} if request.trace_id else {})))
