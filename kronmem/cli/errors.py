"""Errors as the command tells them; exit codes: 0 done, 1 the service said no or was away, 2 wrong use, 3 queued."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from difflib import get_close_matches

import typer

from kronmem import AuthError, Client, ConfigError, InvalidInputError, KronmemError, TransportError, settings
from kronmem.cli import discard_output
from kronmem.cli.api_keys import key_for
from kronmem.cli.printing import note, shown

QUEUED = 3
"""The exit code when something waits in the outbox and is not at the service yet."""
INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it: 128 and the number of the signal."""


def nothing(client: Client, agent: str | None, words: str) -> None:
    """Say that there is nothing, and which agent may have been meant; the answer itself stays empty."""
    if agent is None or not unknown(client, agent):
        note(words)


def unknown(client: Client, agent: str) -> bool:
    """Say so when there is no agent of that name, with the names like it."""
    try:
        names = [one.name for one in client.agents()]
    except KronmemError:  # only a hint: the command itself has its answer
        return False
    if agent in names or not names:
        return False
    close = get_close_matches(agent, names, 3) or [name for name in names if name.lower() == agent.lower()]
    few = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
    note(f"No agent {agent!r}. " + (f"Did you mean {' or '.join(close)}?" if close else f"There are: {few}"))
    return True


@contextmanager
def told(url: str | None = None) -> Generator[None, None, None]:
    """Turn an error into a sentence and an exit code, never a traceback."""
    try:
        yield
    except (ConfigError, InvalidInputError) as error:
        note(f"kronmem: {error}")
        raise typer.Exit(2) from None
    except KronmemError as error:
        note(f"kronmem: {error}{_advice(error, url)}")
        raise typer.Exit(1) from None
    except BrokenPipeError:  # `| head` has read enough; click would exit with 1
        discard_output()
        raise typer.Exit(0) from None


def _advice(error: KronmemError, url: str | None) -> str:
    if isinstance(error, AuthError):
        where = settings.resolve(url, key_for(url))
        variable = "KRONVEX_API_KEY" if where.kronvex and key_for(url) is None else "KRONMEM_API_KEY"
        return f"\nThe key in {variable} is not the right one for {shown(where.url)}."
    if isinstance(error, TransportError):
        return "\nIs the service running? `kronmem doctor` tells more."
    return ""
