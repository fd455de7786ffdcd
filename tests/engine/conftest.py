"""What the engine's tests start from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.calling import Caller, calling


@pytest.fixture(params=["sqlite", "postgres"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of either kind that can be opened twice."""
    return str(tmp_path / "memory.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres"))


@pytest.fixture(params=["sqlite", "postgres"])
def call(request: pytest.FixtureRequest) -> Iterator[Caller]:
    """Every test that takes this is asked of both stores."""
    where = ":memory:" if request.param == "sqlite" else str(request.getfixturevalue("postgres"))
    with calling(where) as caller:
        yield caller
