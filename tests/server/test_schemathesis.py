"""Schemathesis reads the OpenAPI document, asks everything it allows, and finds nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.services.kronmem import ServedKronmem

CONFIG = Path(__file__).parent / "schemathesis.toml"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_schemathesis_finds_nothing(unlocked: ServedKronmem, tmp_path: Path) -> None:
    pytest.importorskip("schemathesis")
    tool = Path(sys.executable).with_name("schemathesis")
    command = [str(tool), "--config-file", str(CONFIG), "run", f"{unlocked.url}/openapi.json", "--no-color"]
    options = ["--max-examples", "30", "--seed", "1", "--request-timeout", "20"]
    options += ["--suppress-health-check", "too_slow"]  # a busy machine draws examples slowly
    ran = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ))
    assert ran.returncode == 0, ran.stdout[-20000:]
    operations = httpx.get(f"{unlocked.url}/openapi.json", trust_env=False, timeout=60).json()["paths"].values()
    assert f"Tested: {sum(map(len, operations))}\n" in ran.stdout
