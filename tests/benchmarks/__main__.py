"""All speed measurements in one run: `python -m tests.benchmarks [--quick] [--write]`, offline.

Everything is a ratio, lower is better, measured in turns round by round beside whichever peers are installed;
`--write` puts the table and the plot where the README shows them.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.benchmarks import imports, parts
from tests.benchmarks.measure import Row

ROOT = Path(__file__).parent.parent.parent
README, PLOT = ROOT / "tests" / "benchmarks" / "README.md", ROOT / "tests" / "benchmarks" / "benchmarks.svg"


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
    work: list[tuple[parts.Part, int, int]] = [
        (parts.sequential, rounds, 60 if quick else 300),
        (parts.fanned, rounds, 200 if quick else 1000),
        (parts.hosted, rounds, 100 if quick else 1000),
        (parts.had, rounds, 0),
        (parts.in_agents, rounds, 5 if quick else 15),
        (parts.inside, rounds, 1_000 if quick else 10_000),
        (parts.grown, rounds, 2_000 if quick else 20_000),
        (parts.traced, rounds, 100 if quick else 500),
    ]
    rows: list[Row] = []
    for part in work:
        # In a process of its own: some libraries leave threads behind that would burden whoever comes next.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            for row in fresh.submit(parts.run, *part).result():
                rows.append(row)
                print(row, flush=True)
    if options.write:
        write(rows)


def table(rows: list[Row]) -> str:
    """The rows in Markdown: a column for everybody who takes part in one of them."""
    names = list(dict.fromkeys(name for row in rows for name in row.cells if name != imports.BASE))
    lines = [["median (least–most), lower is better", "unit", *names], ["---"] * (len(names) + 2)]
    lines += [
        [row.measure, row.base, *(row.figure(name) if name in row.cells else "" for name in names)] for row in rows
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def printed_by() -> str:
    """Which code on which kind of machine the figures are from; names neither a host nor a folder."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=True)
    changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True)
    code = commit.stdout.strip() + (" with changes" if changed.stdout.strip() else "")
    python = f"{platform.python_implementation()} {platform.python_version()}"
    machine = f"{os.cpu_count()} CPUs ({platform.machine()}), {platform.system()}"
    return f"Printed by commit {code} on {machine}, {python}."


def write(rows: list[Row]) -> None:
    """Replace the README's table and plot."""
    mark = r"(<!-- benchmarks -->\n).*?(\n<!-- end of benchmarks -->)"
    text = README.read_text("utf-8")
    written = f"{table(rows)}\n\n{printed_by()}"
    README.write_text(re.sub(mark, lambda found: f"{found[1]}{written}{found[2]}", text, flags=re.S), "utf-8")
    PLOT.write_text(plot(next(row for row in rows if row.measure.endswith(parts.FANNED))), "utf-8")


if __name__ == "__main__":
    main()
