"""`kronmem serve` as it is typed: its first line, its log, its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from kronmem import Client

ROOT = Path(__file__).parent.parent.parent


@contextmanager
def serving(*words: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "kronmem.cli", "serve", "--port", "0", *words]
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.kill()


def test_it_says_where_it_is_logs_without_contents_and_stops_quietly(tmp_path: Path) -> None:
    keys = {"KRONMEM_SERVE_KEYS": "ada:kv-ada,bob:kv-bob"}
    with serving("--json", "--agent", "team", "--db", str(tmp_path / "m.db"), **keys) as process:
        assert process.stdout
        said = json.loads(process.stdout.readline())
        assert said["page"] == f"{said['url']}/#agent=team"
        with Client(said["url"], api_key="kv-ada", outbox=False) as client:
            client.remember("team", "Launch codes are in the blue folder")
            assert client.recall("team", "where are the launch codes?")
        httpx.get(f"{said['url']}/v1/memory/recall?q=launch+codes", headers={"Authorization": "Bearer kv-bob"})
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "POST /api/v1/agents/team/remember 201" in log
    assert "GET /v1/memory/recall 200" in log
    for secret in ("blue folder", "launch", "kv-ada", "kv-bob"):
        assert secret not in log


def test_a_port_that_is_taken_and_a_missing_key_are_one_sentence_each(tmp_path: Path) -> None:
    with serving("--quiet", "--db", str(tmp_path / "m.db")) as process:
        assert process.stdout
        line = process.stdout.readline()
        assert line.startswith(f"kronmem serves {tmp_path}/m.db at http://127.0.0.1:")
        port = line.split("127.0.0.1:")[1].split("/")[0]
        command = [sys.executable, "-m", "kronmem.cli", "serve", "--db", str(tmp_path / "n.db")]
        taken = subprocess.run(
            [*command, "--port", port], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        assert taken.returncode == 2
        assert taken.stderr == f"kronmem: cannot listen on 127.0.0.1:{port}: Address already in use\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
