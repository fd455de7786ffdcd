"""export and import: everything is carried, to every store, once; a file is complete or not there."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import Result

from kronmem import Client, ConflictError
from tests.cli.running import NOWHERE, lines, run
from tests.services.kronmem import ServedKronmem


def fill(url: str) -> None:
    """An agent with everything that a memory can have, and another one."""
    with Client(url, outbox=False) as client:
        client.remember("ada", "Ada lives in Paris", key="city", role="user", tags=["home", "geo"])
        rome = client.remember("ada", "Ada lives in Rome", key="city", session_id=None, metadata={"n": [1, 2.5, None]})
        client.update("ada", rome.id, content="Ada lives in Rome, in Via Appia", memory_type="preference")
        client.remember("ada", "Ada lives in Oslo", key="city")
        client.remember("ada", "allergic to peanuts", pinned=True)
        client.remember("ada", "on call this week", "temporary", ttl_days=9, session_id="work")
        client.remember_many("ada", [f"note {n}" for n in range(3)], session_id="work", role="assistant")
        client.recall("ada", "peanuts")
        (oslo,) = [one for one in client.memories("ada") if one.key == "city"]
        client.update("ada", oslo.id, tags=["north"])  # changed later than it was said
        client.state("ada").set("theme", {"dark": True, "sizes": [1, 2.5, None], "content": "no memory"})
        client.describe("ada", description="Ada's own", metadata={"content": "no memory either", "n": [None, 1]})
        client.describe("dora", description="knows nothing yet")
        client.state("bob").set("only", "state")
        client.remember("carol", "猫 and 🎉", key="k" * 100)


def dump(url: str) -> list[str]:
    """An export, sorted."""
    ended = run("export", "--url", url)
    assert ended.exit_code == 0, ended.output
    return sorted(ended.stdout.splitlines())


def described(url: str) -> dict[str, tuple[str | None, object]]:
    """What is said of each agent."""
    with Client(url, outbox=False) as client:
        return {one.name: (one.description, one.metadata) for one in client.agents()}


@contextmanager
def place(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The url of an empty store of one kind."""
    if kind == "sqlite":
        yield f"sqlite:///{tmp_path}/{os.urandom(4).hex()}.db"
    elif kind == "postgres":
        yield str(request.getfixturevalue("postgres"))
    else:
        with ServedKronmem(tmp_path / f"{os.urandom(4).hex()}.db") as server:
            yield server.url


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("sqlite", "sqlite"),
        pytest.param("sqlite", "served", marks=pytest.mark.slow),
        pytest.param("served", "sqlite", marks=pytest.mark.slow),
        ("sqlite", "postgres"),
        ("postgres", "served"),
        ("served", "postgres"),
        ("postgres", "sqlite"),
    ],
)
def test_an_import_is_equal_byte_for_byte_and_a_second_one_changes_nothing(
    tmp_path: Path, request: pytest.FixtureRequest, first: str, second: str
) -> None:
    with place(first, tmp_path, request) as here, place(second, tmp_path, request) as there:
        fill(here)
        whole = run("export", "--url", here).stdout
        assert run("import", "--url", there, stdin=whole).stdout == "Imported 10 and 2 of state.\n"
        assert dump(there) == sorted(whole.splitlines())
        assert run("import", "--url", there, stdin=whole).stdout == "Imported 0, 10 already there.\n"
        assert dump(there) == sorted(whole.splitlines())
        assert described(there) == described(here)
        with Client(there, outbox=False) as client:
            assert [hit.content for hit in client.recall("ada", "Where does Ada live?", 1)] == ["Ada lives in Oslo"]
            (oslo,) = [one for one in client.memories("ada") if one.key == "city"]
            assert len(client.history("ada", oslo.id)) == 4


