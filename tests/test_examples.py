"""The examples that belong to no pack run, offline, and print what they are expected to; every example is in the README."""

from __future__ import annotations

import os
import subprocess
import sys
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


def test_every_example_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    missing = [path.name for path in (ROOT / "examples").glob("*.py") if path.name not in readme]
    assert missing == []
