"""`kronmem doctor --db`: a database looked at before a server runs on it, and left as it was."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from kronmem import Client
from kronmem.cli.app import app
from kronmem.engine.sqlite import schema
from tests.services.postgres import at, own

SECRET = "not-to-be-seen"


def doctor(*arguments: str) -> tuple[int, dict[str, Any], str]:
    ended = CliRunner().invoke(app, ["doctor", "--json", *arguments])
    said = json.loads(ended.stdout)["checks"] if ended.stdout else []
    return ended.exit_code, {one["check"]: one for one in said}, ended.output


@pytest.fixture
def sql(database: str) -> Iterator[Any]:
    import psycopg

    with psycopg.connect(database, autocommit=True) as connection:
        yield lambda text: connection.execute(text.encode())


@pytest.fixture
def role(database: str, sql: Any) -> Iterator[str]:
    """The url of the database for a role without any rights."""
    name = own("kronmem_guest")
    sql(f"CREATE ROLE {name} LOGIN PASSWORD '{SECRET}'")
    yield at(database, urlsplit(database).path.lstrip("/"), f"{name}:{SECRET}")
    sql(f"DROP OWNED BY {name}")
    sql(f"DROP ROLE {name}")


def test_an_empty_database_is_fit_and_stays_empty(database: str, sql: Any) -> None:
    code, said, _ = doctor("--db", database)
    assert code == 0
    assert said["database"]["detail"].startswith("PostgreSQL ")
    assert "the first use makes them" in said["tables"]["detail"]
    assert "agents" not in said
    assert sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'kronmem'").fetchone() == (0,)


def test_a_database_in_use_says_what_is_in_it(database: str) -> None:
    with Client(database) as client:
        client.remember("team", "The harbour opens at six")
    code, said, _ = doctor("--db", database)
    assert code == 0
    assert said["tables"]["detail"] == "schema version 2, as this kronmem wants it"
    assert said["rights"]["detail"] == "this role may read and write"
    assert said["agents"]["detail"] == "1 with 1 memories"
    assert said["memory"]["detail"].endswith("(from --db)")
    assert doctor("--url", database)[1]["memory"]["detail"].endswith("(from --url)")


def test_what_a_role_may_not_do_is_said_with_what_to_grant(database: str, role: str, sql: Any) -> None:
    code, said, output = doctor("--db", role)
    assert (code, said["tables"]["ok"]) == (1, False)
    assert "GRANT CREATE ON DATABASE" in said["tables"]["detail"]
    assert SECRET not in output

    with Client(database) as client:
        client.remember("team", "The harbour opens at six")
    assert "GRANT USAGE ON SCHEMA kronmem" in doctor("--db", role)[1]["tables"]["detail"]

    name = own("kronmem_guest")
    sql(f"GRANT USAGE ON SCHEMA kronmem TO {name}")
    sql(f"GRANT SELECT ON kronmem.version TO {name}")
    code, said, _ = doctor("--db", role)
    assert (code, said["rights"]["ok"]) == (1, False)
    assert "memories, postings" in said["rights"]["detail"]

    sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA kronmem TO {name}")
    code, said, _ = doctor("--db", role)
    assert code == 0
    assert "recall works, storing does not" in said["rights"]["detail"]
    assert said["agents"]["detail"] == "1 with 1 memories"


def test_tables_of_a_newer_kronmem_are_bad(database: str, sql: Any) -> None:
    with Client(database) as client:
        client.remember("team", "The harbour opens at six")
    sql("UPDATE kronmem.version SET number = 99")
    code, said, _ = doctor("--db", database)
    assert (code, said["tables"]["ok"]) == (1, False)
    assert "newer kronmem" in said["tables"]["detail"]
    assert "agents" not in said


def test_the_second_of_two_hosts_answers_when_the_first_does_not(postgres_server: str, database: str) -> None:
    if "?host=" not in database:
        pytest.skip("needs a server on a socket")
    folder = database.partition("?host=")[2]
    code, said, _ = doctor("--db", database.replace(f"host={folder}", f"host=127.0.0.1,{folder}&port=1,5432"))
    assert (code, said["database"]["ok"]) == (0, True)


@pytest.mark.parametrize("url", [f"postgresql://u:{SECRET}@127.0.0.1:1/x", f"postgresql://u:{SECRET}@h:1,g:2,/x?y=1"])
def test_a_postgresql_that_is_away_is_bad_and_no_password_is_shown(url: str) -> None:
    pytest.importorskip("psycopg")
    code, said, output = doctor("--db", url)
    assert (code, said["database"]["ok"]) == (1, False)
    assert SECRET not in output


@pytest.mark.slow  # imports AutoGen once more
def test_a_file_is_looked_at_as_well(tmp_path: Path) -> None:
    code, said, _ = doctor("--db", str(tmp_path / "new file.db"))
    assert code == 0
    assert said["database"]["detail"].endswith("new file.db is made when the first memory is stored")
    assert not (tmp_path / "new file.db").exists()


@pytest.mark.slow  # imports AutoGen once more
def test_a_file_that_the_first_use_would_change_is_named_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    with Client.local(path) as client:
        client.remember("ada", "tea at five")
    before = path.read_bytes()
    monkeypatch.setattr(schema, "SCHEMA", replace(schema.SCHEMA, version=3, migrations={2: ("CREATE TABLE added(x)",)}))
    code, said, _ = doctor("--db", str(path))
    assert code == 0
    assert "migrated at the first use" in said["database"]["detail"]
    assert path.read_bytes() == before


@pytest.mark.slow  # imports AutoGen once more
def test_a_file_of_0_1_is_named_with_the_way_to_take_its_memories_along(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE memory(key); PRAGMA application_id = 1802661742; PRAGMA user_version = 1")
    before = path.read_bytes()
    code, said, _ = doctor("--db", str(path))
    assert code == 1
    assert "`kronmem export` it with 0.1" in said["database"]["detail"]
    assert path.read_bytes() == before


def test_what_is_no_database_or_named_twice_is_refused() -> None:
    assert doctor("--db", "http://127.0.0.1:9")[0] == 2
    assert doctor("--db", "a.db", "--url", "sqlite:///a.db")[0] == 2
