"""A fast stand-in for a memory service, in a process of its own: `python -m tests.benchmarks.stub LATENCY_MS`.

It answers any of the libraries' calls with a reply of the usual size, after the latency it was told.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
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


class Stub(asyncio.Protocol):
    """One connection: reads a request, answers it later."""

    latency = 0.0
    connections = 0

    def __init__(self) -> None:
        self.data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        Stub.connections += 1

    def data_received(self, data: bytes) -> None:
        self.data += data
        while (end := self.data.find(b"\r\n\r\n")) >= 0:
            head = self.data[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.data) < end + 4 + length:
                return
            self.data = self.data[end + 4 + length :]
            self._answer(head)

    def _answer(self, head: bytes) -> None:
        if head.startswith(b"get /connections"):
            self.transport.write(_reply({"connections": Stub.connections}))
            return
        path = head.partition(b"\r\n")[0]
        reply = STORED if b"/remember" in path or b"/upsert" in path else WHO if b"/ping" in path else RECALLED
        if self.latency:
            asyncio.get_running_loop().call_later(self.latency, self._write, reply)
        else:
            self._write(reply)

    def _write(self, reply: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(reply)


async def serve(latency: float) -> None:
    """Serve until standard input ends."""
    Stub.latency = latency
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Stub, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


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
    asyncio.run(serve(float(sys.argv[1]) / 1000))
