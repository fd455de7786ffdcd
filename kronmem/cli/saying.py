"""What the command prints, and how it ends: 0 done, 1 the service said no or was away, 2 asked for wrongly."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager

import typer
from pydantic import JsonValue

from kronmem import ConfigError, InvalidInputError, KronmemError


def line(text: str) -> None:
    """One line for people."""
    typer.echo(text)


def as_json(value: JsonValue) -> None:
    """One line for programs."""
    typer.echo(json.dumps(value, ensure_ascii=False))


def note(text: str) -> None:
    """A word aside, which is not the answer."""
    typer.echo(text, err=True)


@contextmanager
def told() -> Generator[None, None, None]:
    """Turn what goes wrong into a sentence and an exit code, never a traceback."""
    try:
        yield
    except (ConfigError, InvalidInputError) as error:
        note(f"kronmem: {error}")
        raise typer.Exit(2) from None
    except KronmemError as error:
        note(f"kronmem: {error}")
        raise typer.Exit(1) from None
    except BrokenPipeError:
        sys.stderr.close()  # `| head` has read enough; Python would complain about the pipe at exit
        raise typer.Exit(0) from None
