"""The blocks and examples that the pages tell a reader to run: where each stands, and what its section installs.

`check` runs those of one installation, in their order, as a reader would: in an environment that holds nothing else.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SKILL = "kronmem/.agents/skills/kronmem/SKILL.md"
PAGES = (
    "README.md",
    "examples/README.md",
    "examples/reference.md",
    "examples/troubleshooting.md",
    "examples/comparison.md",
    SKILL,
    "kronmem/server/README.md",
    "tests/benchmarks/README.md",
)
DATE = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?")
_INSTALL = re.compile(r"pip install '?kronmem(\[[\w,-]+\])?'?((?: [a-z][\w-]+)*)`")
_BLOCK = re.compile(r"```python\n(?P<code>.*?)```(?:\s*```text\n(?P<printed>.*?)```)?", re.S)
EXAMPLE = re.compile(r"^\| .*\| `(?P<name>\w+\.py)` \| .* \| (?P<lines>\d+) \| (?:`(?P<extra>[\w,-]+)`|–) \|$", re.M)
"""A row of the table of programs."""
# Errors, but for those that classic AutoGen itself causes where mcp has brought jsonschema along.
_WARNINGS = "error,ignore:jsonschema.RefResolver is deprecated,ignore:Accessing jsonschema.__version__ is deprecated"
_NEEDS_A_KEY = {"real_model.py"}


@dataclass(frozen=True)
class Snippet:
    """A block with the output that stands below it, or an example; `install` is what pip is asked for in a clone."""

    page: str
    section: str
    install: tuple[str, ...]
    code: str
    printed: str | None


def snippets() -> list[Snippet]:
    """All of them, in the order of the pages."""
    return [one for page in PAGES for one in _on_page(page, (ROOT / page).read_text("utf-8"))]


def _on_page(page: str, text: str) -> Iterator[Snippet]:
    for section in re.split(r"^(?=##+ )", text, flags=re.M):
        title = section.splitlines()[0].strip("# ")
        for row in EXAMPLE.finditer(section):
            extra = f"[{row['extra']}]" if row["extra"] else ""
            yield Snippet(page, title, (f".{extra}",), str(ROOT / "examples" / row["name"]), None)
        for found in _BLOCK.finditer(section):
            extra, further = (_INSTALL.findall(section[: found.start()]) or [("", "")])[-1]
            yield Snippet(page, title, (f".{extra}", *further.split()), found["code"], found["printed"])


def installs() -> list[tuple[str, ...]]:
    """The installations that a block or an example needs."""
    return list(dict.fromkeys(one.install for one in snippets()))


def check(python: str, install: tuple[str, ...]) -> str:
    """Run what needs just this installation with that Python, from an empty home; a line that says how it went."""
    chosen = [one for one in snippets() if one.install == install and Path(one.code).name not in _NEEDS_A_KEY]
    with tempfile.TemporaryDirectory() as home:
        wrong = [f"{one.section}: {problem}" for one in chosen if (problem := _problem(python, one, Path(home)))]
    done = f"{len(chosen) - len(wrong)} passed"
    return done if not wrong else f"{len(wrong)} failed, {done}: {'; '.join(wrong)}"


def _problem(python: str, snippet: Snippet, home: Path) -> str:
    example = Path(snippet.code) if snippet.code.endswith(".py") else None
    environment = {"HOME": str(home), "TMPDIR": str(home), "PATH": f"{Path(python).parent}:/usr/bin:/bin"}
    command = [python, str(example)] if example else [python, "-c", snippet.code]
    ran = subprocess.run(command, cwd=home, env={**environment, "LANG": "C.UTF-8"}, capture_output=True, text=True)
    if ran.returncode:
        return (ran.stderr.strip().splitlines() or ["failed"])[-1]
    if snippet.printed is not None and DATE.sub("DATE", ran.stdout) != DATE.sub("DATE", snippet.printed):
        return f"printed {ran.stdout!r}"
    return ""


def run(code: str, home: Path) -> str:
    """The output of a block in this environment; the test fails where it warns."""
    environment = {**os.environ, "KRONMEM_HOME": str(home), "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": _WARNINGS}
    ran = subprocess.run([sys.executable, "-c", code], cwd=home.parent, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
