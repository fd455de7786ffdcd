"""All speed measurements in one run: `python -m tests.benchmarks [--quick] [--write]`, offline.

Prints ratios against peers measured in turn; `--write` puts the table and the plot where the README shows them.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks import calls, embedded, fan_out, growth, imports, turns
from tests.benchmarks.measure import Times

ROOT = Path(__file__).parent.parent.parent
README, PLOT = ROOT / "README.md", ROOT / "examples" / "benchmarks.svg"
LATENCY = 45.0

Line = tuple[str, str]
Bar = tuple[str, float]


def sequential(rounds: int, count: int) -> Iterator[Line]:
    """One call after the other."""
    for shell, measured in (("blocking", calls.blocking(rounds, count)), ("awaited", calls.awaiting(rounds, count))):
        for name, times in measured.items():
            for other in times.rounds:
                if other != "httpx":
                    yield f"{name}, {shell}: {other} ÷ the same call written with httpx", times.spread(other, "httpx")


def fanned(rounds: int, bars: list[Bar]) -> Iterator[Line]:
    """Many calls at once."""
    best = fan_out.ideal(LATENCY)
    times = fan_out.bounded(LATENCY, rounds)
    for name in times.rounds:
        bars.append((name, times.median(name) / best))
        yield f"1000 recalls, 100 at once, {LATENCY:.0f} ms: {name} ÷ ideal", _of(times, name, best)
    times = fan_out.bounded(0.0, rounds)
    for name in times.rounds:
        if name != "kronmem":
            yield f"1000 recalls, 100 at once, 0 ms: {name} ÷ kronmem", times.spread(name, "kronmem")
    times = fan_out.gathered(LATENCY, max(1, rounds // 2))
    for name in times.rounds:
        if name != "kronmem":
            yield f"asyncio.gather of 1000 recalls, {LATENCY:.0f} ms: {name} ÷ kronmem", times.spread(name, "kronmem")


def _of(times: Times, name: str, base: float) -> str:
    ratios = sorted(seconds / base for seconds in times.rounds[name])
    return f"{times.median(name) / base:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"


def had(rounds: int) -> Iterator[Line]:
    """What it costs to have it."""
    times = imports.times(rounds)
    for name in times.rounds:
        if name != "httpx and pydantic":
            yield f"import: {name} ÷ httpx and pydantic", times.spread(name, "httpx and pydantic")
    yield "installed, with everything it needs", f"{imports.megabytes(imports.ENOUGH):.0f} MB"


def in_agents(count: int) -> Iterator[Line]:
    """What a turn costs more."""
    for name, added in (("ConversableAgent", turns.classic(count)), ("AssistantAgent", turns.agentchat(count))):
        if added is not None:
            yield f"a turn of a {name} with memory, service of 20 ms: added round trips", f"{added:.2f}"


def inside(size: int, rounds: int) -> Iterator[Line]:
    """The embedded engine."""
    recalls, adds = embedded.measured(size, max(1, size // 1000), rounds)
    for name in recalls.rounds:
        if name != "kronmem":
            yield f"embedded recall among {size:,} memories: {name} ÷ kronmem", recalls.spread(name, "kronmem")
            yield f"embedded single durable add: {name} ÷ kronmem", adds.spread(name, "kronmem")


def plot(bars: list[Bar]) -> str:
    """The fan-out as a picture: bars in multiples of the ideal time."""
    longest = max(length for _, length in bars)
    rows = [
        f'<text x="112" y="{44 + 34 * row}" text-anchor="end">{name}</text>'
        f'<rect x="120" y="{28 + 34 * row}" width="{440 * length / longest:.0f}" height="22" rx="3"'
        f' fill="{"#2563eb" if name == "kronmem" else "#94a3b8"}"/>'
        f'<text x="{128 + 440 * length / longest:.0f}" y="{44 + 34 * row}">{length:.1f} ×</text>'
        for row, (name, length) in enumerate(bars)
    ]
    height = 40 + 34 * len(bars)
    title = f"1000 recalls, 100 at once, {LATENCY:.0f} ms latency: time as a multiple of the ideal"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {height}" font-family="sans-serif" font-size="14">'
        f'<rect width="640" height="{height}" fill="#ffffff"/><text x="12" y="18">{title}</text>{"".join(rows)}</svg>\n'
    )


def main() -> None:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, under a minute")
    parser.add_argument("--write", action="store_true", help="put the table and the plot into the README")
    options = parser.parse_args()
    rounds, count = (1, 60) if options.quick else (5, 300)
    bars: list[Bar] = []
    lines: list[Line] = []
    parts = (
        sequential(rounds, count),
        fanned(rounds, bars),
        had(max(rounds, 3)),
        in_agents(5 if options.quick else 25),
        inside(2_000 if options.quick else 10_000, rounds),
    )
    for part in parts:
        for name, value in part:
            lines.append((name, value))
            print(f"{name}: {value}", flush=True)
    number = 2_000 if options.quick else 20_000
    lines.append((f"memory grown over {number:,} calls", f"{growth.over(number):.1f} MB"))
    print(": ".join(lines[-1]))
    if options.write:
        write(lines, bars)


def write(lines: list[Line], bars: list[Bar]) -> None:
    """Replace the README's table and plot."""
    table = "\n".join(
        ["| measured (median, range) | |", "|---|---|", *(f"| {name} | {value} |" for name, value in lines)]
    )
    mark = r"(<!-- benchmarks -->\n).*?(\n<!-- end of benchmarks -->)"
    text = README.read_text("utf-8")
    README.write_text(re.sub(mark, lambda found: f"{found[1]}{table}{found[2]}", text, flags=re.S), "utf-8")
    PLOT.write_text(plot(bars), "utf-8")


if __name__ == "__main__":
    main()
