"""Every block of the README runs, offline, and prints what the README says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", README, re.S)
DATE = re.compile(r"\d{4}-\d\d-\d\d")


NEEDS = ("autogen", "autogen_agentchat", "autogen_ext", "agent_framework", "ag2", "mcp")


def needs(code: str) -> list[str]:
    """The frameworks that a block imports."""
    return [module for module in NEEDS if re.search(rf"^\s*(from|import) {module}\b", code, re.M)]


def run(code: str, home: Path) -> str:
    if lacking := [module for module in needs(code) if find_spec(module) is None]:
        pytest.skip(f"{', '.join(lacking)} is not installed: pip install 'kronmem[dev]'")
    environment = {**os.environ, "KRONMEM_HOME": str(home), "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    ran = subprocess.run([sys.executable, "-c", code], cwd=home.parent, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


CASES = [
    # Importing a framework takes longer than all other blocks together.
    pytest.param(*block, marks=pytest.mark.slow) if needs(block[0]) else block
    for block in BLOCKS
]


@pytest.mark.parametrize(("code", "printed"), CASES, ids=range(len(BLOCKS)))
def test_a_block_prints_what_the_readme_says(code: str, printed: str, tmp_path: Path) -> None:
    assert printed, "a block without its output"
    assert DATE.sub("DATE", run(code, tmp_path / "home")) == DATE.sub("DATE", printed)


def test_the_first_block_still_remembers_in_a_new_process(tmp_path: Path) -> None:
    code, printed = BLOCKS[0]
    run(code, tmp_path / "home")
    forgetful = "\n".join(line for line in code.splitlines() if "memory.remember(" not in line)
    assert DATE.sub("DATE", run(forgetful, tmp_path / "home")) == DATE.sub("DATE", printed)
    assert len(code.strip().splitlines()) <= 11


def test_the_test_command_of_the_readme_is_what_ci_runs() -> None:
    (command,) = re.findall(r"<!-- test command -->\s*```bash\n(.*?)```", README, re.S)
    assert "pytest" in command
    assert "<!-- test command -->" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_every_command_is_documented() -> None:
    pytest.importorskip("typer")
    from kronmem.cli.app import app

    names = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
    assert [name for name in names if f"`kronmem {name}" not in README] == []


def test_the_demo_prints_what_the_readme_says() -> None:
    shown = re.search(r"<!-- demo command -->.*?```text\n(.*?)```", README, re.S)
    assert shown
    asserted = (ROOT / "tests" / "cli" / "test_demo.py").read_text("utf-8")
    missing = [line for line in shown[1].splitlines() if line.strip() and line.strip() not in asserted]
    assert missing == []
