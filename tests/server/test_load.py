"""Many at once, and a kill in the middle: no error of the server's own, and nothing acknowledged is lost."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from kronmem import Client
from tests.services.kronmem import ServedKronmem

CLIENTS, OPERATIONS, AGENTS = 50, 200, 10


@dataclass
class Seen:
    """What one client was told by the server."""

    stored: dict[str, str] = field(default_factory=dict[str, str])
    set: dict[str, str] = field(default_factory=dict[str, str])
    statuses: Counter[int] = field(default_factory=Counter[int])


def work(number: int, url: str, go_on: Callable[[], bool], seen: Seen) -> None:
    """A mix of operations; what is not acknowledged counts for nothing."""
    agent = f"load-{number % AGENTS}"
    base = f"/api/v1/agents/{agent}"
    with httpx.Client(base_url=url, trust_env=False, verify=False, timeout=60) as http:
        for step in range(OPERATIONS):
            if not go_on():
                return
            try:
                one(http, base, agent, number, step, seen)
            except httpx.TransportError:
                return


def one(http: httpx.Client, base: str, agent: str, number: int, step: int, seen: Seen) -> None:
    kind, text = step % 10, f"Client {number} noted number {step} about topic {step % 17}"
    if kind < 4:
        reply = http.post(f"{base}/remember", json={"content": text, "session_id": f"s{number}"})
        if reply.status_code == 201:
            seen.stored[reply.json()["id"]] = text
    elif kind == 4:
        reply = http.post(f"{base}/recall", json={"query": f"what about topic {step % 17}?"})
    elif kind == 5:
        reply = http.get(f"{base}/memories", params={"per_page": 20, "session_id": f"s{number}"})
    elif kind == 6:
        reply = http.put(f"/memory/{agent}/k{number}", json={"value": text})
        if reply.status_code == 200:
            seen.set[f"k{number}"] = text
    elif kind == 7:
        reply = http.get(f"/memory/{agent}/k{number}")
    elif kind == 8:
        reply = http.post("/v1/memory/remember", json={"content": text, "tags": [agent]})
    else:
        forgotten = next(iter(seen.stored))
        del seen.stored[forgotten]  # whatever the answer: it may be gone
        reply = http.delete(f"{base}/memories/{forgotten}")
    seen.statuses[reply.status_code] += 1


@contextmanager
def loaded(url: str, go_on: Callable[[], bool]) -> Iterator[list[Seen]]:
    """Fifty clients at work; at the end of the block they are waited for."""
    seen = [Seen() for _ in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        done = [pool.submit(work, number, url, go_on, one) for number, one in enumerate(seen)]
        yield seen
        for each in done:
            each.result()


def check(service: ServedKronmem, seen: list[Seen]) -> None:
    """Everything acknowledged is there."""
    with Client(service.url, outbox=False, timeout=60) as client:
        for agent in range(AGENTS):
            there = {memory.id: memory.content for memory in client.memories(f"load-{agent}")}
            state = client.state(f"load-{agent}")
            for number in range(agent, CLIENTS, AGENTS):
                assert seen[number].stored.items() <= there.items()
                for key, last in seen[number].set.items():  # a later one may have come without its answer
                    assert _step(str(state.get(key))) >= _step(last)


def _step(text: str) -> int:
    return int(text.split("number ")[1].split()[0])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_fifty_clients_with_two_hundred_operations_each_lose_nothing(tmp_path: Path) -> None:
    with ServedKronmem(tmp_path / "memory.db") as service:
        with loaded(service.url, lambda: True) as seen:
            pass
        statuses: Counter[int] = sum((one.statuses for one in seen), Counter[int]())
        assert set(statuses) <= {200, 201, 204, 404}
        assert statuses.total() == CLIENTS * OPERATIONS
        check(service, seen)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_kill_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    stop = threading.Event()
    with ServedKronmem(tmp_path / "memory.db") as service:
        with loaded(service.url, lambda: not stop.is_set()) as seen:
            while sum(one.statuses.total() for one in seen) < 1500:
                stop.wait(0.01)
            service.kill()
            stop.set()
        assert sum(one.statuses.total() for one in seen) >= 1500
        assert not any(status >= 500 for one in seen for status in one.statuses)
        service.start()
        check(service, seen)
