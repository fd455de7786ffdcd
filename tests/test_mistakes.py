"""Likely mistakes, one a row: the mistake, the words that name it and its fix, and how it ends.

Python rows end with an error of the named class, command rows with an exit code; none with a traceback of the command.
"""

from __future__ import annotations

import builtins
import importlib
import logging
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest

import kronmem
from kronmem import Client
from kronmem.transport.drive import loop_guard
from tests.services import KronvexServer

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
    ("AgentMemory(AsyncClient(), 'a')", "takes one Client, not AsyncClient: client.agent('my-agent')", "ConfigError"),
    ("AsyncAgentMemory(Client(), 'a')", "takes one AsyncClient, not Client", "ConfigError"),
    ("AgentMemory('a', Client())", "takes one Client, not str", "ConfigError"),
    ("Client().recall(Client().agent('a'), 'x')", "use its .agent_id", "InvalidInputError"),
    ("pack('autogen').attach_memory(Client(), [])", "Client(…).agent('my-agent'), not Client", "ConfigError"),
    ("pack('autogen').persisted_chat(Client(), 'k', a, a).__enter__()", "Client(…).state('my-agent')", "ConfigError"),
    ("pack('agentchat').KronMemory('a', client=Client())", "client must be an AsyncClient", "ConfigError"),
    ("pack('agentchat').KronMemory(Client().agent('a'))", "the id of an agent, not its memory", "ConfigError"),
    # names
    ("pack('autogen').save_chat", "removed in 0.3: use persisted_chat", "ImportError"),
    ("pack('autogen').prime", "use MemoryAgent(…, memory_query=…)", "ImportError"),
    ("kronmem.register_memory", "from kronmem.autogen import register_memory", "ImportError"),
    ("kronmem.KronMemory", "from kronmem.agentchat import KronMemory", "ImportError"),
    ("missing('autogen')", 'Run: pip install "autogen[openai]>=0.14.1,<1"', "ImportError"),
    ("missing('ag2')", "pip install 'kronmem[ag2]'", "ImportError"),
    ("Client().add('a', 'x')", "use .remember(…)", "AttributeError"),
    ("Client().agent('a').search('x')", "use .recall(…)", "AttributeError"),
    ("Client().get_all('a')", "use .memories(…)", "AttributeError"),
    ("AsyncClient().aclose()", "use .close(…)", "AttributeError"),
    ("Hit(memory=Memory(id='7', agent_id='a', content='x')).text", "use .content", "AttributeError"),
    ("Hit(memory=Memory(id='7', agent_id='a', content='x')).tags", "use .memory.tags", "AttributeError"),
    # arguments, and their order
    (
        "Client().remember('User prefers tea', 'preference')",
        "takes remember(agent_id, text, memory_type), client.agent(id) takes remember(text, memory_type)",
        "InvalidInputError",
    ),
    ("Client().agent('a').remember('fact', 'Likes tea')", "the name of a memory type", "InvalidInputError"),
    ("Client().remember_many('a', ['decision'])", "the name of a memory type", "InvalidInputError"),
    ("Client().recall('what does Ada drink?', 'a')", "take the agent_id before the text", "InvalidInputError"),
    ("Client().agent('a').recall('a', 'tea?')", "client.agent(id) takes recall(query, limit)", "InvalidInputError"),
    ("Client().recall('a', 'x', 'fact')", "a type goes in as memory_type=", "InvalidInputError"),
    ("Client().recall('a', 'x', limit='5')", "must be a whole number, not str: limit=5", "InvalidInputError"),
    ("Client().forget('a', Memory(id='7', agent_id='a', content='x'))", "use its .id", "InvalidInputError"),
    ("Client().remember('a', 7)", "content must be a string, not int: use str(…)", "InvalidInputError"),
    ("Client().remember('a', b'tea')", "not bytes: use .decode()", "InvalidInputError"),
    ("Client().remember('a', 'x', metadata='m')", 'a mapping such as {"source": "chat"}', "InvalidInputError"),
    ("Client().remember('a', {'city': 'Rome'})", "json.dumps(…), or beside a text as metadata=", "InvalidInputError"),
    ("Client().remember('a', '  ')", "content must not be empty", "InvalidInputError"),
    ("Client().remember('a', 'x', tags='home')", "tags=['home']", "InvalidInputError"),
    ("Client().remember('a', 'x', ttl_days=0)", "must be from 1 to 3650", "InvalidInputError"),
    ("Client().restore('a', [Memory(id='7', agent_id='a', content='x')])", "must be a UUID", "InvalidInputError"),
    ("Client().state('a').update('k', 7)", "state.set takes a value", "InvalidInputError"),
    ("Client().remember('a', 'x', role='bot')", "one of user, assistant, tool or None", "InvalidInputError"),
    ("Client().remember('a', 'x', memory_id='1')", "must be a UUID such as", "InvalidInputError"),
    ("Client().remember('a', 'x', metadata={'f': open})", "make it text, as str(…) does", "InvalidInputError"),
    ("Client().remember_many('a', 'text')", "put it into [ ]", "InvalidInputError"),
    ("Client().recall('a', 'x', limit=500)", "must be from 1 to 100", "InvalidInputError"),
    ("Client().recall('a', 'x', threshold=75)", "from 0 to 1", "InvalidInputError"),
    ("Client().recall('a', 'x', since='last week')", "ISO 8601 such as 2026-11-16T12:00:00Z", "InvalidInputError"),
    ("Client().update('a', 'some-id')", "content, memory_type, tags, metadata, pinned", "InvalidInputError"),
    ("Client('http://127.0.0.1:9', outbox=False).remember_later('a', 'x')", "outbox=False", "ConfigError"),
    ("Client('https://api.kronvex.io', api_key='kv-1').state('a')", "pass state_url=", "ConfigError"),
    # services
    ("served(api_key='kv-1').recall('a', 'x')", "Pass the service's key as api_key=", "AuthError"),
    ("served('/api/v1', None).recall('a', 'x')", "the url has no path of the API", "NotFoundError"),
    ("served().update('a', UUID, content='x')", "needs a kronmem service of version 0.2 or newer", "UnsupportedError"),
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
    ("recall tea -a a --agnt b", "--agent", 2),
    ("remember tea -a a --url http://127.0.0.1:9", "Queued until the service is back", 3),
    ("remember two words -a a", "A text of several words needs quotes", 2),
    ("--agent a list", "kronmem list --agent team", 2),
    ("search tea -a a", "Did you mean 'kronmem recall'?", 2),
    ("forget 123 -a team", "`kronmem list --agent team` shows the ids", 1),
    ("serve --db /", "/ is a directory: --db /memory.db", 2),
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
    ("rember tea", "Did you mean 'remember'?", 2),
]


