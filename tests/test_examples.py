"""The examples that belong to no pack run, offline, and print what they are expected to; every example is in the README."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OUTAGE = """\
stored while the service is up: True
the service is dead
remember says queued: True
waiting in the outbox: 4
the service is back; left after a flush: 0
- Note 0 from before
- Note 1 from the outage
- Note 2 from the outage
- Note 3 from the outage
- Note 4 from the outage
"""


@pytest.mark.slow
def test_an_outage_loses_nothing(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    pytest.importorskip("typer")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KRONMEM_HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    command = [sys.executable, str(ROOT / "examples" / "outage.py")]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert (ran.stdout, ran.returncode) == (OUTAGE, 0), ran.stderr


MOVE = """\
classic autogen: It is decided.
autogen 0.4+: Noted.
agent framework: The team decided to publish the report in French.
ag2 1.x: The launch of the report is on the 12th of May.
mcp client finds both: True
"""
FRAMEWORKS = ("autogen", "autogen_agentchat", "autogen_ext", "agent_framework", "ag2", "mcp", "typer")


@pytest.mark.slow  # importing five frameworks
def test_one_memory_moves_through_all_frameworks(tmp_path: Path) -> None:
    if lacking := [module for module in FRAMEWORKS if find_spec(module) is None]:
        pytest.skip(f"{', '.join(lacking)} is not installed: pip install 'kronmem[dev]'")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    command = [sys.executable, str(ROOT / "examples" / "the_move.py")]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert (ran.stdout, ran.returncode) == (MOVE, 0), ran.stderr


def test_every_example_is_in_the_readme() -> None:
    readme = (ROOT / "examples" / "README.md").read_text("utf-8")
    missing = [path.name for path in (ROOT / "examples").glob("*.py") if path.name not in readme]
    assert missing == []


def test_hello_is_a_dozen_lines(tmp_path: Path) -> None:
    path = ROOT / "examples" / "hello.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KRONMEM_HOME": str(tmp_path)}
    ran = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[0] == "The beta ships on Friday"
    assert ") Ada prefers short answers" in ran.stdout
    assert len(path.read_text("utf-8").splitlines()) <= 12


@pytest.mark.slow
def test_a_real_model_is_asked_with_what_was_remembered(tmp_path: Path) -> None:
    pytest.importorskip("autogen")
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        from scripted_model import scripted_model
    finally:
        sys.path.pop(0)

    def notes(messages: list[dict[str, str]]) -> str:
        """The model's answer: the notes that it was shown."""
        shown = [one["content"] for one in messages if "<memory" in one["content"]]
        return shown[0].splitlines()[2].partition(") ")[2] if shown else "no notes"

    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KRONMEM_HOME": str(tmp_path)}
    environment.pop("OPENAI_API_KEY", None)
    command = [sys.executable, str(ROOT / "examples" / "real_model.py")]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "Set OPENAI_API_KEY" in ran.stderr
    with scripted_model(notes) as config:
        entry = config["config_list"][0]
        environment |= {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": entry["base_url"], "OPENAI_MODEL": "x"}
        ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert [line for line in ran.stdout.splitlines() if line.startswith("assistant: ")] == [
        "assistant: no notes",
        "assistant: I am Ada, and I am allergic to peanuts.",
    ], ran.stderr
