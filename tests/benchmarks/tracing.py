"""The cost of tracing beside a call: the guard with nobody listening, and a recorded span.

`python -m tests.benchmarks.tracing` prints it; the run needs `opentelemetry-sdk` for the second figure.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kronmem import Client
from kronmem.core.abilities import RemoteService
from kronmem.core.calls import recall
from kronmem.core.exchange import Link, exchange
from kronmem.core.inputs import MemoryFilter
from kronmem.kronvex import Kronvex
from kronmem.tracing import Tracer
from tests.benchmarks.measure import Row, Times, in_turn, installed, repeated

CALLS = 100_000
"""Calls of the guard whose mean is taken."""
RECALLS = 500


def main() -> None:
    """Measure and print."""
    for row in rows(5, RECALLS):
        print(row, flush=True)


def rows(rounds: int, count: int) -> list[Row]:
    """The guard and the call beside it in µs, then the call with its span recorded as a multiple of the call."""
    guard = f"guard of a call, nobody listening, mean of {CALLS:,}"
    found = [
        Row(f"{guard}, OpenTelemetry {state}", "µs", {"kronmem": _guard(rounds, state)})
        for state in ("not loaded", "loaded without a provider")
    ]
    with Client("sqlite://") as client:
        client.remember_many("ada", [f"Ada likes tea number {number}" for number in range(100)])
        silent = in_turn({"call": lambda: repeated(lambda: client.recall("ada", "tea"), count)}, rounds)
        found.append(
            Row("the call itself: embedded recall among 100", "µs", {"kronmem": _micro(silent.rounds["call"])})
        )
        return [*found, *([_recorded(client, rounds, count)] if installed("opentelemetry.sdk") else [])]


def _guard(rounds: int, state: str) -> list[float]:
    """A round is the mean of many; the first state must be measured before anybody loads the API."""
    if state == "loaded without a provider":
        import opentelemetry.trace  # noqa: F401 -- loading it is the state
    link = Link(time.monotonic, lambda: 0.0, RemoteService(Kronvex()))
    flow = exchange(recall("ada", "tea", 5, MemoryFilter(), None, most=20), link, 10.0)
    tracer = Tracer("sqlite://", lambda text: text)

    def mean() -> float:
        began = time.perf_counter()
        for _ in range(CALLS):
            tracer.traced(flow, "recall", "ada", None)
        return (time.perf_counter() - began) / CALLS

    return _micro(in_turn({"guard": mean}, rounds).rounds["guard"])


def _recorded(client: Client, rounds: int, count: int) -> Row:
    """From here on somebody listens: OpenTelemetry lets a provider be set once a process."""
    import os

    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(InMemorySpanExporter()))
    trace.set_tracer_provider(provider)

    def switched(value: str) -> Callable[[], float]:
        def run() -> float:
            os.environ["KRONMEM_TRACING"] = value
            return repeated(lambda: client.recall("ada", "tea"), count)

        return run

    times: Times = in_turn({"off": switched("off"), "recorded": switched("on")}, rounds)
    return Row(
        "the same with its span recorded", "KRONMEM_TRACING=off = 1", {"kronmem": times.against("off")["recorded"]}
    )


def _micro(seconds: list[float]) -> list[float]:
    return [one * 1e6 for one in seconds]


if __name__ == "__main__":
    main()
