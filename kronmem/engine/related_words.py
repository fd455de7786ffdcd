"""Words related to a question's words, from a table in the package that is read at the first question."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources


def related(term: str) -> list[tuple[str, float]]:
    """Terms close in meaning to `term`, with their similarity from 0 to 1."""
    neighbours = related_terms().get(term, "").split()
    return [(neighbour[:-2], int(neighbour[-2:]) / 100) for neighbour in neighbours]


@lru_cache(maxsize=1)
def related_terms() -> Mapping[str, str]:
    """Every term that has relatives, and these as the table has them."""
    packed = resources.files("kronmem.engine").joinpath("soft_terms.z").read_bytes()
    lines = (line.partition(" ") for line in zlib.decompress(packed).decode().splitlines())
    return {term: neighbours for term, _, neighbours in lines}
