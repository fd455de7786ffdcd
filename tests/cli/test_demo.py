"""`kronmem demo`: the README's first command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kronmem import Client
from kronmem.cli.app import app
from kronmem.cli.demo import ASKING, TELLING, UNKNOWN, spoken
from tests.services.kronmem import ServedKronmem
from tests.snippets import DATE

PLAYED = """\
The first process: a team of two agents is told something.

  ada       We ship the beta on Friday. And I prefer short answers.
  planner   → remember("The beta ships on Friday", "decision")
  memory    ← Stored.
  planner   Noted: the beta ships on Friday.
  engineer  → remember("Ada prefers short answers", "preference")
  memory    ← Stored.
  engineer  Short answers from now on.

That process has ended. A second one, with new agents and the same memory:

  ada       When do we ship the beta? And how do I like my answers?
  planner   → recall("how does Ada like her answers?")
  memory    ← 1. [preference, 2026-11-20] Ada prefers short answers
  planner   Nobody told me, but the team remembers: Ada prefers short answers.
  engineer  → recall("when does the beta ship?")
  memory    ← 1. [decision, 2026-11-20] The beta ships on Friday
  engineer  Nor me, but it is known: The beta ships on Friday.

The memories are in {home}/memory.db; the model was a script, nothing left this machine. Next:

  kronmem list --agent kronmem-demo
  kronmem recall "when does the beta ship?" --agent kronmem-demo
  kronmem serve    # then open http://127.0.0.1:7070/ to look at them
"""


@pytest.fixture
def without_autogen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation that has no AutoGen."""
    (tmp_path / "autogen.py").write_text("raise ModuleNotFoundError('No module named autogen', name='autogen')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path(__file__).parent.parent.parent)]))


def test_without_autogen_it_plays_with_plain_tools_and_says_what_to_install(
    without_autogen: None, tmp_path: Path
) -> None:
    ended = CliRunner().invoke(app, ["demo"])
    assert DATE.sub("DATE", ended.stdout) == DATE.sub("DATE", PLAYED.replace("{home}", str(tmp_path / "home")))
    assert "pip install" in ended.stderr
    with Client() as client:
        assert len(list(client.memories("kronmem-demo"))) == 2


@pytest.mark.slow
def test_both_processes_send_the_key_for_a_service_that_only_url_names(
    without_autogen: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRONMEM_API_KEY", "kv-demo")
    with ServedKronmem(tmp_path / "served.db", key="kv-demo") as service:
        ended = CliRunner().invoke(app, ["demo", "--url", service.url])
        assert (ended.exit_code, "The beta ships on Friday." in ended.stdout) == (0, True), ended.stderr


@pytest.mark.slow
def test_a_second_demo_removes_the_first_ones_memories_and_nobody_elses(without_autogen: None) -> None:
    with Client() as client:
        client.remember("kronmem-demo", "mine, long before any demo")
        for _ in range(2):
            ended = CliRunner().invoke(app, ["demo"])
            assert ended.stdout.count("← Stored.") == 2
            client.remember("kronmem-demo", "mine, since the demo")
            client.remember("kronmem-demo", "The beta ships on Friday", session_id="mine")
        kept = [(one.content, one.session_id) for one in client.memories("kronmem-demo")]
        assert sorted(text for text, session in kept if session is None) == [
            "Ada prefers short answers",
            "The beta ships on Friday",
            "mine, long before any demo",
            "mine, since the demo",
        ]
        assert ("The beta ships on Friday", "mine") in kept


@pytest.mark.slow
def test_in_json_every_word_is_an_event(without_autogen: None, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/other.db"
    ended = CliRunner().invoke(app, ["demo", "--json", "--url", url, "--agent", "mine"])
    events = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [event["what"] for event in events if event["process"] == 2].count("calls") == 2
    with Client(url) as client:
        assert [agent.name for agent in client.agents()] == ["mine"]


@pytest.mark.slow
def test_the_commands_it_names_next_work_as_typed_where_nothing_is_on_the_path(tmp_path: Path) -> None:
    scripts = Path(sys.executable).parent
    if not (scripts / "kronmem").exists():
        pytest.skip("the command is not installed: pip install -e .")
    (tmp_path / "bin").symlink_to(scripts)
    environment = {**os.environ, "PATH": "/usr/bin:/bin", "KRONMEM_HOME": str(tmp_path / "home")}
    ended = shell("bin/kronmem demo --agent 'my team'", tmp_path, environment)
    named = [line.strip() for line in ended.stdout.splitlines() if line.startswith("  bin/kronmem ")]
    assert len(named) == 3
    assert [shell(line, tmp_path, environment).returncode for line in named[:2]] == [0, 0]
    assert "The beta ships on Friday" in shell(named[1], tmp_path, environment).stdout


def shell(line: str, place: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(line, shell=True, cwd=place, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_with_autogen_a_real_team_says_the_same_twice(tmp_path: Path) -> None:
    for _ in range(2):
        ended = CliRunner().invoke(app, ["demo"])
        assert (ended.exit_code, ended.stderr) == (0, "")
        assert DATE.sub("DATE", ended.stdout) == DATE.sub("DATE", PLAYED.replace("{home}", str(tmp_path / "home")))


def test_the_scripted_model_makes_nothing_up() -> None:
    assert [spoken(part, "No relevant memories.") for part in ASKING] == [UNKNOWN, UNKNOWN]
    assert [spoken(part, "Memory is unavailable right now; continue without it.") for part in TELLING] == [UNKNOWN] * 2
