"""The `kronmem` command (extra `cli`). Without its libraries it names the extra and exits with 2."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

HINT = "the kronmem command needs its extra: pip install 'kronmem[cli]'"


def main() -> None:
    """Run the command line; ends the process."""
    if sys.argv[1:] == ["--version"]:  # also without the extra
        sys.stdout.write(f"{version()}\n")
        return
    try:
        from kronmem.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("typer", "rich", "click"):
            raise
        sys.stderr.write(f"{HINT}\n")
        raise SystemExit(2) from None
    raise SystemExit(_printed(app))


def version() -> str:
    """The version of kronmem; 0 in a checkout that was never installed."""
    from importlib import metadata  # takes as long to load as the rest of a help page

    try:
        return metadata.version("kronmem")
    except metadata.PackageNotFoundError:
        return "0"


def _printed(run: Callable[[], object]) -> int:
    """Run, and see that the output arrived: a full disk is an error, a reader who has read enough is none."""
    code = 0
    try:
        try:
            run()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        if not sys.stdout.closed:  # mcp 1.x closes it when its client is gone
            sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
    except OSError as error:
        discard_output()
        sys.stderr.write(f"kronmem: cannot write the output: {error.strerror}\n")
        return 1
    return code


def discard_output() -> None:
    """Write no more: the text that is still buffered would be complained about when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
