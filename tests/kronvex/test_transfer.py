"""Export, import and doctor at a server where names are not unique and superseded rows are listed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from kronmem import AuthError
from kronmem.cli.app import app
from kronmem.cli.connection import reported
from tests.kronvex.stores import START, mark, row
from tests.services import KronvexServer
from tests.services.rows import Agent


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[KronvexServer]:
    with KronvexServer() as server:
        monkeypatch.setenv("KRONMEM_API_KEY", server.key)
        yield server


def run(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(words), input=stdin)


def lines(result: Result) -> list[Any]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def agent(server: KronvexServer, name: str) -> Agent:
    made = Agent(name, server.key, START + timedelta(days=len(server.agents)))
    server.agents.append(made)
    return made


def test_agents_are_exported_by_id_and_written_by_name(server: KronvexServer) -> None:
    for number, name in enumerate(("twin", "twin", "Sales/EU 50%")):
        row(agent(server, name), f"{number} thing{number}")
    found = [one for one in lines(run("export", "--url", server.url)) if "content" in one]
    assert sorted((one["agent_id"], one["content"]) for one in found) == [
        ("Sales/EU 50%", "2 thing2"),
        ("twin", "0 thing0"),
        ("twin", "1 thing1"),
    ]


def test_a_name_that_cannot_be_typed_is_imported_into_the_agent_of_that_name(server: KronvexServer) -> None:
    text = json.dumps({"agent_id": "Sales/EU 50%", "content": "alpha bravo"})
    ended = run("import", "--url", server.url, stdin=text)
    assert (ended.exit_code, "pass --agent" in ended.stderr) == (2, True)
    sales = agent(server, "Sales/EU 50%")
    assert run("import", "--url", server.url, stdin=text).stdout == "Imported 1.\n"
    assert [one.content for one in sales.rows] == ["alpha bravo"]


def test_what_was_superseded_is_not_alive_after_an_import(server: KronvexServer) -> None:
    alice = agent(server, "alice")
    row(alice, "The user lives in Paris", superseded_by="x")
    row(alice, "The user lives in Berlin")
    backup = run("export", "--url", server.url).stdout
    alice.rows.clear()
    ended = run("import", "--url", server.url, stdin=backup)
    assert (ended.exit_code, ended.stdout) == (1, "Imported 1, 1 refused.\n")
    assert "1 former texts were not imported: this service keeps no history" in ended.stderr
    assert [one.content for one in alice.rows] == ["The user lives in Berlin"]


def test_the_counts_of_an_import_add_up_to_its_lines_and_are_true(server: KronvexServer) -> None:
    alice = agent(server, "alice")
    row(alice, "stored by somebody else", session_id="theirs")
    row(alice, "ours already, with a dot.", metadata=mark("k1"))
    wanted = [
        {"content": "stored by somebody else", "session_id": "ours"},
        {"content": "Ours already with a dot"},
        {"content": "alpha bravo", "session_id": "one"},
        {"content": "alpha bravo", "session_id": "two"},
        {"content": "alpha bravo", "session_id": "one"},
        {"content": "alpha bravo"},
        {"content": "over", "expires_at": "2020-01-01T00:00:00Z"},
    ]
    stdin = "".join(json.dumps({"agent_id": "alice", **one}) + "\n" for one in wanted)
    ended = run("import", "--json", "--url", server.url, stdin=stdin)
    assert ended.exit_code == 1
    assert "'stored by somebody else'" in ended.stderr
    assert "'alpha bravo'" in ended.stderr
    counts = json.loads(ended.stdout)
    assert counts == {"imported": 2, "already_there": 2, "expired": 1, "refused": 2, "state": 0}
    assert len(alice.kept()) == 2 + counts["imported"]


@pytest.mark.slow  # doctor imports every framework there is
def test_doctor_names_the_empty_agents_that_a_race_left(server: KronvexServer) -> None:
    first, second = agent(server, "twin"), agent(server, "twin")
    row(first, "alpha bravo")
    said = run("doctor", "--url", server.url).stdout
    assert f"2 are named 'twin'; the oldest is used; empty: {second.id}" in said


@pytest.mark.parametrize(
    ("url", "environment", "variable"),
    [
        ("https://api.kronvex.io", {"KRONVEX_API_KEY": "kv-x"}, "KRONVEX_API_KEY"),
        (None, {"KRONVEX_API_KEY": "kv-x"}, "KRONVEX_API_KEY"),
        ("http://127.0.0.1:9", {"KRONMEM_API_KEY": "kv-x", "KRONVEX_API_KEY": "kv-x"}, "KRONMEM_API_KEY"),
        (None, {"KRONMEM_URL": "http://127.0.0.1:9", "KRONMEM_API_KEY": "kv-x"}, "KRONMEM_API_KEY"),
    ],
)
def test_a_refused_key_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    url: str | None,
    environment: dict[str, str],
    variable: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BaseException, match="1"), reported(url):
        raise AuthError("Invalid or revoked API key.", status=401)
    assert f"The key in {variable} is not the right one" in capsys.readouterr().err


def test_a_description_is_imported_beside_the_mark_of_kronmem(server: KronvexServer) -> None:
    ada = agent(server, "ada")
    ada.metadata = mark = {"kronmem": {"name": "ada"}}
    line = {"agent_id": "ada", "description": None, "agent_metadata": {"team": 7}}
    assert run("import", "--url", server.url, stdin=json.dumps(line)).exit_code == 0
    assert ada.metadata == {"team": 7, **mark}
    assert [one for one in lines(run("export", "--url", server.url)) if "agent_metadata" in one] == [line]
    assert len(server.agents) == 1


def test_a_description_that_the_server_ignores_is_refused_and_the_rest_is_imported(server: KronvexServer) -> None:
    text = [
        {"agent_id": "ada", "content": "alpha bravo"},
        {"agent_id": "ada", "description": "hers", "agent_metadata": {"team": 7}},
    ]
    ended = run("import", "--url", server.url, stdin="\n".join(map(json.dumps, text)))
    assert (ended.exit_code, ended.stdout) == (1, "Imported 1, 1 refused.\n")
    assert "the service ignores the description of an agent; the metadata is stored" in ended.stderr
    assert server.agents[0].metadata == {"team": 7}


def test_an_agent_beyond_the_plan_is_refused_and_the_rest_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    text = [{"agent_id": "ada", "content": "alpha bravo"}, {"agent_id": "zoe", "agent_metadata": {"team": 7}}]
    with KronvexServer(plan="demo") as server:
        monkeypatch.setenv("KRONMEM_API_KEY", server.key)
        ended = run("import", "--url", server.url, stdin="\n".join(map(json.dumps, text)))
    assert (ended.exit_code, ended.stdout) == (1, "Imported 1, 1 refused.\n")
    assert "the description of zoe was not imported" in ended.stderr
