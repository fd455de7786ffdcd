"""Our own service in a process of its own: it can be killed, and started again on the same port and file."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from kronmem import Client

ROOT = Path(__file__).parent.parent.parent
START = """
import json, sys
from kronmem.server.serve import run
run("127.0.0.1", int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]) or None)
"""


def free_port() -> int:
    """A port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ServedKronmem:
    """`kronmem serve` on loopback, on a file or on the database at a url; `python` may have another release."""

    def __init__(
        self,
        path: Path | str,
        *,
        key: str | None = None,
        port: int | None = None,
        owners: dict[str, str] | None = None,
        python: str = "",
    ) -> None:
        self.python = python
        self.path, self.key, self.port = path, key, port or free_port()
        self.keys = {**(owners or {}), **({key: ""} if key else {})}
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> ServedKronmem:
        """Start, and return when it answers."""
        cwd = self.path.parent if isinstance(self.path, Path) else None
        command = [self.python or sys.executable, "-c", START, str(self.port), str(self.path), json.dumps(self.keys)]
        code = "" if self.python else str(ROOT)  # an installation of another release has its own
        self._process = subprocess.Popen(command, cwd=cwd, env={**os.environ, "PYTHONPATH": code})
        with Client(self.url, outbox=False, timeout=1.0) as client:
            for _ in range(1000):
                if client.health().ok:
                    return self
                if self._process.poll() is not None:
                    raise RuntimeError("the service did not start")
                time.sleep(0.02)
        raise RuntimeError("the service does not answer")

    @property
    def pid(self) -> int:
        """The process that serves."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL: no goodbye, no clean-up."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM: finish what was accepted."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def contents(self, agent_id: str) -> list[str]:
        """What the service holds of an agent, oldest first, read beside it."""
        with Client(self.path) if isinstance(self.path, str) else Client.local(self.path) as client:
            return [memory.content for memory in client.memories(agent_id)][::-1]

    def __enter__(self) -> ServedKronmem:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


def client(service: ServedKronmem, **options: Any) -> Client:
    """A client of that service."""
    return Client(service.url, api_key=service.key, **options)
