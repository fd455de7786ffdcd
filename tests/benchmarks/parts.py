"""The parts of `python -m tests.benchmarks`: each measures one thing in rounds and yields a row for every figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.benchmarks import calls, embedded, fan_out, growth, imports, served, tracing, turns
from tests.benchmarks.measure import Row

LATENCY = 45.0
FANNED = f"recalls, 100 at once, {LATENCY:.0f} ms latency"

Part = Callable[[int, int], Iterator[Row]]


def run(part: Part, rounds: int, count: int) -> list[Row]:
    """One part to its end."""
    return list(part(rounds, count))


def sequential(rounds: int, count: int) -> Iterator[Row]:
    """One call after the other."""
    for shell, measured in (("blocking", calls.blocking(rounds, count)), ("awaited", calls.awaiting(rounds, count))):
        for name, costs in measured.items():
            yield Row(f"{name} over HTTP, {shell}", "httpx = 1", costs.wall.against("httpx"))
            yield Row("the same, CPU of the client", "httpx = 1", costs.cpu.against("httpx"))


def fanned(rounds: int, count: int) -> Iterator[Row]:
    """Many calls at once."""
    times, cpu = fan_out.bounded(LATENCY, rounds, count)
    yield Row(f"{count} {FANNED}", "ideal = 1", times.over(fan_out.ideal(LATENCY, count)))
    if "aiohttp" in cpu.rounds:
        yield Row("the same, CPU of the client", "aiohttp = 1", cpu.against("aiohttp"))
    yield Row("the same, no latency", "httpx = 1", fan_out.bounded(0.0, rounds, count)[0].against("httpx"))
    times = fan_out.gathered(LATENCY, rounds, count)
    yield Row(f"asyncio.gather of {count} recalls, {LATENCY:.0f} ms", "kronmem = 1", times.against("kronmem"))


def traced(rounds: int, count: int) -> Iterator[Row]:
    """What tracing costs with and without a listener."""
    yield from tracing.rows(rounds, count)


def hosted(rounds: int, count: int) -> Iterator[Row]:
    """The server's share of a call."""
    cpu, rates = served.measured(rounds, count)
    for name, times in cpu.items():
        yield Row(f"CPU of a served {name}", f"{served.PEER} = 1", times.against(served.PEER))
    for name, times in rates.items():
        yield Row(f"served {name}, higher is better", "requests a second", times.rounds)


def had(rounds: int, _: int) -> Iterator[Row]:
    """What it costs to have it."""
    times = imports.times(rounds).against(imports.BASE)
    yield Row(imports.CLIENT, f"{imports.BASE} = 1", {"kronmem": times.pop(imports.CLIENT)})
    yield Row("import", f"{imports.BASE} = 1", times)
    started = imports.cold(rounds).against(imports.BASE)
    for name in imports.COLD:
        yield Row(f"CPU of a fresh process: {name}", f"{imports.BASE} = 1", {"kronmem": started[name]})
    yield Row("installed, with all it needs", "MB", {name: [size] for name, size in imports.megabytes().items()})


def in_agents(rounds: int, count: int) -> Iterator[Row]:
    """What a turn costs more."""
    for name, added in (
        ("ConversableAgent", turns.classic(rounds, count)),
        ("AssistantAgent", turns.agentchat(rounds, count)),
    ):
        if added:
            yield Row(f"turn of {name} with memory at 20 ms", "round trips added", {"kronmem": added})
    if gaps := turns.loop_gap(rounds):
        yield Row("longest gap of the loop, five async chats, memory at 500 ms", "seconds", gaps)
    if waits := turns.capturing(rounds, 10 * count):
        yield Row("captured message on disk, ConversableAgent", "ms", waits)
    for name, costs in turns.saving(rounds).items():
        yield Row(f"CPU to save one message of a chat of 1,000, {name}", "of one of 10 = 1", costs)


def inside(rounds: int, size: int) -> Iterator[Row]:
    """The embedded engine."""
    recalls, adds = embedded.measured(size, max(4, size // 1000), rounds)
    yield Row(f"embedded recall among {size:,} memories", "kronmem = 1", recalls.against("kronmem"))
    yield Row("embedded single durable add", "kronmem = 1", adds.against("kronmem"))


def grown(_: int, number: int) -> Iterator[Row]:
    """A client that runs for days."""
    yield Row(f"memory grown over {number:,} calls", "MB", {"kronmem": [growth.over(number)]})
