"""What it costs to have kronmem at all: import time and cold starts beside httpx and pydantic, and megabytes on disk."""

from __future__ import annotations

import importlib.metadata
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import kronmem
from tests.benchmarks.measure import Times, in_turn, installed
from tests.benchmarks.peers import MODULES

PACKAGE = Path(kronmem.__file__).parent

BASE = "httpx and pydantic"
CLIENT = "from kronmem import Client"
"""What `import kronmem` leaves for later; the peers differ in how much they leave."""


def times(rounds: int) -> Times:
    """Seconds to start Python and import, less those to start it and import nothing."""
    codes = {"kronmem": "import kronmem", BASE: "import httpx, pydantic", CLIENT: CLIENT}
    codes |= {name: f"import {module}" for name, module in MODULES.items() if installed(module)}
    for code in codes.values():
        _start(code)  # whoever has no bytecode yet writes it now
    empty = min(_start("pass") for _ in range(5))
    return in_turn({name: lambda code=code: max(_start(code) - empty, 1e-4) for name, code in codes.items()}, rounds)


COLD = {
    "remember and recall": ["-c", "from kronmem import Client\nwith Client() as client:\n client.remember('a', 'Tea at five')\n client.recall('a', 'tea')"],
    "kronmem --help": ["-m", "kronmem", "--help"],
    "kronmem recall": ["-m", "kronmem", "recall", "tea", "--agent", "a"],
}  # fmt: skip


def cold(rounds: int) -> Times:
    """CPU seconds of fresh processes from start to end, beside one that imports httpx and pydantic."""
    with tempfile.TemporaryDirectory() as home:
        commands = {BASE: ["-c", "import httpx, pydantic"], **COLD}
        for command in commands.values():
            _cpu(command, home)  # bytecode, and the database
        return in_turn(
            {name: lambda command=command: _cpu(command, home) for name, command in commands.items()}, rounds
        )


def _cpu(command: list[str], home: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**_with_bytecode(), "KRONMEM_HOME": home}
    subprocess.run([sys.executable, *command], check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _start(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=_with_bytecode())
    return time.perf_counter() - began


def _with_bytecode() -> dict[str, str]:
    """The environment of an installed package: compiled once, at the latest by the first start."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def megabytes() -> dict[str, float]:
    """What each takes on disk, with everything it needs."""
    names = ["kronmem", *(name for name, module in MODULES.items() if installed(module))]
    return {name: sum(map(_size, _needs(name, set()))) / 1e6 for name in names}


def _needs(name: str, seen: set[str]) -> set[str]:
    if (name := canonicalize_name(name)) in seen:
        return seen
    seen.add(name)
    for line in importlib.metadata.requires(name) or []:
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
            _needs(wanted.name, seen)
    return seen


def _size(name: str) -> int:
    if name == "kronmem":  # installed from a checkout, it lists only a pointer to it
        return sum(path.stat().st_size for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc")
    files = importlib.metadata.files(name) or []
    return sum(path.stat().st_size for path in (file.locate() for file in files) if path.is_file())
