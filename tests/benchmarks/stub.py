"""A fast stand-in for a memory service, in a process of its own: `python -m tests.benchmarks.stub LATENCY_MS`.

It answers any of the libraries' calls with a reply of the usual size, after the latency it was told.
"""

from __future__ import annotations

import json
import re
import select
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

MEMORY = {
    "id": "2abf068a-3528-4aea-8212-34a031114103",
    "agent_id": "7d3f078b-61fc-4ea9-9806-5ba38fab8e52",
    "content": "The database is PostgreSQL 16 on port 5432",
    "session_id": "sess-1",
    "memory_type": "fact",
    "metadata": {"k": "v", "nested": {"a": [1, None, True]}},
    "created_at": "2026-11-16T01:26:14.955073Z",
    "access_count": 3,
    "expires_at": None,
    "pinned": False,
    "deduplicated": False,
    "superseded": False,
}
FOUND = {
    "query": "q",
    "results": [{"memory": MEMORY, "similarity": 0.8, "confidence": 0.7, "score": 0.8}] * 5,
    "total_found": 5,
}


def _reply(value: object) -> bytes:
    body = json.dumps(value).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body


RECALLED, STORED = _reply(FOUND), _reply(MEMORY)
WHO = _reply({"org_id": "o", "project_id": "p", "user_email": None})
"""What mem0's client asks for before anything else."""


LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Stub:
    """Answers requests on any number of connections, from one thread and without an event loop: what the stub costs is
    in everybody's wall time. Its replies are smaller than any socket's buffer, so a write never blocks."""

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.connections = 0
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port: int = self._listening.getsockname()[1]
        self._open: dict[int, socket.socket] = {}
        self._partial: dict[int, bytes] = {}
        self._due: deque[tuple[float, int, bytes]] = deque()
        """Replies in the order of their time: the latency is the same for all."""

    def serve(self) -> None:
        """Serve until standard input ends."""
        poller = select.epoll()
        end = sys.stdin.fileno()
        for number in (self._listening.fileno(), end):
            poller.register(number, select.EPOLLIN)
        while True:
            for number, _ in poller.poll(max(self._due[0][0] - time.monotonic(), 0.0) if self._due else None):
                if number in self._open:
                    self._read(number)
                elif number == end:
                    return
                else:
                    made, _ = self._listening.accept()
                    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._open[made.fileno()] = made
                    self.connections += 1
                    poller.register(made.fileno(), select.EPOLLIN)
            while self._due and self._due[0][0] <= time.monotonic():
                _, number, reply = self._due.popleft()
                self._write(number, reply)

    def _read(self, number: int) -> None:
        try:
            data = self._open[number].recv(65536)
        except OSError:
            data = b""
        if not data:
            return self._close(number)
        if self._partial:
            data = self._partial.pop(number, b"") + data
        while data:
            end = data.find(b"\r\n\r\n") + 4
            length = LENGTH.search(data, 0, end) if end > 3 else None
            size = end + (int(length[1]) if length else 0)
            if end < 4 or len(data) < size:
                self._partial[number] = data
                return None
            self._answer(number, data[: data.index(b"\r\n")])
            data = data[size:]
        return None

    def _answer(self, number: int, line: bytes) -> None:
        if b"/connections" in line:
            return self._write(number, _reply({"connections": self.connections}))
        reply = STORED if b"/remember" in line or b"/upsert" in line else WHO if b"/ping" in line else RECALLED
        if not self.latency:
            return self._write(number, reply)
        return self._due.append((time.monotonic() + self.latency, number, reply))

    def _write(self, number: int, reply: bytes) -> None:
        try:
            self._open[number].sendall(reply)
        except (KeyError, OSError):  # the client has gone, or will be seen to have
            return

    def _close(self, number: int) -> None:
        self._partial.pop(number, None)
        self._due = deque(entry for entry in self._due if entry[1] != number)  # its number may come back
        self._open.pop(number).close()


@contextmanager
def stub(latency_ms: float = 0.0) -> Iterator[str]:
    """The url of a stub that runs in its own process."""
    command = [sys.executable, "-m", "tests.benchmarks.stub", str(latency_ms)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()
            process.terminate()


if __name__ == "__main__":
    service = Stub(float(sys.argv[1]) / 1000)
    print(service.port, flush=True)
    service.serve()
