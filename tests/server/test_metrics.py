"""/metrics, read by the official client library, and the access log as JSON."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from kronmem import Client
from kronmem.engine.engine import Engine
from kronmem.engine.service import Service
from kronmem.engine.sqlite.store import SqliteStore
from kronmem.transport.local import postgres_service, sqlite_service
from tests.services.in_process import served_in_process

ROOT = Path(__file__).parent.parent.parent
KEY = "kv-private-key"
AGENT = "/api/v1/agents/{agent_id}"


def scraped(url: str, **headers: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """By name: by labels, the value."""
    reply = httpx.get(f"{url}/metrics", headers=headers, trust_env=False, timeout=60)
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(reply.text):
        assert family.documentation
        assert family.type in ("counter", "gauge", "histogram")
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def labels(**pairs: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(pairs.items()))


def test_the_counts_agree_with_the_requests_that_were_sent() -> None:
    with served_in_process({KEY: "me"}) as url:
        with Client(url, api_key=KEY, outbox=False) as client:
            for number in range(5):
                client.remember(f"private-agent-{number % 2}", f"private text {number}")
            for _ in range(3):
                client.recall("private-agent-0", "private question")
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as web:
            web.get("/nowhere/private")
            web.request("BREW", "/health")
            web.get("/api/v1/agents")  # without a key
            web.post("/api/v1/agents/private-agent-0/recall", json={}, headers={"x-api-key": KEY})
        first = scraped(url, authorization=f"Bearer {KEY}")
        second = scraped(url, **{"x-api-key": KEY})
        text = httpx.get(f"{url}/metrics", headers={"x-api-key": KEY}, trust_env=False, timeout=60).text
    requests = first["kronmem_http_requests_total"]
    assert requests == {
        labels(method="POST", route=f"{AGENT}/remember", status="201"): 5,
        labels(method="POST", route=f"{AGENT}/recall", status="200"): 3,
        labels(method="POST", route=f"{AGENT}/recall", status="422"): 1,
        labels(method="GET", route="unmatched", status="404"): 1,
        labels(method="_OTHER", route="unmatched", status="405"): 1,
        labels(method="GET", route="/api/v1/agents", status="401"): 1,
    }
    assert second["kronmem_http_requests_total"][labels(method="GET", route="/metrics", status="200")] == 1
    (memories,), (agents,) = first["kronmem_memories"].values(), first["kronmem_agents"].values()
    assert (memories, agents) == (5, 2)
    assert list(first["kronmem_sweeps_total"].values()) == [5]
    assert list(first["kronmem_swept_memories_total"].values()) == [0]
    assert list(first["kronmem_embedding_backlog"].values()) == [0]
    assert list(first["kronmem_store_up"].values()) == [1]
    assert "private" not in text
    assert "me" not in {value for one in requests for _, value in one}


def test_the_latency_is_a_histogram_whose_buckets_add_up() -> None:
    with served_in_process() as url:
        with Client(url, outbox=False) as client:
            for _ in range(7):
                client.recall("ada", "tea")
        found = scraped(url)
    name, route = "kronmem_http_request_duration_seconds", {"method": "POST", "route": f"{AGENT}/recall"}
    assert found[f"{name}_count"][labels(**route)] == 7
    assert 0 < found[f"{name}_sum"][labels(**route)] < 7 * 60
    buckets = {
        dict(one)["le"]: value for one, value in found[f"{name}_bucket"].items() if dict(one)["route"] == route["route"]
    }
    counts = [buckets[bound] for bound in sorted(buckets, key=float)]
    assert counts == sorted(counts)
    assert (counts[-1], buckets["+Inf"]) == (7, 7)


def test_expired_memories_are_swept_and_counted(tmp_path: Path) -> None:
    now = [1_000_000.0]
    service = sqlite_service(str(tmp_path / "m.db"), now=lambda: now[0])
    with served_in_process(service=service) as url, Client(url, outbox=False) as client:
        client.remember("ada", "short", ttl_seconds=60)
        client.remember("ada", "long")
        now[0] += 3600
        assert list(scraped(url)["kronmem_memories"].values()) == [1]
        client.remember("ada", "another")
        found = scraped(url)
    assert [
        list(found[f"kronmem_{name}"].values()) for name in ("memories", "swept_memories_total", "sweeps_total")
    ] == [[2], [1], [3]]


def test_memories_that_wait_for_their_vectors_are_the_backlog() -> None:
    import threading

    go_on, begun = threading.Event(), threading.Event()

    def embed(texts: Any) -> list[list[float]]:
        begun.set()
        assert go_on.wait(60)
        return [[1.0, 0.0] for _ in texts]

    store = SqliteStore(":memory:")
    engine = Engine(store, embed=embed)
    with served_in_process(service=Service(engine)) as url, Client(url, outbox=False) as client:
        try:
            client.remember("ada", "first")
            assert begun.wait(60)
            client.remember_many("ada", ["second", "third"])
            (backlog,) = scraped(url)["kronmem_embedding_backlog"].values()
            assert backlog >= 2
        finally:
            go_on.set()


@pytest.mark.parametrize("open_metrics", [True, False])
def test_metrics_need_a_key_unless_they_are_opened(open_metrics: bool) -> None:
    with (
        served_in_process({KEY: "me"}, open_metrics=open_metrics) as url,
        httpx.Client(trust_env=False, timeout=60) as web,
    ):
        assert web.get(f"{url}/metrics").status_code == (200 if open_metrics else 401)
        assert web.get(f"{url}/metrics", headers={"x-api-key": "wrong"}).status_code == (200 if open_metrics else 401)
        assert web.get(f"{url}/api/v1/agents").status_code == 401
        assert web.head(f"{url}/metrics", headers={"x-api-key": KEY}).status_code == 200
        assert web.post(f"{url}/metrics", headers={"x-api-key": KEY}).status_code == 405


def test_a_store_that_cannot_be_used_is_one_of_the_facts() -> None:
    class Failing(Service):
        def size(self, timeout: float) -> Any:
            from kronmem import StoreError

            raise StoreError("disk full")

    with served_in_process(service=Failing(Engine(SqliteStore(":memory:")))) as url:
        found = scraped(url)
    assert list(found["kronmem_store_up"].values()) == [0]
    assert "kronmem_memories" not in found


@pytest.mark.slow
def test_the_access_log_is_json_when_asked_for(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kronmem", "serve", "--port", "0", "--db", str(tmp_path / "m.db"), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KRONMEM_SERVE_KEYS": f"ada:{KEY}"}
    server = subprocess.Popen(
        [*command, "--access-log", "json", "--open-metrics"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        with Client(url, api_key=KEY, outbox=False) as client:
            client.remember("ada", "private text", tags=["private"])
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as web:
            web.get("/api/v1/agents/ada/memories?search=private", headers={"x-api-key": KEY, "x-request-id": "r-1"})
            assert web.get("/metrics").status_code == 200
    finally:
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=60)
    lines = [json.loads(line) for line in errors.splitlines()]
    assert [(one["method"], one["route"], one["status"]) for one in lines] == [
        ("POST", f"{AGENT}/remember", 201),
        ("GET", f"{AGENT}/memories", 200),
        ("GET", "/metrics", 200),
    ]
    assert lines[1]["request_id"] == "r-1"
    assert lines[1]["path"] == "/api/v1/agents/ada/memories"
    assert all(one["duration_ms"] > 0 and one["time"].endswith("+00:00") for one in lines)
    assert "private" not in errors


def test_a_database_of_postgresql_is_counted_too(postgres: str) -> None:
    now = [1_000_000.0]
    service = postgres_service(postgres, now=lambda: now[0])
    with served_in_process(service=service) as url, Client(url, outbox=False) as client:
        client.remember("ada", "short", ttl_seconds=60)
        client.remember("bob", "long")
        client.remember("eve", "gone")
        client.erase("eve")
        now[0] += 3600
        first = scraped(url)
        client.remember("ada", "another")
        second = scraped(url)
        client.remember("ada", "one more")  # swept after the commit there, and counted by the next write
        third = scraped(url)
    sizes = [[list(one[f"kronmem_{name}"].values()) for name in ("memories", "agents")] for one in (first, second)]
    assert sizes == [[[1], [2]], [[2], [2]]]
    assert list(third["kronmem_swept_memories_total"].values()) == [1]
    assert list(third["kronmem_embedding_backlog"].values()) == [0]