def test_the_lines_carry_times_history_keys_roles_pins_lifetimes_and_state() -> None:
    fill("")
    found = lines(run("export"))
    assert (found[0], found[-1]) == ({"kronmem_export": 2}, {"kronmem_export": 2, "memories": 10, "state": 2})
    by_text = {one["content"]: one for one in found if "content" in one}
    assert by_text["Ada lives in Paris"]["superseded_by"]
    assert (by_text["Ada lives in Paris"]["role"], by_text["Ada lives in Paris"]["key"]) == ("user", "city")
    assert by_text["Ada lives in Rome, in Via Appia"]["updated_at"]
    assert by_text["allergic to peanuts"]["pinned"]
    assert by_text["on call this week"]["expires_at"]
    assert all(one["created_at"] for one in by_text.values())
    assert {"agent_id": "bob", "state_key": "only", "value": "state"} in found


@pytest.mark.slow
def test_a_file_is_private_and_a_failed_export_leaves_the_old_one(tmp_path: Path) -> None:
    fill("")
    out = tmp_path / "all.jsonl"
    old = os.umask(0)
    try:
        assert run("export", "-o", str(out)).stderr == f"Exported 10 and 2 of state to {out}.\n"
    finally:
        os.umask(old)
    assert out.stat().st_mode & 0o777 == 0o600
    before = out.read_bytes()
    failed = run("export", "-o", str(out), "--url", NOWHERE)
    assert failed.exit_code == 1
    assert out.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["all.jsonl"]
    nowhere = run("export", "-o", str(tmp_path / "no" / "such.jsonl"))
    assert (nowhere.exit_code, "No such file or directory" in nowhere.stderr) == (2, True)


@pytest.mark.parametrize(("typed", "code", "said"), [("adda", 1, "Did you mean ada?"), ("", 2, "agent_id")])
def test_an_agent_that_does_not_exist_leaves_the_old_export(typed: str, code: int, said: str, tmp_path: Path) -> None:
    out = tmp_path / "ada.jsonl"
    out.write_text("a good backup")
    nobody = run("export", "-a", "ada", "-o", str(out))
    assert (nobody.exit_code, nobody.stderr) == (1, "No agent 'ada'.\n")
    fill("")
    ended = run("export", "-a", typed, "-o", str(out))
    assert (ended.exit_code, said in ended.stderr, out.read_text()) == (code, True, "a good backup")
    assert run("export", "-a", typed).stdout == ""


def test_an_export_through_a_link_changes_the_file_and_not_the_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    real, link = tmp_path / "disk" / "real.jsonl", tmp_path / "latest.jsonl"
    real.write_text("old")
    link.symlink_to(real)
    assert run("export", "-o", str(link)).exit_code == 0  # no agents at all: an empty export is what is there
    assert link.is_symlink()
    assert [json.loads(line)["kronmem_export"] for line in real.read_text().splitlines()] == [2, 2]
    assert [file.name for file in real.parent.iterdir()] == ["real.jsonl"]


def test_an_export_to_a_pipe_or_a_device_is_written_there_and_replaces_nothing(tmp_path: Path) -> None:
    fill("")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run("export", "-a", "ada", "-o", str(pipe)).exit_code == 0
        assert json.loads(os.read(reader, 65536).splitlines()[-1])["memories"] == 9
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    null = tmp_path / "null"
    null.symlink_to("/dev/null")
    assert run("export", "-o", str(null)).exit_code == 0
    assert null.is_char_device()
    assert json.loads(run("export", "-o", "/dev/stdout").stdout.splitlines()[-1])["memories"] == 10


def test_an_export_that_was_cut_off_is_refused_before_anything_is_stored() -> None:
    fill("")
    whole = run("export").stdout
    ended = run("import", "-a", "copy", stdin="".join(whole.splitlines(keepends=True)[:-1]))
    assert (ended.exit_code, "cut off" in ended.stderr) == (2, True)
    assert run("list", "-a", "copy", "--json").stdout == ""


def test_a_newer_format_is_refused_with_the_way_out() -> None:
    ended = run("import", stdin='{"kronmem_export": 3}\n{"kronmem_export": 3, "memories": 0, "state": 0}\n')
    assert ended.exit_code == 2
    assert "pip install -U kronmem" in ended.stderr


