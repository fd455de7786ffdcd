"""A client at a service of 0.2, and a client of 0.2 at this service, which needs that release installed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.services.in_process import served_in_process
from tests.services.older import INSTALLED
from tests.shells import shell

CITIES = ("Paris", "Berlin", "Oslo", "Rome", "Lima", "Cairo", "Delhi", "Quito", "Seoul", "Dakar")
QUESTION = "In which cities are the offices?"


@pytest.fixture
def client(older: str, kind: str) -> Iterator[Any]:
    """A client that knows nothing of the service yet."""
    with shell(kind, older, outbox=False) as client:
        yield client


@pytest.fixture
def offices(older: str) -> list[str]:
    """The ids of ten memories, stored by another client."""
    with shell("sync", f"{older}/", outbox=False) as other:
        other.remember("ada", "User prefers short answers", "preference", pinned=True)
        return [other.remember("ada", f"The office in {city} has {at} desks.").id for at, city in enumerate(CITIES)]


def test_the_first_question_and_the_next_are_answered_without_the_notes_that_it_cannot_find(
    client: Any, offices: list[str]
) -> None:
    for _ in range(2):
        found = client.recall("ada", QUESTION, fill="profile")
        assert len(found) == 5
        assert all("office" in hit.content and not hit.standing for hit in found)
        assert "office" in client.inject_context("ada", QUESTION, fill="profile")


def test_what_the_caller_has_is_left_out_and_others_take_its_place(client: Any, offices: list[str]) -> None:
    had = client.recall("ada", QUESTION)
    known = [hit.memory.id.upper() for hit in had]
    rest = client.recall("ada", QUESTION, exclude=known)
    assert sorted(hit.memory.id for hit in (*had, *rest)) == sorted(offices)
    block = client.inject_context("ada", QUESTION, exclude=known, fill=False)
    assert not [hit for hit in had if hit.content in block]
    assert all(hit.content in block for hit in rest)


def test_what_the_caller_has_is_not_in_the_first_answer_either(client: Any, offices: list[str]) -> None:
    assert not {hit.memory.id for hit in client.recall("ada", QUESTION, exclude=offices[:4])} & {*offices[:4]}


def test_a_recall_is_filled_up(client: Any, offices: list[str]) -> None:
    client.health()
    client.recall("ada", QUESTION)
    found = client.recall("ada", "office Paris desks", fill=True, limit=8)
    assert len(found) == 8
    assert any(hit.memory.pinned and hit.filled for hit in found)


def test_everything_else_goes_on_as_it_did(client: Any, older: str) -> None:
    stored = client.remember("ada", "I live in Paris", key="home", may_replace=True)
    moved = client.remember("ada", "I live in Berlin", key="home", may_replace=True)
    assert moved.may_replace == ()
    assert [one.content for one in client.history("ada", stored.id)] == ["I live in Berlin", "I live in Paris"]
    assert client.update("ada", moved.id, content="I live in Bonn").content == "I live in Bonn"
    assert [hit.content for hit in client.recall("ada", "Where did I live yesterday?")] == ["I live in Bonn"]
    assert [one.content for one in client.memories("ada")] == ["I live in Bonn"]
    client.forget("ada", next(iter(client.memories("ada"))).id)
    assert client.clear("ada") == 0


OLDER_CLIENT = """
import sys, kronmem
from importlib.metadata import version
with kronmem.Client(sys.argv[1], outbox=False) as client:
    first = client.remember("ada", "I live in Paris", key="home", tags=["t"])
    client.remember_many("ada", [f"Note {n} is about tea" for n in range(150)])
    moved = client.remember("ada", "I live in Berlin", key="home")
    assert [one.content for one in client.history("ada", first.id)] == ["I live in Berlin", "I live in Paris"]
    assert client.recall("ada", "Where do I live?")[0].content == "I live in Berlin"
    assert client.recall_across(["ada", "bob"], "Who drinks tea?")["ada"]
    assert "Berlin" in client.inject_context("ada", "Where do I live?")
    assert "Note" in client.inject_context("ada")
    assert len(list(client.memories("ada"))) == 151
    assert client.update("ada", moved.id, pinned=True).pinned
    client.state("ada").set("k", {"a": 1})
    assert client.state("ada").get("k") == {"a": 1}
    client.forget("ada", moved.id)
    assert client.clear("ada") >= 150
    assert client.erase("ada").complete
    print(version("kronmem"))
"""


@pytest.mark.skipif(not INSTALLED, reason="needs KRONMEM_TEST_OLDER, the Python of an installed kronmem 0.2")
def test_a_client_of_the_release_before_works_with_this_service() -> None:
    with served_in_process() as url:
        asked = subprocess.run([INSTALLED, "-c", OLDER_CLIENT, url], capture_output=True, text=True, cwd="/")
    assert (asked.stderr, asked.stdout) == ("", "0.2.0\n")
