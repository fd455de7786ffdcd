"""The codes of recently asked spaces, kept in memory within bounds and brought up to date before each scan."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from kronmem.engine.store import Reader, Space
from kronmem.engine.vector_scan import Codes

MOST_PASSAGES = 400_000
"""Of all spaces together, about 60 MB: the space that was asked longest ago makes room.

A space with more of its own is not scanned: there, only passages that the words find are compared by meaning.
"""


@dataclass
class _CachedCodes:
    """The codes of one space as of a state of it."""

    state: tuple[int, int]
    codes: Codes = field(default_factory=Codes)
    last: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class CodeCache:
    """Codes by space. A memory's codes never change under its number unless the space says so."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, _CachedCodes] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, rows: Reader, space: Space) -> _CachedCodes:
        """The codes of a space with everything that is in it now; hold their lock while you use them."""
        state = (space.generation, space.revised)
        if space.passages > MOST_PASSAGES:
            return _CachedCodes(state)
        with self._lock:
            kept = self._kept.get(space.id)
            if kept is None or kept.state != state:
                kept = self._kept[space.id] = _CachedCodes(state)
            self._kept.move_to_end(space.id)
        with kept.lock:
            if kept.last < space.last:
                for number, packed in rows.codes(space, kept.last):
                    kept.codes.add(number, packed)
                kept.last = space.last
        self._make_room()
        return kept

    def _make_room(self) -> None:
        with self._lock:
            while len(self._kept) > 1 and sum(len(one.codes) for one in self._kept.values()) > MOST_PASSAGES:
                self._kept.popitem(last=False)
