"""Likely mistakes, one a row: the mistake, the words that name it and its fix, and how it ends.

Python rows end with an error of the named class, command rows with an exit code; none with a traceback of the command.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

import kronmem
from kronmem import Client
from kronmem.transport.drive import loop_guard

PYTHON = [
    # where and with which key
    ("Client('localhost:7070')", "did you mean http://localhost:7070?", "ConfigError"),
    ("Client('memory.example.com')", "did you mean https://memory.example.com?", "ConfigError"),
    ("Client('memory.db')", "for a file write sqlite:///memory.db or pass Path('memory.db')", "ConfigError"),
    ("Client('/var/lib/memory.db')", "for a file write sqlite:////var/lib/memory.db", "ConfigError"),
    ("Client('sqlite://memory.db')", "write sqlite:///path/file.db, with three slashes", "ConfigError"),
    ("Client('mysql://root:hunter2@db/x')", "must start with http://, https://, sqlite://", "ConfigError"),
    ("Client('kv-1234')", "this looks like a key: pass it as api_key=", "ConfigError"),
    ("Client(api_key='kv-1234')", 'Client("https://api.kronvex.io", api_key=…)', "ConfigError"),
    ("Client('https://api.kronvex.io')", "Kronvex needs a key: pass api_key= or set KRONVEX_API_KEY", "ConfigError"),
    ("Client('https://ada:pw@host')", "pass the key as api_key= or in the environment", "ConfigError"),
    ("Client(7070)", "the url must be a string or a Path, not int", "ConfigError"),
    ("Client(timeout='10')", "timeout must be a number of seconds", "ConfigError"),
    ("Client(retry=3)", "Client(retry=Retry(attempts=3))", "ConfigError"),
    ("Client(embed='bert')", 'embed= takes "minilm" or a function', "ConfigError"),
    ("Client(redact='secrets')", "such as kronmem.redact_secrets", "ConfigError"),
    ("Client('http://127.0.0.1:9').recall('a', 'x')", "Is the service running?", "TransportError"),
    ("Client('sqlite:////proc/none/m.db').recall('a', 'x')", "that you may write to: KRONMEM_HOME", "StoreError"),
    # whose memory
    ("memory_tools(Client())", "client.agent('my-agent'), not Client", "ConfigError"),
    ("AgentMemory(Client(), 'a').update_context", "KronMemory('my-agent') of kronmem.agentchat", "AttributeError"),
    ("memory_tools(Client().agent('a'), prefix='team')", "prefix must end with _: 'team_'", "InvalidInputError"),
    ("memory_tools(Client().agent('a'), only='recall')", "a list of names of tools", "InvalidInputError"),
    ("Client().agent('')", "must not be empty", "InvalidInputError"),
    ("Client().agent('user/7')", "must not contain /", "InvalidInputError"),
    ("Client().recall(Client(), 'x')", "use client.agent('my-agent')", "InvalidInputError"),
    # arguments
    ("Client().remember('a', {'city': 'Rome'})", "json.dumps(…), or beside a text as metadata=", "InvalidInputError"),
    ("Client().remember('a', '  ')", "content must not be empty", "InvalidInputError"),
    ("Client().remember('a', 'x', tags='home')", "tags=['home']", "InvalidInputError"),
    ("Client().remember('a', 'x', ttl_days=0)", "must be from 1 to 3650", "InvalidInputError"),
    ("Client().remember('a', 'x', metadata={'n': 10**5000})", "a whole number that is too large", "InvalidInputError"),
    ("Client().remember('a', 'x', role={'n': 10**5000})", "one of user, assistant, tool or None", "InvalidInputError"),
    ("Client().restore('a', 7)", "a list of memories, not int", "InvalidInputError"),
    ("Client().restore('a', [Memory(id='7', agent_id='a', content='x')])", "must be a UUID", "InvalidInputError"),
    ("Client().restore('a', ['x'])", "a list of Memory, as client.memories() gives them", "InvalidInputError"),
    ("Client().state('a').update('k', 7)", "state.set takes a value", "InvalidInputError"),
    ("Client().outbox.flush('5')", "timeout must be a number of seconds", "InvalidInputError"),
    (
        "Client(redact=lambda text: '').remember_later('a', 'x')",
        "redacted content must not be empty",
        "InvalidInputError",
    ),
    (
        "Client(redact=lambda text: '\\0').recall('a', 'x')",
        "redact= returned must not contain NUL",
        "InvalidInputError",
    ),
    ("Client().remember('a', 'x', role='bot')", "one of user, assistant, tool or None", "InvalidInputError"),
    ("Client().remember('a', 'x', memory_id='1')", "must be a UUID such as", "InvalidInputError"),
    ("Client().remember('a', 'x', metadata={'f': open})", "must be plain JSON", "InvalidInputError"),
    ("Client().remember_many('a', 'text')", "put it into [ ]", "InvalidInputError"),
    ("Client().recall('a', 'x', limit=500)", "must be from 1 to 100", "InvalidInputError"),
    ("Client().recall('a', 'x', threshold=75)", "from 0 to 1", "InvalidInputError"),
    ("Client().recall('a', 'x', since='last week')", "ISO 8601 such as 2026-11-16T12:00:00Z", "InvalidInputError"),
    ("Client().update('a', 'some-id')", "content, memory_type, tags, metadata, pinned", "InvalidInputError"),
    ("Client('http://127.0.0.1:9', outbox=False).remember_later('a', 'x')", "outbox=False", "ConfigError"),
    ("Client('https://api.kronvex.io', api_key='kv-1').state('a')", "pass state_url=", "ConfigError"),
    # shells
    ("closed().recall('a', 'x')", "make a new one, or make its calls before close()", "ConfigError"),
    ("Client().remember('a', not_awaited)", "is an `await` missing?", "InvalidInputError"),
    ("list(AsyncClient().memories('a'))", "needs `async for`, or Client", "ConfigError"),
    ("AsyncClient().__enter__()", "needs `async with`", "ConfigError"),
    ("anyio.run(Client().__aenter__)", "needs a plain `with`; to await its calls use AsyncClient", "ConfigError"),
]
COMMANDS = [
    ("recall tea", "Missing option '--agent'", 2),
    ("recall tea -a ../other", "must not contain /", 2),
    ("recall tea -a a --url localhost:7070", "did you mean http://localhost:7070?", 2),
    ("recall tea -a a --url http://127.0.0.1:9", "Is the service running?", 1),
    ("recall tea -a a --since yesterday", "ISO 8601 such as", 2),
    ("remember tea -a a --url http://127.0.0.1:9", "", 3),
    ("remember tea -a a --metadata {", "--metadata is not JSON", 2),
    ("remember tea -a a --metadata []", "must be a JSON object such as", 2),
    ("clear -a a", "stdin is not a terminal; pass --yes", 2),
    ("erase -a a", "stdin is not a terminal; pass --yes", 2),
    ("forget 123 -a tema", "Did you mean team?", 1),
    ("list -a tema", "Did you mean team?", 0),
    ("state set k dark -a a", "text needs quotes of its own", 2),
    ("outbox adopt", "pass --url http(s)://service", 2),
    ("import /no/such/file", "cannot read /no/such/file", 2),
    ("export -o /no/such/file", "cannot write /no/such/file", 2),
    ("serve --host 0.0.0.0", "--key", 2),
    ("doctor --url x --db y", "give one of them", 2),
    ("rember tea", "No such command", 2),
]


def closed() -> Client:
    client = Client()
    client.close()
    return client


@pytest.mark.parametrize(("mistake", "message", "error"), PYTHON, ids=[row[0] for row in PYTHON])
def test_a_mistake_in_python_names_itself_and_its_fix(mistake: str, message: str, error: str) -> None:
    names: dict[str, Any] = {name: getattr(kronmem, name) for name in kronmem.__all__}
    not_awaited = kronmem.AsyncClient().recall("a", "x")
    with pytest.raises(names.get(error, AttributeError)) as raised:
        eval(mistake, {**names, "closed": closed, "anyio": anyio, "not_awaited": not_awaited})
    not_awaited.close()
    assert message in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert "kv-1234" not in str(raised.value)


@pytest.mark.parametrize(("mistake", "message", "code"), COMMANDS, ids=[row[0] for row in COMMANDS])
def test_a_mistake_at_the_command_line_names_itself_and_its_fix(mistake: str, message: str, code: int) -> None:
    pytest.importorskip("typer")
    from tests.cli.running import run

    with Client() as client:
        client.remember("team", "tea at five")
    ended = run(*mistake.split())
    assert ended.exit_code == code, ended.output
    assert message in " ".join(ended.stderr.replace("│", " ").split())
    assert "Traceback" not in ended.output


def test_there_are_at_least_45_of_them() -> None:
    assert len(PYTHON) + len(COMMANDS) >= 45


def test_a_path_is_an_embedded_database(tmp_path: Path) -> None:
    path = tmp_path / "a directory with % and #" / "memory.db"
    path.parent.mkdir()
    with Client(path) as client:
        client.remember("a", "tea at five")
    assert path.exists()
    with Client.local(path) as client:
        assert [one.content for one in client.memories("a")] == ["tea at five"]


def test_a_blocking_call_inside_a_running_loop_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_guard, "told", False)

    async def mistaken() -> None:
        with Client() as client:
            for _ in range(2):
                client.recall("a", "x")

    with caplog.at_level(logging.WARNING, "kronmem"):
        anyio.run(mistaken)
    (record,) = [one for one in caplog.records if "event loop" in one.message]
    assert "use AsyncClient and await it" in record.message


def test_a_call_that_was_not_awaited_is_named_by_python() -> None:
    code = "from kronmem import AsyncClient; AsyncClient().remember('a', 'x')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "coroutine 'AsyncClient.remember' was never awaited" in ran.stderr