@pytest.mark.parametrize("version", ["0.1", "0.2"])
def test_a_file_of_an_earlier_version_is_read_with_its_times(version: str) -> None:
    old = Path(__file__).parent.parent / "samples" / f"export-{version}.jsonl"
    wanted = [one for one in map(json.loads, old.read_text("utf-8").splitlines()) if "content" in one]
    assert run("import", str(old)).stdout.startswith(f"Imported {len(wanted)}")
    kept = {one["id"]: one for one in lines(run("export")) if "content" in one}
    for one in wanted:
        assert {name: kept[one["id"]][name] for name in one} == one


def one(**fields: object) -> str:
    return json.dumps({"agent_id": "ada", "content": "x", **fields}) + "\n"


def current(agent: str = "ada") -> list[str]:
    with Client() as client:
        return [memory.content for memory in client.memories(agent)]


def test_under_a_key_that_changed_since_the_later_said_one_stays_current() -> None:
    with Client() as client:
        client.remember("ada", "now in Rome", key="city")
    assert imported(one(content="then in Paris", key="city", created_at="2020-01-01T00:00:00Z")) == "Imported 1.\n"
    assert current() == ["now in Rome"]
    assert imported(one(content="in Oslo one day", key="city", created_at="2999-01-01T00:00:00Z")) == "Imported 1.\n"
    assert current() == ["in Oslo one day"]
    with Client() as client:
        (oslo,) = client.memories("ada")
        assert len(client.history("ada", oslo.id)) == 3


def test_a_state_that_changed_since_is_left_alone_and_reported() -> None:
    with Client() as client:
        client.state("ada").set("k", "new")
    ended = run("import", stdin='{"agent_id": "ada", "state_key": "k", "value": "old"}\n')
    assert (ended.exit_code, ended.stdout) == (1, "Imported 0, 1 refused.\n")
    assert "another value is there" in ended.stderr
    with Client() as client:
        assert client.state("ada").get("k") == "new"


def test_a_description_that_differs_is_left_alone_and_reported() -> None:
    line = '{"agent_id": "ada", "description": "old", "agent_metadata": {}}\n'
    assert run("import", stdin=line).exit_code == 0
    assert described("") == {"ada": ("old", {})}
    assert run("import", stdin=line).exit_code == 0
    ended = run("import", stdin=line.replace("old", "new"))
    assert (ended.exit_code, ended.stdout) == (1, "Imported 0, 1 refused.\n")
    assert "the description of ada was not imported: another one is there" in ended.stderr
    assert described("") == {"ada": ("old", {})}


def test_two_agents_that_become_one_keep_no_description_unless_it_is_the_same() -> None:
    line = '{"agent_id": "ada", "description": "hers", "agent_metadata": {"n": 1}}\n'
    assert run("import", "-a", "all", stdin=line + line.replace('"ada"', '"bob"')).exit_code == 0
    assert described("") == {"all": ("hers", {"n": 1})}
    ended = run("import", "-a", "both", stdin=line + line.replace("hers", "his"))
    assert (ended.exit_code, "2 agents become one" in ended.stderr) == (1, True)


def test_a_file_without_the_time_it_was_said_takes_the_last_change_for_it() -> None:
    times = {"created_at": "2020-01-01T00:00:00Z", "updated_at": "2022-01-01T00:00:00"}
    assert imported(one(content="in Paris", key="city", **times)) == "Imported 1.\n"
    (line,) = [one for one in lines(run("export")) if "content" in one]
    assert line["said_at"] == "2022-01-01T00:00:00Z"


@pytest.mark.slow
def test_imports_of_one_file_at_once_and_one_that_was_interrupted_store_it_once(tmp_path: Path) -> None:
    here, there = f"sqlite:///{tmp_path}/here.db", f"sqlite:///{tmp_path}/there.db"
    with Client(here, outbox=False) as client:
        for number in range(400):
            client.remember("ada", f"fact {number}", key=f"key {number % 50}")
    whole = dump(here)
    (tmp_path / "all.jsonl").write_text(run("export", "--url", here).stdout)
    command = [sys.executable, "-m", "kronmem", "import", str(tmp_path / "all.jsonl"), "--url", there]

    def started() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    interrupted = started()
    while not stored(tmp_path / "there.db") and interrupted.poll() is None:
        time.sleep(0.005)
    interrupted.send_signal(signal.SIGINT)
    interrupted.communicate()
    assert interrupted.returncode in (0, 130)
    for process in [started(), started(), started()]:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, b"")
    assert dump(there) == whole


