"""Fork safety: files are at rest when the process is copied, the child finds every lock open."""

from __future__ import annotations

# These two take locks of their own before a fork, and the hook that was registered last comes first: a fork that held
# the lock of logging while it waited for a first use, which makes a logger, would wait in vain.
import concurrent.futures.thread  # noqa: F401 # pyright: ignore[reportUnusedImport] -- registered before ours
import logging  # noqa: F401 # pyright: ignore[reportUnusedImport] -- the same
import os
import threading
import weakref
from typing import Protocol


class Forked(Protocol):
    """Something with a lock or an open file."""

    def before_fork(self) -> None:
        """Come to rest, within a bounded time: the forking thread waits."""
        ...

    def after_fork(self, *, child: bool) -> None:
        """Go on. In the child no other thread exists, and a lock that one of them held would never be released."""
        ...


class FirstUse:
    """The lock under which modules are imported and services opened at their first use.

    A fork waits for it: the child of a process in the middle of an import would wait for that import for ever.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._held = False

    def before_fork(self) -> None:
        """Wait until nothing is half imported."""
        self._held = self.lock.acquire(timeout=LONGEST)

    def after_fork(self, *, child: bool) -> None:
        """Let others go on."""
        if child:
            self.lock = threading.RLock()
        elif self._held:
            self.lock.release()
        self._held = False


LONGEST = 5.0
"""Seconds that a fork waits for a first use; importing the engine takes a tenth of one."""
_watched: dict[int, weakref.ref[Forked]] = {}


def watch(one: Forked) -> None:
    """Call its methods around every fork, as long as it lives."""
    key = id(one)
    _watched[key] = weakref.ref(one, lambda _gone: _watched.pop(key, None))


first_use = FirstUse()
watch(first_use)


def _alive() -> list[Forked]:
    return [one for ref in list(_watched.values()) if (one := ref()) is not None]


_resting: list[Forked] = []


def _before() -> None:
    _resting.clear()
    # Waiting for one may let others come into being: once the first uses are held back, no more than are under way.
    while new := [one for one in _alive() if one not in _resting]:
        for one in new:
            one.before_fork()
            _resting.append(one)


def _in_parent() -> None:
    _go_on(child=False)


def _in_child() -> None:
    _go_on(child=True)


def _go_on(*, child: bool) -> None:
    for one in _resting:
        one.after_fork(child=child)
    _resting.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