def closed() -> Client:
    client = Client()
    client.close()
    return client


def pack(name: str) -> Any:
    """A pack whose framework is installed."""
    pytest.importorskip({"agentchat": "autogen_agentchat"}.get(name, name))
    return importlib.import_module(f"kronmem.{name}")


def missing(name: str) -> None:
    """A pack without its framework."""
    code = f"import sys; sys.modules[{name!r}] = None; import kronmem.{name}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    raise ImportError(ran.stderr.splitlines()[-1])


@pytest.mark.parametrize(("mistake", "message", "error"), PYTHON, ids=[row[0] for row in PYTHON])
def test_a_mistake_in_python_names_itself_and_its_fix(mistake: str, message: str, error: str) -> None:
    names: dict[str, Any] = {name: getattr(kronmem, name) for name in kronmem._WHERE}
    not_awaited = kronmem.AsyncClient().recall("a", "x")
    with ExitStack() as stack:

        def served(path: str = "", api_key: str | None = "") -> Client:
            server = stack.enter_context(KronvexServer())
            return stack.enter_context(Client(server.url + path, api_key=api_key or server.key))

        helpers = {"closed": closed, "missing": missing, "pack": pack, "served": served, "UUID": str(uuid4())}
        others = {"anyio": anyio, "kronmem": kronmem, "a": None, "not_awaited": not_awaited}
        with pytest.raises(names.get(error) or getattr(builtins, error)) as raised:
            eval(mistake, {**names, **helpers, **others})
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
    assert message in " ".join(ended.output.replace("│", " ").split())
    assert "Traceback" not in ended.output


def test_there_are_at_least_60_of_them() -> None:
    assert len(PYTHON) + len(COMMANDS) >= 60


def test_a_misspelt_type_is_kept_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    with Client() as client, caplog.at_level(logging.WARNING, "kronmem"):
        for _ in range(2):
            assert client.remember("a", "Likes tea", "preferrence").memory_type == "preferrence"
        client.remember("a", "Likes coffee", "taste")
    assert [one.message for one in caplog.records] == [
        "memory_type 'preferrence' is a type of your own: did you mean 'preference'?"
    ]


def test_the_error_of_many_calls_names_where_the_others_are() -> None:
    with Client("http://127.0.0.1:9", retry=kronmem.Retry(attempts=1)) as client:
        with pytest.raises(kronmem.FanOutError) as raised:
            client.recall_many("a", ["tea", "coffee"])
    assert str(raised.value).endswith(".partial has 0, .causes has 2")


@pytest.mark.slow  # it imports AutoGen in a process of its own
def test_doctor_names_a_misspelt_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.cli.running import run

    monkeypatch.setenv("KRONMEM_URI", "http://127.0.0.1:9")
    assert 'if KRONMEM_URL is meant: export KRONMEM_URL="$KRONMEM_URI"' in run("doctor").output


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
    monkeypatch.setattr(loop_guard, "warned", False)

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
