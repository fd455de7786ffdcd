"""The `kronmem` command (extra `cli`). Without its libraries it names the extra to install, and exits with 2."""

from __future__ import annotations

import sys
from importlib import import_module

HINT = "the kronmem command needs its extra: pip install 'kronmem[cli]'"


def main() -> None:
    """Run the command line; ends the process."""
    try:
        import_module("rich")  # typer finds out that it is missing only when there is something to print
        from kronmem.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("typer", "rich", "click"):
            raise
        sys.stderr.write(f"{HINT}\n")
        raise SystemExit(2) from None
    app()
