"""What every test starts from: a clean environment and a home of its own."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.services import KronvexServer, TutorialServer
from tests.services.kronmem import ServedKronmem
from tests.services.older import served_older
from tests.services.pgbouncer import pooled
from tests.services.postgres import emptied, new_database, own, some_server
from tests.shells import SHELLS, shell

# Many tests start processes: where bytecode may not be kept, each of them would compile everything again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A disk takes milliseconds to confirm each of the thousands of small writes, memory none; a process that is killed
# loses neither. Containers often have a /dev/shm of 64 MB: a run needs a tenth of this.
MEMORY_DISK = Path("/dev/shm")
if os.access(MEMORY_DISK, os.W_OK) and shutil.disk_usage(MEMORY_DISK).free > 2_000_000_000:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_DISK))  # pytest's own rotation of three runs

# A busy machine draws examples slowly, too: neither says anything of what is tested.
settings.register_profile("kronmem", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kronmem")

VARIABLES = (
    "COVERAGE_PROCESS_START",  # processes that tests start are killed, interrupted and timed: they are not measured
    "KRONMEM_URL",
    "KRONMEM_API_KEY",
    "KRONMEM_AGENT",
    "KRONVEX_API_KEY",
    "KRONMEM_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("KRONMEM_HOME", str(tmp_path / "home"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a PostgreSQL or a browser runs in the slow half: each worker would have to start one."""
    for item in items:
        if "postgres" in item.nodeid or {"postgres_server", "window"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# trio shares all but the event loop with asyncio: every test runs on it, but in the slow half.
@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.slow) if kind == "trio" else kind for kind in SHELLS])
def kind(request: pytest.FixtureRequest) -> str:
    """Which shell: blocking, awaiting on asyncio, awaiting on trio."""
    return str(request.param)


@pytest.fixture
def older(tmp_path: Path) -> Iterator[str]:
    """The url of a service of kronmem 0.2."""
    with served_older(tmp_path) as url:
        yield url


OWNERS = {f"kv-owner-{number}": f"owner-{number}" for number in range(1000)}
unused = iter(OWNERS)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedKronmem]:
    """One `kronmem serve` for the whole run; every test takes a key, and so a memory, of its own."""
    with ServedKronmem(tmp_path_factory.mktemp("served") / "memory.db", owners=OWNERS) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """One PostgreSQL for the whole run."""
    with some_server() as url:
        yield url


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """The url of a database with nothing in it."""
    return emptied(postgres_server)


@pytest.fixture(scope="session")
def pooler(postgres_server: str) -> Iterator[str]:
    """One PgBouncer in transaction mode before it."""
    with pooled(postgres_server) as url:
        yield url


@pytest.fixture
def postgres_pooled(postgres: str, pooler: str) -> str:
    """The url of the same database, with nothing in it, behind the pooler."""
    return pooler


@contextmanager
def opened(service: str, kind: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A client of one kind at one service."""
    if service == "served":
        with shell(kind, request.getfixturevalue("served").url, api_key=next(unused)) as client:
            yield client
        return
    if service.startswith("postgres"):
        with shell(kind, request.getfixturevalue(service)) as client:
            yield client
        return
    if service == "embedded":
        with shell(kind, "sqlite://") as client:
            yield client
        return
    with (KronvexServer if service == "kronvex" else TutorialServer)() as server:
        with shell(kind, server.url, api_key=server.key) as client:
            yield client


@pytest.fixture(params=["kronvex", "tutorial", "embedded", "served", "postgres", "postgres_pooled"])
def service(request: pytest.FixtureRequest) -> str:
    """Which service answers."""
    return str(request.param)


@pytest.fixture
def client(service: str, kind: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Every shell at every service: what passes with this fixture is the contract."""
    with opened(service, kind, request) as client:
        yield client


@pytest.fixture
def database(postgres_server: str) -> Iterator[str]:
    """The url of a database in which kronmem has never been."""
    with new_database(postgres_server, own("kronmem_test")) as url:
        yield url
