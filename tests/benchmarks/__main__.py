"""All speed measurements in one run: `python -m tests.benchmarks [--quick] [--write]`, offline.

Everything is a ratio, lower is better, measured in turns round by round beside whichever peers are installed;
`--write` puts the table and the plot where the README shows them.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.benchmarks import calls, embedded, fan_out, growth, imports, turns
from tests.benchmarks.measure import Row

ROOT = Path(__file__).parent.parent.parent
README, PLOT = ROOT / "README.md", ROOT / "examples" / "benchmarks.svg"
LATENCY = 45.0
FANNED = f"recalls, 100 at once, {LATENCY:.0f} ms latency"


def sequential(rounds: int, count: int) -> Iterator[Row]:
    """One call after the other."""
    for shell, measured in (("blocking", calls.blocking(rounds, count)), ("awaited", calls.awaiting(rounds, count))):
        for name, times in measured.items():
            yield Row(f"{name} over HTTP, {shell}", "httpx = 1", times.against("httpx"))


def fanned(rounds: int, count: int) -> Iterator[Row]:
    """Many calls at once."""
    times = fan_out.bounded(LATENCY, rounds, count)
    yield Row(f"{count} {FANNED}", "ideal = 1", times.over(fan_out.ideal(LATENCY, count)))
    yield Row("the same, no latency", "httpx = 1", fan_out.bounded(0.0, rounds, count).against("httpx"))
    times = fan_out.gathered(LATENCY, rounds, count)
    yield Row(f"asyncio.gather of {count} recalls, {LATENCY:.0f} ms", "kronmem = 1", times.against("kronmem"))


def had(rounds: int, _: int) -> Iterator[Row]:
    """What it costs to have it."""
    times = imports.times(rounds).against(imports.BASE)
    yield Row(imports.CLIENT, f"{imports.BASE} = 1", {"kronmem": times.pop(imports.CLIENT)})
    yield Row("import", f"{imports.BASE} = 1", times)
    yield Row("installed, with all it needs", "MB", {name: [size] for name, size in imports.megabytes().items()})


def in_agents(rounds: int, count: int) -> Iterator[Row]:
    """What a turn costs more."""
    for name, added in (
        ("ConversableAgent", turns.classic(rounds, count)),
        ("AssistantAgent", turns.agentchat(rounds, count)),
    ):
        if added:
            yield Row(f"turn of {name} with memory at 20 ms", "round trips added", {"kronmem": added})


def inside(rounds: int, size: int) -> Iterator[Row]:
    """The embedded engine."""
    recalls, adds = embedded.measured(size, max(4, size // 1000), rounds)
    yield Row(f"embedded recall among {size:,} memories", "kronmem = 1", recalls.against("kronmem"))
    yield Row("embedded single durable add", "kronmem = 1", adds.against("kronmem"))


def grown(_: int, number: int) -> Iterator[Row]:
    """A client that runs for days."""
    yield Row(f"memory grown over {number:,} calls", "MB", {"kronmem": [growth.over(number)]})


def plot(row: Row) -> str:
    """A measurement as bars, shortest first."""
    bars = sorted((sorted(of)[len(of) // 2], name) for name, of in row.cells.items())
    longest = bars[-1][0]
    rows = [
        f'<text x="112" y="{44 + 34 * at}" text-anchor="end">{name}</text>'
        f'<rect x="120" y="{28 + 34 * at}" width="{440 * length / longest:.0f}" height="22" rx="3"'
        f' fill="{"#2563eb" if name == "kronmem" else "#94a3b8"}"/>'
        f'<text x="{128 + 440 * length / longest:.0f}" y="{44 + 34 * at}">{length:.1f} ×</text>'
        for at, (length, name) in enumerate(bars)
    ]
    height = 40 + 34 * len(bars)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {height}" font-family="sans-serif" font-size="14">'
        f'<rect width="640" height="{height}" fill="#ffffff"/>'
        f'<text x="12" y="18">{row.measure}: time as a multiple of the ideal</text>{"".join(rows)}</svg>\n'
    )


def main() -> None:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of less, under a minute")
    parser.add_argument("--write", action="store_true", help="put the table and the plot into the README")
    options = parser.parse_args()
    quick = options.quick
    rounds = 1 if quick else 5
    parts: list[tuple[Callable[[int, int], Iterator[Row]], int, int]] = [
        (sequential, rounds, 60 if quick else 300),
        (fanned, rounds, 300 if quick else 1000),
        (had, rounds, 0),
        (in_agents, rounds, 5 if quick else 15),
        (inside, rounds, 2_000 if quick else 10_000),
        (grown, rounds, 2_000 if quick else 20_000),
    ]
    rows: list[Row] = []
    for part in parts:
        # In a process of its own: some libraries leave threads behind that would burden whoever comes next.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            for row in fresh.submit(run, *part).result():
                rows.append(row)
                print(row, flush=True)
    if options.write:
        write(rows)


def run(part: Callable[[int, int], Iterator[Row]], rounds: int, count: int) -> list[Row]:
    """One part to its end."""
    return list(part(rounds, count))


def table(rows: list[Row]) -> str:
    """The rows in Markdown: a column for everybody who takes part in one of them."""
    names = list(dict.fromkeys(name for row in rows for name in row.cells if name != imports.BASE))
    lines = [["median, lower is better", "unit", *names], ["---"] * (len(names) + 2)]
    lines += [
        [row.measure, row.base, *(row.median(name) if name in row.cells else "" for name in names)] for row in rows
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write(rows: list[Row]) -> None:
    """Replace the README's table and plot."""
    mark = r"(<!-- benchmarks -->\n).*?(\n<!-- end of benchmarks -->)"
    text = README.read_text("utf-8")
    README.write_text(re.sub(mark, lambda found: f"{found[1]}{table(rows)}{found[2]}", text, flags=re.S), "utf-8")
    PLOT.write_text(plot(next(row for row in rows if row.measure.endswith(FANNED))), "utf-8")


if __name__ == "__main__":
    main()
