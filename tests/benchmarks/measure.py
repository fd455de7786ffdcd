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


@dataclass(frozen=True)
class Row:
    """One measurement: what was measured, what 1 stands for, and everybody's figures, one a round."""

    measure: str
    base: str
    cells: dict[str, list[float]]

    def median(self, name: str) -> str:
        """The middle figure."""
        value = statistics.median(self.cells[name])
        return f"{value:.2f}" if value < 10 else f"{value:.0f}"

    def __str__(self) -> str:
        spread = (f"{name} {self.median(name)} ({min(of):.2f} to {max(of):.2f})" for name, of in self.cells.items())
        return f"{self.measure} [{self.base}]: {', '.join(spread)}"


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
