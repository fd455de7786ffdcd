"""`kronmem serve` as it is typed: its first line, its log, its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from kronmem import Client
from kronmem.cli.app import app

ROOT = Path(__file__).parent.parent.parent


@contextmanager
def serving(*words: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "kronmem", "serve", "--port", "0", *words]
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
        httpx.get(
            f"{said['url']}/v1/memory/recall?q=launch+codes", headers={"Authorization": "Bearer kv-bob"}, timeout=60
        )
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "POST /api/v1/agents/team/remember 201" in log
    assert "GET /v1/memory/recall 200" in log
    for secret in ("blue folder", "launch", "kv-ada", "kv-bob"):
        assert secret not in log


def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = CliRunner().invoke(app, ["serve", "--quiet", "--db", str(tmp_path / "m.db"), "--port", port])
    assert ended.exit_code == 2
    assert ended.stderr == f"kronmem: cannot listen on 127.0.0.1:{port}: Address already in use\n"


def answers(url: str, key: str) -> int:
    return httpx.get(f"{url}/api/v1/agents", headers={"X-API-Key": key}, trust_env=False, timeout=60).status_code


@pytest.mark.slow
def test_a_key_on_the_command_line_is_warned_about(tmp_path: Path) -> None:
    words = ("--json", "--quiet", "--db", str(tmp_path / "m.db"), "--key=kv-bare", "--keys", "ada:kv-ada")
    with serving(*words) as process:
        assert process.stdout
        url = json.loads(process.stdout.readline())["url"]
        assert (answers(url, "kv-bare"), answers(url, "kv-ada"), answers(url, "kv-none")) == (200, 200, 401)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=20)
    assert "KRONMEM_SERVE_KEY, --keys-file" in said
    assert "kv-" not in said


@pytest.mark.slow
def test_keys_come_from_the_environment_and_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# rotated in March\nada:kv-ada\n\nkv-file\n")
    file.chmod(0o600)
    words = ("--json", "--quiet", "--db", str(tmp_path / "m.db"), "--keys-file", str(file))
    with serving(*words, KRONMEM_SERVE_KEY="kv-bare") as process:
        assert process.stdout
        url = json.loads(process.stdout.readline())["url"]
        found = [answers(url, key) for key in ("kv-bare", "kv-ada", "kv-file", "kv-none", "ada:kv-ada")]
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=20)[1] == ""
    assert found == [200, 200, 200, 401, 401]


@pytest.mark.slow
def test_a_key_of_a_file_is_revoked_and_added_without_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("ada:kv-ada\nbob:kv-bob\n")
    file.chmod(0o600)
    words = ("--json", "--quiet", "--db", str(tmp_path / "m.db"), "--keys-file", str(file))
    with serving(*words, KRONMEM_SERVE_KEY="kv-bare") as process:
        assert process.stdout
        url = json.loads(process.stdout.readline())["url"]
        found: list[list[int]] = []
        for text in (None, "bob:kv-bob\neve:kv-eve\n", "", "se cret\n", "ada:kv-ada\n"):
            if text is not None:
                file.write_text(text)
            found.append([answers(url, key) for key in ("kv-bare", "kv-ada", "kv-bob", "kv-eve")])
        process.send_signal(signal.SIGTERM)
        assert "se cret" not in process.communicate(timeout=20)[1]
    none = [200, 401, 401, 401]
    assert found == [[200, 200, 200, 401], [200, 401, 200, 200], none, none, [200, 200, 401, 401]]


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), ("", "there is no key"), ("a b:x", "name:key"), ("se cret", "characters that no key has")],
)
def test_a_file_of_keys_that_cannot_be_used_is_one_sentence(content: str | None, said: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "keys").write_text(content)
    words = ["serve", "--quiet", "--db", str(tmp_path / "m.db"), "--port", "0", "--keys-file", str(tmp_path / "keys")]
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 2
    assert said in ended.stderr
    assert "se cret" not in ended.stderr


@pytest.mark.slow
def test_for_people_it_is_one_line_and_ctrl_c_ends_it_well(tmp_path: Path) -> None:
    with serving("--quiet", "--db", str(tmp_path / "m.db")) as process:
        assert process.stdout
        line = process.stdout.readline()
        assert line.startswith(f"kronmem serves {tmp_path}/m.db at http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20) == ("", "")
        assert process.returncode == 0


@pytest.mark.slow
def test_two_servers_on_one_postgresql_are_one_memory(postgres: str) -> None:
    with serving("--json", "--db", postgres) as one, serving("--json", "--db", postgres) as two:
        assert one.stdout
        assert two.stdout
        first, second = json.loads(one.stdout.readline()), json.loads(two.stdout.readline())
        with Client(first["url"], outbox=False) as client:
            client.remember("team", "Written through the first server")
        with Client(second["url"], outbox=False) as client:
            assert [memory.content for memory in client.memories("team")] == ["Written through the first server"]
            client.clear("team")
