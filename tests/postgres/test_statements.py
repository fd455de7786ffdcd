"""The SQL of the store, as it is written and as it is sent: fit for poolers and for distributed planners."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import kronmem.engine.postgres
from kronmem.engine.postgres import pool
from tests.engine.calling import calling
from tests.postgres.one_agent import call_all
from tests.services.postgres import QUIET, Postgres, new_server

SOURCE = Path(kronmem.engine.postgres.__file__).parent
LOCAL = {"settings", "version"}
"""Tables that stay on the coordinator."""


@pytest.mark.parametrize(
    ("forbidden", "why"),
    [
        (r"\bSELECT\s+FROM\b", "a distributed planner loses the empty list"),
        (r"\bVALUES\s*\([^\"]*\bSELECT\b", "no subquery in VALUES"),
        (r"\bpg_(try_)?advisory_(un)?lock(_shared)?\s*\(", "a session's lock outlives its transaction"),
        (r"[\"; ]SET\s+(?!LOCAL\b|\()(SESSION\s+)?[a-z_.]+\s*(=|TO)\s*(on|off|\d|'|force)", "a session's setting"),
        (r"\bset_config\s*\((?![^)]*true\))", "a session's setting"),
        (r"\b(LISTEN|UNLISTEN|DISCARD|PREPARE|DEALLOCATE)\s+\w+", "state of a session"),
        (r"\bSET\s+space\s*=", "the distribution column cannot change"),
        (r"\bGENERATED\b|\bserial\b|\bnextval\b", "nobody gives out numbers for all nodes"),
    ],
)
def test_no_statement_needs_a_session_or_confuses_a_distributed_planner(forbidden: str, why: str) -> None:
    for path in SOURCE.glob("*.py"):
        code = re.sub(r"^\s*#.*$", "", path.read_text("utf-8"), flags=re.MULTILINE)
        assert not re.search(forbidden, code), f"{path.name}: {why}"


@pytest.mark.parametrize("sql", ["SELECT FROM t", "pg_advisory_lock(1)", "; SET jit = off", "SET space = 3"])
def test_the_scan_finds_what_it_looks_for(sql: str) -> None:
    marks = test_no_statement_needs_a_session_or_confuses_a_distributed_planner.pytestmark  # type: ignore[attr-defined]  # pytest adds it
    assert any(re.search(forbidden, f'"{sql}"') for forbidden, _ in marks[0].args[1])


@pytest.fixture
def logging_server() -> Iterator[Postgres]:
    server = new_server((*QUIET, "log_statement=all", "log_line_prefix=|%p|"))
    yield server
    server.remove()


def transactions(log: str) -> list[list[str]]:
    """The statements that a server logged, by transaction."""
    begun: dict[str, list[str]] = {}
    ended: list[list[str]] = []
    for entry in re.split(r"\n(?=\|\d+\|)", log):
        found = re.match(r"\|(\d+)\|LOG:  (?:statement|execute [^:]*): (.*)", entry, re.DOTALL)
        if not found:
            continue
        pid, sql = found.group(1), " ".join(found.group(2).split())
        if sql.startswith("BEGIN"):
            begun[pid] = []
        elif sql in ("COMMIT", "ROLLBACK"):
            ended.append(begun.pop(pid, []))
        elif pid in begun:
            begun[pid].append(sql)
    return ended


def names_its_space(sql: str) -> bool:
    """Is each table in it reached by one space, given as a value?"""
    if found := re.match(r"INSERT INTO kronmem\.\w+(?: AS \w+)?\s*(?:\((\w+)[^)]*\))?\s*(VALUES \(\$1|SELECT)", sql):
        if found.group(2) == "VALUES ($1" and found.group(1) in (None, "space"):
            return True
        if "(term, space," in sql:  # many rows, each with its space: `spaces_stored` tells whether it is one
            return True
    column = "id" if set(re.findall(r"kronmem\.(\w+)", sql)) - LOCAL == {"spaces"} else "space"
    return bool(re.search(rf"\b{column} = \$\d", sql))


def spaces_stored(log: str) -> list[set[str]]:
    """The spaces of each statement that stores blocks of postings as rows of values."""
    stored: list[set[str]] = []
    lines = re.split(r"\n(?=\|\d+\|)", log)
    for at, entry in enumerate(lines):
        if re.search(r"INSERT INTO kronmem\.postings AS p\(term, space, first, memories, packed\) VALUES", entry):
            assert "DETAIL:" in lines[at + 1]
            values = re.findall(r"\$\d+ = ('(?:[^']|'')*')", lines[at + 1])
            stored.append(set(values[1::5]))
    return stored


INDEX = (
    "kronmem.postings WHERE space = $1 AND term = ANY($2)",
    "AND first = ANY($3)",
    "AND first BETWEEN $3 AND $4",
    "CROSS JOIN LATERAL (SELECT first, memories, packed",
    "WITH RECURSIVE alike(term)",
    "SELECT term, packed FROM kronmem.postings",
    "DELETE FROM kronmem.postings WHERE space = $1 AND first = $2",
)
"""How the blocks of postings are read and changed: the calls of the test lead to each."""


@pytest.mark.parametrize("distributed", [False, True], ids=["one server", "distributed"])
def test_every_statement_about_one_agent_names_its_space(
    logging_server: Postgres, monkeypatch: pytest.MonkeyPatch, distributed: bool
) -> None:
    with calling(logging_server.url()) as call:
        call.as_(agent="other").remember("the tables are there")
    if distributed:  # what would be sent to a coordinator is SQL that any server takes
        monkeypatch.setattr(pool, "_WHO", b"SELECT pg_backend_pid(), true")
    with calling(logging_server.url()) as call:
        call_all(call)
    log = (logging_server.folder / "server.log").read_text("utf-8")
    sent = transactions(log)
    swept = [
        one for one in sent if any(sql.startswith("SELECT space, count(*) FROM (SELECT space FROM") for sql in one)
    ]
    assert all(sql.startswith("SELECT space, count(*) FROM (SELECT space FROM") for one in swept for sql in one)
    statements = {sql for one in sent if one not in swept for sql in one if not sql.startswith(("CREATE", "ALTER"))}
    about = {sql for sql in statements if set(re.findall(r"kronmem\.(\w+)", sql)) - LOCAL}
    assert len(about) > 40
    assert sorted(sql for sql in about if not names_its_space(sql)) == []
    assert [part for part in INDEX if not any(part in sql for sql in about)] == []
    stored = spaces_stored(log)
    assert bool(stored) == distributed
    assert all(len(spaces) == 1 for spaces in stored)


def test_a_call_about_one_agent_is_one_transaction(logging_server: Postgres) -> None:
    with calling(logging_server.url()) as call:
        call.remember("tea")
        before = len(transactions((logging_server.folder / "server.log").read_text("utf-8")))
        call.remember("coffee")
        sent = transactions((logging_server.folder / "server.log").read_text("utf-8"))[before:]
    assert len(sent) == 1
