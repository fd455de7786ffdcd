"""Runs the suite where it is promised to run: `python -m tests.matrix [--list] [NAME …]`, on demand.

Each row is an environment of its own: every Python from 3.11 to 3.14 on this machine, the lowest allowed dependencies,
every version of a framework that a pack names, and one for each extra that holds nothing else and runs the blocks and
examples that name it; one runs the kill storms in full, one meets the release before. Prints a table at the end; the exit code counts the failures.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tests import snippets

ROOT = Path(__file__).parent.parent
TESTING = [
    "pytest>=8.2",
    "pytest-timeout>=2.3",
    "pytest-xdist>=3.6",
    "hypothesis>=6.100",
    "respx>=0.21",
    "trio>=0.26",
    "trustme>=1.1",
    "typing-extensions",
]
LOWEST = [
    "typer==0.26.1",
    "rich==13.8.0",
    "httpx==0.27.0",
    "pydantic==2.9.0",
    "snowballstemmer==3.1.0",
    "starlette==1.0.1",
    "uvicorn==0.30.0",
    "anyio==4.5.0",
    "opentelemetry-sdk==1.34.0",
    "prometheus_client==0.20.0",
]
# The folders of packs, and which further tests a row runs. Each row runs both halves: leaks and kills are in the slow one.
PACKS: dict[str, tuple[str, ...]] = {
    "autogen": (),
    "agentchat": (),
    "agent_framework": ("tests/packs",),
    "ag2": ("tests/packs",),
    "mcp": (),
}
BOTH_HALVES = ("-m", "slow or not slow")

OLDER = "46db5b7"
"""The commit of 0.2: its service and its client have to work with ours."""
STORMS = ("tests/outbox/test_storms.py", "tests/outbox/test_kills.py", "-m", "slow", "-k", "storm")


@dataclass(frozen=True)
class Row:
    """One environment: which Python, what to install, which tests."""

    name: str
    python: str
    install: tuple[str, ...]
    tests: tuple[str, ...] = ("tests",)
    variables: tuple[tuple[str, str], ...] = ()
    pages: bool = False
    """No tests, but the blocks and examples of the pages that name this installation."""
    beside: str = ""
    """A commit that is installed beside, for the tests that meet another release."""


def rows() -> list[Row]:
    """Everything that can be run on this machine."""
    pythons = {version: found for version in ("3.11", "3.12", "3.13", "3.14") if (found := _find(version))}
    found = [Row(f"Python {version}", path, (".[dev]",)) for version, path in pythons.items()]
    measured = ("opentelemetry-sdk", "prometheus-client")
    lowest = (".[server,cli]", *TESTING, "kronvex==0.5.2", "botwire==0.2.1", *measured, *LOWEST)
    packs = ("tests", *(f"--ignore=tests/{folder}" for folder in PACKS))
    found.append(Row("lowest dependencies", next(iter(pythons.values())), lowest, packs))
    found.append(
        Row("kill storms", next(iter(pythons.values())), (".[dev]",), STORMS, (("KRONMEM_TEST_KILLS", "100"),))
    )
    meeting = ("tests/test_older_services.py", "tests/packs/test_frameworks.py", "-k", "older", *BOTH_HALVES)
    found.append(Row("beside 0.2", next(iter(pythons.values())), (".[dev]",), meeting, beside=OLDER))
    return [*found, *_packs(pythons), *_pages(pythons)]


def _pages(pythons: dict[str, str]) -> list[Row]:
    newest = pythons[max(pythons, key=_number)]
    return [Row(f"pages with {' '.join(one)}", newest, one, (), pages=True) for one in snippets.installs()]


def _packs(pythons: dict[str, str]) -> list[Row]:
    found: list[Row] = []
    for folder in PACKS:
        for name, (requirements, newest) in import_module(f"tests.{folder}.versions").VERSIONS.items():
            python = max((v for v in pythons if newest is None or _number(v) <= _number(newest)), key=_number)
            install = (".[server,cli]", *TESTING, *requirements)
            found.append(Row(name, pythons[python], install, (f"tests/{folder}", *PACKS[folder], *BOTH_HALVES)))
    return found


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _find(version: str) -> str | None:
    """A Python of that version on the path, or among those that pyenv keeps."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for python in filter(None, [shutil.which(f"python{version}"), *map(str, kept)]):
        if subprocess.run([python, "-c", "import venv, sqlite3"], capture_output=True).returncode == 0:
            return python
    return None


def run(row: Row) -> str:
    """Make the environment, run the tests there, and say in one line how it went."""
    with tempfile.TemporaryDirectory() as place:
        python, failed = _installed(row.python, Path(place) / "venv", *row.install)
        variables = dict(row.variables)
        if row.beside and not failed:
            source = Path(place) / "source.tar"
            subprocess.run(["git", "archive", "-o", str(source), row.beside], cwd=ROOT, check=True)
            shutil.unpack_archive(source, source.with_suffix(""))
            variables["KRONMEM_TEST_OLDER"], failed = _installed(
                row.python, Path(place) / "older", f"{source.with_suffix('')}[server,cli]"
            )
        if failed:
            return f"install failed: {failed}"
        if row.pages:
            return snippets.check(python, row.install)
        ran = subprocess.run(
            [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *row.tests],
            cwd=ROOT,
            capture_output=True,
            text=True,
            env={**os.environ, **variables},
        )
        lines = [line for line in ran.stdout.strip().splitlines() if line]
        if ran.returncode:
            print("\n".join(lines[-30:]), ran.stderr[-2000:], file=sys.stderr)
        return lines[-1].strip("= ") if lines else ran.stderr.strip()[-200:]


def _installed(base: str, venv: Path, *install: str) -> tuple[str, str]:
    """The Python of a new environment, and what went wrong with the installation."""
    subprocess.run([base, "-m", "venv", str(venv)], check=True)
    python = str(venv / "bin" / "python")
    pip = subprocess.run([python, "-m", "pip", "install", "-q", *install], cwd=ROOT, capture_output=True, text=True)
    return python, pip.stderr.strip().splitlines()[-1][:200] if pip.returncode else ""


def main(names: list[str]) -> int:
    """Run the rows asked for, or all of them."""
    chosen = [row for row in rows() if not names or any(name in row.name for name in names)]
    if "--list" in names:
        print("\n".join(row.name for row in rows()))
        return 0
    results = {row: run(row) for row in chosen}
    print("| environment | Python | result |\n|---|---|---|")
    for row, result in results.items():
        print(f"| {row.name} | {_version(row.python)} | {result} |")
    return sum("failed" in result or "error" in result for result in results.values())


def _version(python: str) -> str:
    return subprocess.run([python, "-V"], capture_output=True, text=True).stdout.split()[-1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
