"""What the tests of the PostgreSQL store start from."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from tests.engine.calling import Caller, calling

# Without the extra there is nothing to test here; the contract suite says so as skipped tests.
collect_ignore_glob = [] if find_spec("psycopg") else ["test_*.py"]


@pytest.fixture
def call(postgres: str) -> Iterator[Caller]:
    """A caller of a service on an empty database."""
    with calling(postgres) as caller:
        yield caller


@pytest.fixture
def sql(postgres: str) -> Iterator[Any]:
    """Plain SQL beside the store, each statement by itself."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        yield connection.execute
