"""Every kind of call about one agent, with as many memories as it takes for each way to read the index."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from tests.engine.calling import START, Caller


def when(seconds: float) -> str:
    """A time as the service takes it."""
    return datetime.fromtimestamp(START + seconds, UTC).isoformat()


def call_all(call: Caller) -> None:
    """Make all of them; each succeeds."""

    def ask(method: str, path: str, body: object = None, *query: tuple[str, str]) -> None:
        status, reply = call(method, path, body, query=query, timeout=60.0)
        assert status < 300, (path, body, reply)

    call.remember("Ada lives in Oslo", key="city", session_id="s", tags=["a"], ttl_seconds=60)
    first = call.remember("Ada lives in Bergen", key="city", session_id="s", tags=["a"])
    call.remember("tea " * 200, metadata={"kronmem": {"id": "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"}})
    call.clock.time += 61
    _store_many(call)
    _read(ask)
    ask("PATCH", f"memories/{first['id']}", {"content": "Ada lives in Paris"})
    ask("GET", f"memories/{first['id']}/history")
    ask("GET", "summary")
    ask("GET", "sessions")
    ask("PUT", "state/k", {"value": 1})
    ask("GET", "state/k")
    ask("DELETE", f"memories/{first['id']}")
    ask("POST", "memories/clear", {"session_id": "s"})
    ask("POST", "memories/clear", {"before": when(30)})
    call.remember("Ada likes tea")
    ask("DELETE", "memories")
    ask("POST", "erase")
    call.remember("after all that")


def _store_many(call: Caller) -> None:
    """More memories with one word than a recall reads of it; few of a session, fewer of a tag."""
    drafts = [
        {
            "content": f"coffee {n} in Bergen",
            "session_id": f"s{n % 20}",
            "tags": ["rare", "a"] if n in (3, 300) else ["a"] if n % 2 else [],
        }
        for n in range(1100)
    ]
    for start in range(0, 1100, 100):
        assert call("POST", "memories/batch", {"memories": drafts[start : start + 100]}, timeout=60.0)[0] < 300
        call.clock.time += 1


def _read(ask: Callable[..., None]) -> None:
    times = {"since": when(61.5), "until": when(62.5)}
    for asked in (
        {},
        {"tags": ["a"]},
        {"tags": ["rare"]},
        {"session_id": "s1"},
        {"session_id": "s"},
        {"memory_type": "fact"},
        {"kronmem": times},
    ):
        ask("POST", "recall", {"query": "coffee in Bergen", **asked})
    ask("POST", "recall", {"query": "a cofeemaker"})
    ask("POST", "inject-context", {"query": "coffee"})
    ask("GET", "memories", None, ("search", "coffee"), ("sort", "access_count"))
    ask("GET", "memories", None, ("history", "true"))
    ask("GET", "memories", None, *times.items())
