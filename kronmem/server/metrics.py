"""`/metrics`: counts of requests and sizes of the store in Prometheus' text form. No label names an agent or a key."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from anyio import to_thread
from starlette.requests import Request as WebRequest
from starlette.responses import Response
from starlette.types import Send

from kronmem.api.requests import EmptyRequest
from kronmem.api.routes import AnyRoute, Match, Route
from kronmem.engine.engine import StoreSize
from kronmem.engine.service import Service
from kronmem.errors import KronmemError
from kronmem.server import api_keys as keys
from kronmem.server.contracts.contract import detail
from kronmem.settings import installed_version

METRICS: AnyRoute = Route("GET", "/metrics", EmptyRequest, str)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds. Prometheus' usual ones with two below: most requests here take a few milliseconds."""
TIMEOUT = 2.0
"""Seconds that a scrape may wait for the store; Prometheus itself gives up after 10."""


@dataclass
class _Latency:
    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


class RequestMetrics:
    """Counts the requests of one server; written and read on its event loop only."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, int], int] = {}
        self._latencies: dict[tuple[str, str], _Latency] = {}

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        key = (method, route, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        self._latencies.setdefault((method, route), _Latency()).add(seconds)

    def lines(self) -> Iterator[str]:
        """The counts in text form."""
        yield from _head("kronmem_http_requests_total", "counter", "Requests answered, by route and status.")
        for (method, route, status), count in sorted(self._requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            yield f"kronmem_http_requests_total{{{labels}}} {count}"
        name = "kronmem_http_request_duration_seconds"
        yield from _head(name, "histogram", "Seconds from the first byte of a request to the last of its answer.")
        for (method, route), latency in sorted(self._latencies.items()):
            yield from _histogram(name, f'method="{method}",route="{route}"', latency)


def _histogram(name: str, labels: str, latency: _Latency) -> Iterator[str]:
    counts = list(accumulate(latency.counts))
    for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
        yield f'{name}_bucket{{{labels},le="{bound}"}} {count}'
    yield f"{name}_sum{{{labels}}} {latency.total:.6f}"
    yield f"{name}_count{{{labels}}} {counts[-1]}"


def _store_lines(size: StoreSize | None) -> Iterator[str]:
    yield from _single("kronmem_store_up", "gauge", "1 when the store answered this scrape.", int(size is not None))
    if size is None:
        return
    yield from _single("kronmem_memories", "gauge", "Current memories of all agents.", size.memories)
    yield from _single("kronmem_agents", "gauge", "Agents of all owners.", size.agents)
    backlog = "Memories that wait for their vectors and are found by words alone meanwhile."
    yield from _single("kronmem_embedding_backlog", "gauge", backlog, size.backlog)
    yield from _single("kronmem_sweeps_total", "counter", "Sweeps for expired memories by this server.", size.sweeps)
    swept = "Expired memories that sweeps of this server removed."
    yield from _single("kronmem_swept_memories_total", "counter", swept, size.swept)


def _single(name: str, kind: str, words: str, value: int) -> Iterable[str]:
    return (*_head(name, kind, words), f"{name} {value}")


def _head(name: str, kind: str, words: str) -> tuple[str, str]:
    return f"# HELP {name} {words}", f"# TYPE {name} {kind}"


class MetricsEndpoint:
    """Answers scrapes. The key may come as Prometheus sends one, `Authorization: Bearer`, or as `X-API-Key`."""

    key = staticmethod(keys.bearer)
    refusal = staticmethod(detail)

    def __init__(self, service: Service, requests: RequestMetrics) -> None:
        self._service, self._requests = service, requests

    async def answer(self, _match: Match, _owner: str, web: WebRequest, send: Send) -> None:
        """Answer one scrape; a store that cannot be used is one of the facts reported."""
        size = await to_thread.run_sync(self._size)
        build = f'kronmem_build_info{{version="{installed_version()}"}} 1'
        about = (*_head("kronmem_build_info", "gauge", "The version of the server."), build)
        text = "\n".join([*about, *self._requests.lines(), *_store_lines(size), ""])
        await Response(text, headers={"content-type": CONTENT_TYPE})(web.scope, web.receive, send)

    def _size(self) -> StoreSize | None:
        try:
            return self._service.size(TIMEOUT)
        except KronmemError:
            return None
