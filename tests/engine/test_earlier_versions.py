"""Databases that earlier versions wrote: one of 0.2 opens and goes on, one of 0.1 or of a later schema is refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from kronmem.errors import StoreError
from tests.engine.calling import Caller, Clock, calling

SAMPLES = Path(__file__).parent.parent / "samples"
NOW = 1_795_140_000.0
"""An hour after the samples were written."""
PINNED = "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"


def run(place: str, sql: str) -> None:
    """Run statements in a database of either kind."""
    if place.startswith("postgresql:"):
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute(sql.encode())
    else:
        with closing(sqlite3.connect(place)) as db:
            db.executescript(sql)
        Path(place).chmod(0o600)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where no database has been."""
    return str(tmp_path / "memory.db") if request.param == "sqlite" else str(request.getfixturevalue("database"))


@pytest.fixture
def kept(place: str) -> str:
    """What kronmem 0.2 left behind, in either store."""
    name = "postgres-0.2.sql" if place.startswith("postgresql:") else "memory-0.2.sql"
    run(place, (SAMPLES / name).read_text("utf-8"))
    return place


def size(ada: Caller) -> tuple[int, int]:
    """How many memories are listed, and how many the engine counts."""
    return len(ada.contents()), ada("GET", "summary")[1]["count"]


def test_a_database_of_0_2_is_read_as_it_was_written(kept: str) -> None:
    with calling(kept, clock=Clock(NOW)) as call:
        ada = call.as_(agent="ada")
        assert ada.recall("Where does Ada live?")[0] == "Ada lives in Porto"
        assert "observatory" in ada.recall("Who looks after the observatory?")[0]
        assert size(ada) == (3, 3)
        by_text = {memory["content"]: memory for memory in ada("GET", "memories")[1]["memories"]}
        pinned, porto = by_text["Ada is allergic to peanuts"], by_text["Ada lives in Porto"]
        assert (pinned["id"], pinned["pinned"], pinned["metadata"]) == (PINNED, True, {"source": "chat", "n": 3})
        assert (porto["key"], porto["role"], porto["tags"]) == ("home_city", "user", ["place"])
        former = ada("GET", f"memories/{porto['id']}/history")[1]["memories"]
        assert [one["content"] for one in former] == ["Ada lives in Porto", "Ada lives in Lisbon"]
        assert ada("GET", "state/theme")[1]["value"] == {"dark": True, "sizes": [1, 2.5, None]}


def test_a_database_of_0_2_goes_on(kept: str) -> None:
    with calling(kept, clock=Clock(NOW)) as call:
        ada, bob = call.as_(agent="ada"), call.as_(agent="bob")
        assert ada.remember("Ada is allergic to peanuts", tags=["food"])["deduplicated"] is True
        ada.remember("Ada lives in Rome", key="home_city")
        assert ada.recall("Where does Ada live?")[0] == "Ada lives in Rome"
        handbook = next(one for one in ada("GET", "memories")[1]["memories"] if "handbook" in one["content"])
        ada("POST", f"memories/{handbook['id']}/update", {"content": "The observatory is closed"})
        assert "observatory" in ada.recall("observatory")[0]
        assert ada.recall("greenhouse", threshold=0.9) == []
        assert size(ada) == (3, 3)
        assert ada("DELETE", f"memories/{PINNED}")[0] == 204
        assert bob("DELETE", "memories") == (200, {"deleted": 1})
        assert ada("POST", "erase")[1]["complete"] is True
        assert ada.contents() == []


def test_a_retry_from_before_the_upgrade_is_still_recognised(kept: str) -> None:
    own = {"memory_type": "preference", "pinned": True}
    own["metadata"] = {"source": "chat", "n": 3, "kronmem": {"id": PINNED}}
    with calling(kept, clock=Clock(NOW)) as call:
        ada = call.as_(agent="ada")
        assert ada.remember("Ada is allergic to peanuts", **own)["id"] == PINNED
        assert ada("POST", "remember", {"content": "another text", **own})[0] == 409
        assert size(ada) == (3, 3)


OF_0_1 = {
    "sqlite": "CREATE TABLE memory(key INTEGER); PRAGMA application_id = 1802661742; PRAGMA user_version = 1",
    "postgresql": """CREATE SCHEMA kronmem; CREATE TABLE kronmem.memory(id uuid);
        CREATE TABLE kronmem.version(number integer); INSERT INTO kronmem.version VALUES (1)""",
}


def test_a_database_of_0_1_is_refused_with_the_way_to_take_its_memories_along(place: str) -> None:
    run(place, OF_0_1["postgresql" if place.startswith("postgresql:") else "sqlite"])
    before = Path(place).read_bytes() if "://" not in place else b""
    with calling(place) as call, pytest.raises(StoreError, match=r"0\.1.*`kronmem export`.*`kronmem import`"):
        call.remember("tea")
    assert (Path(place).read_bytes() if "://" not in place else b"") == before


def test_a_database_of_a_newer_schema_is_refused_with_the_way_out(kept: str) -> None:
    postgres = kept.startswith("postgresql:")
    run(kept, "UPDATE kronmem.version SET number = 9" if postgres else "PRAGMA user_version = 9")
    with calling(kept) as call, pytest.raises(StoreError, match=r"newer kronmem.*upgrade"):
        call.recall("tea")
