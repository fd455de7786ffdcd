"""Two servers for all tests: one with two named keys and one without a name, one without keys."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import httpx
import pytest

from tests.services.kronmem import ServedKronmem

ADA, BOB, BARE = "kv-ada-1", "kv-bob-1", "kv-bare-1"
OWNERS = {ADA: "ada", BOB: "bob", "kv-ada-2": "ada"}


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedKronmem]:
    """A server with keys."""
    with ServedKronmem(tmp_path_factory.mktemp("served") / "memory.db", key=BARE, owners=OWNERS) as service:
        yield service


@pytest.fixture(scope="session")
def unlocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedKronmem]:
    """A server without keys, on loopback."""
    with ServedKronmem(tmp_path_factory.mktemp("unlocked") / "memory.db") as service:
        yield service


addresses = count(2)


@pytest.fixture
def http(served: ServedKronmem) -> Iterator[httpx.Client]:
    """Plain HTTP to the server with keys, from an address of its own: wrong keys are counted by it."""
    transport = httpx.HTTPTransport(local_address="127.0.{}.{}".format(*divmod(next(addresses), 250)))
    with httpx.Client(base_url=served.url, transport=transport, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def open_http(unlocked: ServedKronmem) -> Iterator[httpx.Client]:
    """Plain HTTP to the server without keys."""
    with httpx.Client(base_url=unlocked.url, trust_env=False, timeout=60) as client:
        yield client
