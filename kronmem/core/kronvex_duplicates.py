"""Duplicates at the vendor's own server: which copy of a memory is the surplus one, and its removal. Pure.

A store that stalls is finished by the server although its repeat is stored too, so two rows may carry one id and one
text. The oldest of them is the memory; the others are deleted when they are seen.
"""

from __future__ import annotations

from collections.abc import Iterable

from kronmem.core import kronvex_calls as server
from kronmem.core.memory_json import WireMemory
from kronmem.core.steps import Asker, Flow
from kronmem.errors import KronmemError


def duplicates(rows: Iterable[WireMemory]) -> set[str]:
    """The ids of rows that repeat an older one, both alive: the same id of ours and text, or stored anew since."""
    first: dict[tuple[str, str], WireMemory] = {}
    rows = list(rows)
    former = frozenset[str]().union(*(row.former for row in rows if not row.superseded))
    surplus = {row.id for row in rows if row.id in former}
    for row in rows:
        own = (row.ours or {}).get("id")
        if not isinstance(own, str) or row.superseded or row.id in surplus:
            continue
        older = first.setdefault((own, row.content), row)
        if older is not row:
            newer, first[own, row.content] = (row, older) if _age(older) <= _age(row) else (older, row)
            surplus.add(newer.id)
    return surplus


def _age(row: WireMemory) -> tuple[float, str]:
    return (row.created_at.timestamp() if row.created_at else 0.0, row.id)


def drop(agent_id: str, surplus: Iterable[str], asker: Asker) -> Flow[None]:
    """Delete surplus rows; if that fails they are deleted when they are next seen."""
    for memory_id in sorted(surplus):
        try:
            yield from asker.ask(server.delete(agent_id, memory_id))
        except KronmemError:
            return
