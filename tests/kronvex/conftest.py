"""Every test here with every shell; the awaiting ones in the slow half, since a repair is one flow for all of them."""

from __future__ import annotations

import pytest

from tests.shells import SHELLS


@pytest.fixture(params=[kind if kind == "sync" else pytest.param(kind, marks=pytest.mark.slow) for kind in SHELLS])
def kind(request: pytest.FixtureRequest) -> str:
    """Which shell: blocking, awaiting on asyncio, awaiting on trio."""
    return str(request.param)
