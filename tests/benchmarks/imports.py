"""What it costs to have kronmem at all: import time beside httpx and pydantic, and megabytes on disk."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import time

from tests.benchmarks.measure import Times, in_turn, installed

OURS = "import kronmem"
BASE = "import httpx, pydantic"
PEERS = {
    "mem0ai": "mem0",
    "kronvex": "kronvex",
    "letta-client": "letta_client",
    "zep-cloud": "zep_cloud",
    "supermemory": "supermemory",
}
ENOUGH = [
    "kronmem",
    "httpx",
    "httpcore",
    "h11",
    "anyio",
    "idna",
    "certifi",
    "sniffio",
    "snowballstemmer",
    "typing_extensions",
]
ENOUGH += ["pydantic", "pydantic_core", "annotated-types", "typing-inspection"]


def times(rounds: int) -> Times:
    """Seconds to start Python and import, less those to start it and import nothing."""
    codes = {"kronmem": OURS, "httpx and pydantic": BASE}
    codes |= {name: f"import {module}" for name, module in PEERS.items() if installed(module)}
    empty = min(_start("pass") for _ in range(5))
    return in_turn({name: lambda code=code: max(_start(code) - empty, 1e-4) for name, code in codes.items()}, rounds)


def _start(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return time.perf_counter() - began


def megabytes(distributions: list[str]) -> float:
    """What these distributions take on disk."""
    total = 0
    for name in distributions:
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        total += sum(path.stat().st_size for path in (file.locate() for file in files) if path.is_file())
    return total / 1e6
