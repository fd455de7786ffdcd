"""Every block of the pages runs, offline, and prints the output below it; the first screen stays one screen."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kronmem import AgentMemory
from tests.snippets import DATE, PAGES, ROOT, SKILL, Snippet, run, snippets
from tests.test_dependencies import PROJECT

README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = [one for one in snippets() if not one.code.endswith(".py")]
FIRST, SECOND = BLOCKS[:2]
"""The second stores nothing: it is a new process in the home of the first."""
NEEDS = ("autogen", "autogen_agentchat", "autogen_ext", "agent_framework", "ag2", "mcp")


def needs(code: str) -> list[str]:
    """The frameworks that a block imports."""
    return [module for module in NEEDS if re.search(rf"^\s*(from|import) {module}\b", code, re.M)]


CASES = [
    # Importing a framework takes longer than all other blocks together.
    pytest.param(block, id=f"{block.page}-{at}", marks=[pytest.mark.slow] if needs(block.code) else [])
    for at, block in enumerate(BLOCKS)
    if block is not SECOND
]


@pytest.mark.parametrize("block", CASES)
def test_a_block_prints_what_its_page_says(block: Snippet, tmp_path: Path) -> None:
    if lacking := [module for module in needs(block.code) if find_spec(module) is None]:
        pytest.skip(f"{', '.join(lacking)} is not installed: pip install 'kronmem[dev]'")
    assert block.printed, "a block without its output"
    assert DATE.sub("DATE", run(block.code, tmp_path / "home")) == DATE.sub("DATE", block.printed)


def test_the_second_block_remembers_in_a_new_process_what_the_first_stored(tmp_path: Path) -> None:
    run(FIRST.code, tmp_path / "home")
    assert "remember(" not in SECOND.code
    assert DATE.sub("DATE", run(SECOND.code, tmp_path / "home")) == DATE.sub("DATE", SECOND.printed or "")
    assert len(FIRST.code.strip().splitlines()) <= 10


def test_the_first_screen_and_the_whole_stay_short() -> None:
    lines = README.splitlines()
    assert len(lines) <= 170
    first = "\n".join(lines[:60])
    assert all(part in first for part in ("pip install", "```python", "```text", "http://127.0.0.1:7070", "![The"))
    (picture,) = re.findall(r"!\[The [^\]]*\]\(([^)]*)\)", first)
    data = (ROOT / picture).read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) < 150_000


@pytest.mark.parametrize("page", PAGES)
def test_links_and_extras_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)", text) if "://" not in target]
    assert [target for target in targets if not (ROOT / page).parent.joinpath(target).exists()] == []
    known = PROJECT["optional-dependencies"]
    named = {extra for many in re.findall(r"kronmem\[([\w,-]+)\]", text) for extra in many.split(",")}
    # A hyphen: pip before 23.3 looks for the name as it is in the metadata, where every _ is a -.
    assert named <= {extra.replace("_", "-") for extra in known}


def test_the_messages_under_troubleshooting_are_those_of_the_code() -> None:
    page = (ROOT / "examples" / "troubleshooting.md").read_text("utf-8")
    quoted = re.findall(r"^\| `([^`]+)`", page, re.M)
    named = [re.split(r"…|http|0\.2|, not", text.removeprefix("… "))[0].strip() for text in quoted]
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "kronmem").rglob("*.py"))
    known = [text for text in named if text.partition(": ")[0] in code]
    assert len(known) >= 5
    assert {*named} - {*known} == {"does not provide the extra 'agent_framework'"}  # pip's own words


def test_the_skill_names_public_names_alone() -> None:
    text = (ROOT / SKILL).read_text("utf-8")
    blocks = "".join(one.code for one in BLOCKS if one.page == SKILL)
    used = [node for node in ast.walk(ast.parse(blocks)) if isinstance(node, ast.ImportFrom) and node.module]
    ours = [node for node in used if node.module.partition(".")[0] == "kronmem"]
    assert {node.module for node in ours} >= {f"kronmem.{pack}" for pack in ("autogen", "agentchat", "ag2")}
    assert [alias.name for node in ours for alias in node.names if alias.name not in public(node.module or "")] == []
    calls = re.findall(r"^\| `(\w+)\(", text, re.M)
    assert len(calls) == 10
    assert [name for name in calls if not hasattr(AgentMemory, name)] == []
    assert re.match(rf"---\nname: {Path(SKILL).parent.name}\ndescription: [^\n]{{1,1024}}\n---\n", text)


def public(module: str) -> list[str]:
    """What a package lists, whether its framework is installed or not."""
    (listed,) = re.findall(
        r"^__all__ = (\[.*?\])$", (ROOT / Path(*module.split(".")) / "__init__.py").read_text(), re.M | re.S
    )
    return list(ast.literal_eval(listed))


def test_the_call_that_puts_recalled_text_into_a_system_message_is_named() -> None:
    writes = re.compile(r"update_system_message|SystemMessage\(|[\"']role[\"']: [\"']system")
    package = ROOT / "kronmem"
    found = {
        path.relative_to(package).as_posix() for path in package.rglob("*.py") if writes.search(path.read_text("utf-8"))
    }
    # The second one has a prompt of its own, and nothing recalled in it.
    assert found == {"autogen/agent.py", "agentchat/run_capture.py"}
    page = " ".join((ROOT / "examples" / "README.md").read_text("utf-8").split())
    assert "Recalled text is always inside the fence" in page
    (named,) = re.findall(r"puts that fence into a system message, [^.]*: (`[^.]*`)\.", page)
    assert named == "`MemoryAgent(memory_query=…)`"


def test_the_test_command_of_the_readme_is_what_ci_runs() -> None:
    (command,) = re.findall(r"<!-- test command -->\s*```bash\n(.*?)```", README, re.S)
    assert "pytest" in command
    assert "<!-- test command -->" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_every_command_is_documented() -> None:
    pytest.importorskip("typer")
    from kronmem.cli.app import app

    names = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
    names += [group.name or group.typer_instance.info.name for group in app.registered_groups if group.typer_instance]
    reference = (ROOT / "examples" / "reference.md").read_text("utf-8")
    assert [name for name in names if f"`kronmem {name}" not in reference] == []


def test_the_demo_prints_what_the_readme_says() -> None:
    shown = re.search(r"<!-- demo command -->.*?```text\n(.*?)```", README, re.S)
    assert shown
    asserted = (ROOT / "tests" / "cli" / "test_demo.py").read_text("utf-8")
    missing = [line for line in shown[1].splitlines() if line.strip() and line.strip() not in asserted]
    assert missing == []


@pytest.mark.slow  # builds a wheel
def test_of_all_pages_the_skill_alone_is_in_the_wheel(tmp_path: Path) -> None:
    pytest.importorskip("build")
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, env=dict(os.environ))
    (wheel,) = tmp_path.glob("*.whl")
    listed = subprocess.run([sys.executable, "-m", "zipfile", "-l", str(wheel)], capture_output=True, text=True)
    assert "kronmem/server/assets/page.css" in listed.stdout
    assert re.findall(r"^\S+\.md\b", listed.stdout, re.M) == [SKILL]
