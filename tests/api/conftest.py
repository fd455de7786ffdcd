"""A service of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.calling import Caller, calling


@pytest.fixture
def call() -> Iterator[Caller]:
    """A caller of an embedded service."""
    with calling() as caller:
        yield caller
