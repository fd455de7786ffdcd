"""Every test here with every shell; the awaiting ones in the slow half, since a repair is one flow for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.services import KronvexServer
from tests.shells import SHELLS, shell


@pytest.fixture(params=[kind if kind == "sync" else pytest.param(kind, marks=pytest.mark.slow) for kind in SHELLS])
def kind(request: pytest.FixtureRequest) -> str:
    """Which shell: blocking, awaiting on asyncio, awaiting on trio."""
    return str(request.param)


@pytest.fixture
def server() -> Iterator[KronvexServer]:
    """The stand-in, unkind as the real one."""
    with KronvexServer() as server:
        yield server


@pytest.fixture
def client(server: KronvexServer, kind: str) -> Iterator[Any]:
    """A client of it."""
    with shell(kind, server.url, api_key=server.key) as client:
        yield client
