"""The command, run in this process."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from kronmem.cli.app import app

NOWHERE = "http://127.0.0.1:9"


def run(*words: str, stdin: str | None = None) -> Result:
    """Run one command."""
    return CliRunner().invoke(app, list(words), input=stdin)


def lines(result: Result) -> list[Any]:
    """The lines that it printed, each read as JSON."""
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]
