"""Fair measuring on a noisy machine: contestants take turns, round by round; medians and spread, never single times."""

from __future__ import annotations

import gc
import importlib.util
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field


@dataclass
class Times:
    """Seconds per contestant, one figure a round."""

    rounds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, seconds: float) -> None:
        """Note one round."""
        self.rounds.setdefault(name, []).append(seconds)

    def against(self, other: str) -> dict[str, list[float]]:
        """How everybody compares with `other`, round by round: neighbours in time had the same machine."""
        theirs = self.rounds[other]
        return {name: [a / b for a, b in zip(mine, theirs, strict=True)] for name, mine in self.rounds.items()}

    def over(self, seconds: float) -> dict[str, list[float]]:
        """How everybody compares with so many seconds."""
        return {name: [one / seconds for one in mine] for name, mine in self.rounds.items()}


@dataclass
class Costs:
    """Wall time, and CPU of this process, of the same rounds."""

    wall: Times = field(default_factory=Times)
    cpu: Times = field(default_factory=Times)


@dataclass(frozen=True)
class Row:
    """One measurement: what was measured, what 1 stands for, and everybody's figures, one a round."""

    measure: str
    base: str
    cells: dict[str, list[float]]

    def figure(self, name: str) -> str:
        """The median of the rounds, and their spread where they differ."""
        of = self.cells[name]
        least, most = _rounded(min(of)), _rounded(max(of))
        spread = "" if least == most else f" ({least}–{most})"
        return f"{_rounded(statistics.median(of))}{spread}"

    def __str__(self) -> str:
        return f"{self.measure} [{self.base}]: {', '.join(f'{name} {self.figure(name)}' for name in self.cells)}"


def _rounded(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def installed(*modules: str) -> bool:
    """Can all of these be imported?"""
    return all(importlib.util.find_spec(module) for module in modules)


def repeated(work: Callable[[], object], times: int) -> float:
    """The median seconds of one call among many: a pause of the machine hits few of them."""
    return statistics.median(_timed(work) for _ in range(times))


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


async def arepeated(work: Callable[[], Awaitable[object]], times: int) -> float:
    """The same for something awaited."""
    taken: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        await work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def settle() -> None:
    """Start a round without the garbage of the last one, and without other people's modules for the collector to visit.

    Each contestant would be alone in a user's process; here they share one with all the others.
    """
    gc.collect()
    gc.freeze()


def both_in_turn(contestants: dict[str, Callable[[], object]], rounds: int, calls: int) -> Costs:
    """Let every contestant make so many calls a round: median wall time and mean CPU of one."""
    costs = Costs()
    for number in range(rounds):
        for name in turned(list(contestants), number):
            settle()
            used = time.process_time()
            costs.wall.add(name, repeated(contestants[name], calls))
            costs.cpu.add(name, (time.process_time() - used) / calls)
    return costs


async def aboth_in_turn(contestants: dict[str, Callable[[], Awaitable[object]]], rounds: int, calls: int) -> Costs:
    """The same for calls that are awaited."""
    costs = Costs()
    for number in range(rounds):
        for name in turned(list(contestants), number):
            settle()
            used = time.process_time()
            costs.wall.add(name, await arepeated(contestants[name], calls))
            costs.cpu.add(name, (time.process_time() - used) / calls)
    return costs


def turned(names: list[str], number: int) -> list[str]:
    """The order of a round: nobody is always first."""
    first = number % len(names)
    return names[first:] + names[:first]


def in_turn(contestants: dict[str, Callable[[], float]], rounds: int) -> Times:
    """Let every contestant run once a round, the order turned each time."""
    times = Times()
    for number in range(rounds):
        for name in turned(list(contestants), number):
            settle()
            times.add(name, contestants[name]())
    return times
