"""An authority of our own, and every way to a service."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import trustme

from tests.services import RawServer
from tests.services.proxies import LONG_WAYS, WAYS, Tunnels, reached

Reached = Callable[[RawServer], AbstractContextManager[tuple[str, "Tunnels | None"]]]


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """An authority that nobody trusts unless told to."""
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its certificates are believed, in the way a user would arrange it."""
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))


@pytest.fixture(params=[*WAYS, *(pytest.param(way, marks=pytest.mark.slow) for way in LONG_WAYS)])
def way(request: pytest.FixtureRequest) -> str:
    """Which way requests go."""
    return str(request.param)


@pytest.fixture
def reach(way: str, trusted: None, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> Reached:
    """Start a server, and tell under which url it is reached."""
    return lambda server: reached(way, server, authority, monkeypatch)
