"""A real PgBouncer in transaction mode before a PostgreSQL of ours: it can be killed and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.services.kronmem import free_port

_CONFIG = """[databases]
* = host={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 200
server_login_retry = 1
logfile = {folder}/log
pidfile = {folder}/pid
"""


class PgBouncer:
    """PgBouncer on a port of loopback, with few server connections for many clients."""

    def __init__(self, server_url: str, folder: Path, *, size: int = 4) -> None:
        parts = urlsplit(server_url)
        self._database, self._port, self._folder = parts.path, free_port(), folder
        server = parse_qs(parts.query)["host"][0]
        self._owner = Path(server).stat().st_uid if os.getuid() == 0 else None  # it refuses to run as root
        (folder / "users").write_text('"postgres" ""\n')
        config = _CONFIG.format(server=server, port=self._port, folder=folder, size=size)
        (folder / "pgbouncer.ini").write_text(config)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"postgresql://postgres@127.0.0.1:{self._port}{self._database}?sslmode=disable&gssencmode=disable"

    def start(self) -> PgBouncer:
        """Start, and return when it answers."""
        for path in (self._folder, *self._folder.iterdir()):
            if self._owner is not None:
                os.chown(path, self._owner, -1)
        command = [program(), str(self._folder / "pgbouncer.ini")]
        self._process = subprocess.Popen(command, user=self._owner, stderr=subprocess.DEVNULL, cwd=self._folder)
        for _ in range(1000):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return self
            if self._process.poll() is not None:
                raise RuntimeError((self._folder / "log").read_text()[-2000:])
            time.sleep(0.02)
        raise RuntimeError("PgBouncer does not answer")

    def reach_server(self) -> None:
        """Return when it lets clients through again: after a failed login it refuses them for a second."""
        import psycopg

        for _ in range(600):
            with suppress(psycopg.OperationalError):
                with psycopg.connect(self.url) as connection:
                    connection.execute("SELECT 1")
                return
            time.sleep(0.1)
        raise RuntimeError("PgBouncer does not reach its server")

    def kill(self) -> None:
        """SIGKILL, as a machine that goes down would."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None


def program() -> str:
    """PgBouncer itself; skips where there is none."""
    found = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    return found or pytest.skip("pgbouncer is not installed: apt-get install pgbouncer")


@contextmanager
def pooler_before(server_url: str, *, size: int = 4) -> Iterator[PgBouncer]:
    """A pooler, running, before a server of ours."""
    program()
    # Not pytest's own directory, which no other user may enter.
    folder = Path(tempfile.mkdtemp(prefix="kronbouncer"))
    pooler = PgBouncer(server_url, folder, size=size).start()
    try:
        yield pooler
    finally:
        pooler.kill()
        shutil.rmtree(folder)


@contextmanager
def pooled(server_url: str) -> Iterator[str]:
    """The url of the same database behind a pooler; skips where the server is not ours."""
    if "host" not in parse_qs(urlsplit(server_url).query):
        pytest.skip("the pooler is tested before a PostgreSQL of our own")
    with pooler_before(server_url) as pooler:
        yield pooler.url