def stored(path: Path) -> int:
    """How many memories are in a file that may not be a database yet."""
    if not path.exists():
        return 0
    db = sqlite3.connect(path)
    try:
        return int(db.execute("SELECT count(*) FROM memories").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        db.close()


@pytest.mark.parametrize("where", ["sqlite", "served", "postgres"])
def test_a_text_remembered_often_keeps_its_newest_tags_and_is_exported_imported_and_updated(
    where: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with place(where, tmp_path, request) as here, Client(here, outbox=False) as client:
        for turn in range(3):
            client.remember("ada", "tea", tags=["always", *(f"{turn}-{number}" for number in range(40))])
        (kept,) = client.memories("ada")
        assert [*kept.tags][-41:] == ["always", *(f"2-{number}" for number in range(40))]
        assert (len(kept.tags), kept.tags[0]) == (100, "0-21")
        assert client.update("ada", kept.id, tags=kept.tags, pinned=True).tags == kept.tags
        whole = run("export", "--url", here).stdout
        assert run("import", "--url", f"sqlite:///{tmp_path}/there.db", stdin=whole).stdout == "Imported 1.\n"
        assert dump(f"sqlite:///{tmp_path}/there.db") == sorted(whole.splitlines())


def test_an_export_of_a_memory_with_too_many_tags_is_restored_with_the_newest() -> None:
    assert imported(one(tags=[f"t{number}" for number in range(120)], created_at="2026-01-01T00:00:00Z")) == (
        "Imported 1.\n"
    )
    with Client() as client:
        assert [memory.tags for memory in client.memories("ada")] == [tuple(f"t{number}" for number in range(20, 120))]


LETTERS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
TEXTS = st.sampled_from(["tea", "猫", "at the sea"]) | LETTERS.filter(str.strip)
TAGS = st.lists(st.integers(0, 300).map(str) | TEXTS.filter(lambda text: len(text) < 9), max_size=100, unique=True)
METADATA = st.dictionaries(
    LETTERS.filter(lambda name: name != "kronmem"),
    st.recursive(st.none() | st.integers() | LETTERS, st.lists),
    max_size=3,
)
CHANGES = {
    "tags": TAGS,
    "metadata": METADATA,
    "pinned": st.booleans(),
    "memory_type": st.sampled_from(["fact", "preference", "my own"]),
}
WRITES = st.fixed_dictionaries(
    {"content": TEXTS},
    optional={
        **CHANGES,
        "session_id": st.sampled_from(["s1", "s2"]),
        "key": st.sampled_from(["k1", "k2"]),
        "role": st.sampled_from(["user", "tool"]),
        "ttl_days": st.integers(1, 3650),
    },
)
UPDATES = st.fixed_dictionaries({"pick": st.integers(0, 9)}, optional={**CHANGES, "content": TEXTS})


@settings(max_examples=10, derandomize=True, database=None)
@given(st.lists(WRITES | UPDATES, max_size=12))
def test_whatever_is_stored_comes_through_an_export_and_an_import(steps: list[dict[str, Any]]) -> None:
    with TemporaryDirectory(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")) as directory:
        here, there = f"sqlite:///{directory}/here.db", f"sqlite:///{directory}/there.db"
        with Client(here, outbox=False) as client:
            for step in steps:
                there_is = list(client.memories("ada"))
                if "pick" not in step:
                    client.remember("ada", **step)
                elif there_is and len(step) > 1:
                    with suppress(ConflictError):  # another memory has that text
                        client.update("ada", there_is[step.pop("pick") % len(there_is)].id, **step)
            client.state("ada").set("there is", "an agent")
        whole = run("export", "--url", here).stdout
        assert run("import", "--url", there, stdin=whole).exit_code == 0
        assert dump(there) == sorted(whole.splitlines())


def imported(text: str) -> str:
    ended: Result = run("import", stdin=text)
    return ended.stdout
