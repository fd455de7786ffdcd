"""Exceptions out of signal handlers, at any step of a call: no lock stays taken and the next calls are answered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.services import RawServer
from tests.services.raw import respond
from tests.transport.interrupted import AT_ONCE

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGALRM")
@pytest.mark.parametrize("count", [300, pytest.param(5_000, marks=pytest.mark.slow)])
def test_many_interrupted_calls_leave_a_client_that_works(count: int) -> None:
    with RawServer([respond(200, body={"results": []})]) as server:
        command = [sys.executable, "-m", "tests.transport.interrupted", server.url, str(count)]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == [str(count), str(AT_ONCE)]
