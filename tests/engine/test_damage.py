"""Fault 33: one damaged row takes nothing of its agent with it, and `kronmem doctor` names it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kronmem import Client, StoreError
from kronmem.cli.app import app
from kronmem.sqlite_file import ENDINGS
from tests.engine.calling import calling
from tests.shells import shell

DAMAGE = {
    "metadata": "metadata = 'not JSON'",
    "metadata of another kind": "metadata = '[1]'",
    "tags": "tags = '[\"a'",
    "tags of another kind": "tags = '7'",
    "text": "content = CAST(x'ff66fe' AS TEXT)",
    "session": "session = CAST(x'ff' AS TEXT)",
    "bytes": "content = x'00ff'",
}


def damage(path: Path, change: str, content: str) -> None:
    with sqlite3.connect(path) as db:
        assert db.execute(f"UPDATE memories SET {change} WHERE content = ?", (content,)).rowcount == 1
    db.close()


@pytest.fixture(params=DAMAGE)
def change(request: pytest.FixtureRequest) -> str:
    return DAMAGE[request.param]


TEXTS = [f"The heron of number {number} lives by the river" for number in range(5)]


def test_the_others_are_listed_recalled_and_written(change: str, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "memory.db"
    with shell(kind, f"sqlite:///{path}") as client:
        ids = [client.remember("a", text, tags=("bird",)).id for text in TEXTS]
        damage(path, change, TEXTS[2])
        left = {*TEXTS} - {TEXTS[2]}
        assert {memory.content for memory in client.memories("a")} == left
        assert {memory.content for memory in client.memories("a", tags=("bird",))} == left
        assert {hit.content for hit in client.recall("a", "Where does the heron live?", 10)} == left
        assert "number 3" in client.inject_context("a", "heron")
        client.remember("a", "A sixth heron")
        client.forget("a", ids[0])
        assert len(client.memories("a")) == 4
        with pytest.raises(StoreError, match=r"damaged|UTF-8"):
            client.get("a", ids[2])


def test_a_search_leaves_a_damaged_row_out(change: str, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with calling(str(path)) as call:
        for text in TEXTS:
            call.remember(text)
        damage(path, change, TEXTS[2])
        assert {*call.contents(search="HERON")} == {*TEXTS} - {TEXTS[2]}


def test_a_list_of_many_pages_does_not_end_at_a_damaged_row(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Client.local(path) as client:
        client.remember_many("a", [f"note {number}" for number in range(250)])
        for number in (0, 100, 149, 150, 249):
            damage(path, DAMAGE["text"], f"note {number}")
        assert len({memory.content for memory in client.memories("a")}) == 245


def test_a_damaged_row_that_runs_out_is_swept_with_the_others(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Client.local(path) as client:
        for text in TEXTS[:2]:
            client.remember("a", text, ttl_days=1)
        damage(path, DAMAGE["metadata"], TEXTS[0])
        with sqlite3.connect(path) as db:
            db.execute("UPDATE memories SET expires = 1")
        db.close()
        client.remember("a", TEXTS[3])
        assert [memory.content for memory in client.memories("a")] == [TEXTS[3]]
        assert client.agents()[0].memory_count == 1


def test_a_damaged_former_text_that_runs_out_is_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Client.local(path) as client:
        for text in TEXTS[:2]:
            client.remember("a", text, key="heron")
        damage(path, DAMAGE["metadata"], TEXTS[0])
        with sqlite3.connect(path) as db:
            db.execute("UPDATE memories SET expires = 1 WHERE content = ?", (TEXTS[0],))
        db.close()
        client.remember("a", TEXTS[3])
        assert client.agents()[0].memory_count == len(list(client.memories("a"))) == 2


@pytest.mark.slow
def test_doctor_names_the_damaged_ones(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    texts = [f"The heron of number {number} lives by the river" for number in range(len(DAMAGE) + 1)]
    with Client.local(path) as client:
        ids = [memory.id for memory in client.remember_many("team", texts)]
    assert CliRunner().invoke(app, ["doctor", "--db", str(path)]).exit_code == 0
    for text, change in zip(texts, DAMAGE.values(), strict=False):
        damage(path, change, text)
    seen = CliRunner().invoke(app, ["doctor", "--db", str(path)])
    assert seen.exit_code == 1
    named = seen.stdout.partition("damaged and left out: ")[2]
    assert [one in named for one in ids] == [True] * len(DAMAGE) + [False]


def move(path: Path, to: Path) -> None:
    for ending in ENDINGS:
        if (file := Path(f"{path}{ending}")).exists():
            file.rename(f"{to}{ending}")


def test_a_database_that_was_deleted_or_replaced_while_open_takes_nothing_that_would_be_lost(
    tmp_path: Path, kind: str
) -> None:
    path, moved = tmp_path / "memory.db", tmp_path / "moved.db"
    with shell(kind, f"sqlite:///{path}") as client:
        client.remember("a", TEXTS[0])
        move(path, moved)
        for ask in (lambda: client.remember("a", TEXTS[1]), lambda: client.recall("a", "heron")):
            with pytest.raises(StoreError, match=r"memory\.db was deleted, moved or replaced"):
                ask()
        with shell(kind, f"sqlite:///{path}") as anew:
            anew.remember("a", TEXTS[2])
        with pytest.raises(StoreError, match="replaced"):
            client.remember("a", TEXTS[1])
        move(path, tmp_path / "other.db")
        move(moved, path)
        client.remember("a", TEXTS[3])
    with Client.local(path) as client:
        assert {memory.content for memory in client.memories("a")} == {TEXTS[0], TEXTS[3]}
