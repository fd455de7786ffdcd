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

    def median(self, name: str) -> float:
        """The middle round."""
        return statistics.median(self.rounds[name])

    def ratio(self, name: str, other: str) -> float:
        """How `name` compares with `other`: the median of the ratios of neighbouring rounds."""
        pairs = zip(self.rounds[name], self.rounds[other], strict=True)
        return statistics.median(mine / theirs for mine, theirs in pairs)

    def spread(self, name: str, other: str) -> str:
        """The ratio and its range over the rounds."""
        ratios = sorted(mine / theirs for mine, theirs in zip(self.rounds[name], self.rounds[other], strict=True))
        return f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"


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
    """Start a round without the garbage of the last one."""
    gc.collect()


def in_turn(contestants: dict[str, Callable[[], float]], rounds: int) -> Times:
    """Let every contestant run once a round, the order turned each time."""
    times = Times()
    names = list(contestants)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            settle()
            times.add(name, contestants[name]())
    return times
