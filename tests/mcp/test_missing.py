"""Collected only where mcp is missing: the gap shows in the report."""

from __future__ import annotations

import subprocess
import sys

import httpx
import pytest

from tests.conftest import OWNERS
from tests.services.kronmem import ServedKronmem


def test_the_pack_says_what_to_install() -> None:
    sys.modules.pop("kronmem.mcp", None)
    with pytest.raises(ImportError, match=r"pip install 'kronmem\[mcp\]'"):
        __import__("kronmem.mcp")


def test_the_rest_of_this_folder_needs_the_framework() -> None:
    pytest.skip("mcp is not installed: pip install 'kronmem[mcp]'")


def test_the_command_says_what_to_install() -> None:
    ran = subprocess.run([sys.executable, "-m", "kronmem", "mcp", "--agent", "ada"], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (2, "kronmem: MCP needs its extra: pip install 'kronmem[mcp]'\n")


def test_the_server_says_what_to_install_to_whoever_has_a_key(served: ServedKronmem) -> None:
    url = f"{served.url}/mcp/ada"
    assert httpx.post(url, json={}, timeout=60).status_code == 401
    refused = httpx.post(url, json={}, headers={"x-api-key": next(iter(OWNERS))}, timeout=60)
    assert refused.status_code == 501
    assert "pip install 'kronmem[mcp]'" in refused.json()["detail"]
