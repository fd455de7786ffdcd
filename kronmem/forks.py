"""What a fork must not cut in two: files are at rest when the process is copied, the child finds every lock open."""

from __future__ import annotations

import os
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


_watched: dict[int, weakref.ref[Forked]] = {}


def watch(one: Forked) -> None:
    """Call its methods around every fork, as long as it lives."""
    key = id(one)
    _watched[key] = weakref.ref(one, lambda _gone: _watched.pop(key, None))


def _alive() -> list[Forked]:
    return [one for ref in list(_watched.values()) if (one := ref()) is not None]


def _before() -> None:
    for one in _alive():
        one.before_fork()


def _in_parent() -> None:
    for one in _alive():
        one.after_fork(child=False)


def _in_child() -> None:
    for one in _alive():
        one.after_fork(child=True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
