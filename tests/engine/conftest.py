"""What the engine's tests start from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.calling import Caller, calling


@pytest.fixture
def call() -> Iterator[Caller]:
    with calling() as caller:
        yield caller
