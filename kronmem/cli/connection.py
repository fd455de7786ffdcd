"""The client of one command, and its errors as words with an exit code.

Exit codes: 0 done, 1 the service refused or was away, 2 wrong use, 3 queued, 130 interrupted.
"""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from difflib import get_close_matches

import typer

import kronmem
from kronmem.cli import discard_output
from kronmem.cli.printing import note, shown

QUEUED = 3
"""The exit code when something waits in the outbox and is not at the service yet."""
INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it: 128 and the number of the signal."""


def key_for(url: str | None) -> str | None:
    """The key in KRONMEM_API_KEY for a service named on the command line; None leaves the choice to the client."""
    chosen = url is not None and url.startswith(("http://", "https://")) and not os.environ.get("KRONMEM_URL")
    return os.environ.get("KRONMEM_API_KEY") or None if chosen else None


@contextmanager
def connected(url: str | None, *, patient: bool = False) -> Generator[kronmem.Client, None, None]:
    """A client for one command. A key in KRONMEM_API_KEY goes to `url` when KRONMEM_URL is not set.

    A person waits at the prompt: where nothing listens it is tried again without pauses, unless `patient`.
    """
    with reported(url):
        retry = kronmem.Retry() if patient else kronmem.Retry(first=0.0)
        with warnings.catch_warnings(record=True) as raised:
            client = kronmem.Client(url, api_key=key_for(url), retry=retry)
        for warning in raised:
            note(f"kronmem: warning: {warning.message}")
        with client:
            yield client


@contextmanager
def reported(url: str | None = None) -> Generator[None, None, None]:
    """Turn an error into a sentence and an exit code, never a traceback."""
    try:
        yield
    except (kronmem.ConfigError, kronmem.InvalidInputError) as error:
        note(f"kronmem: {error}")
        raise typer.Exit(2) from None
    except kronmem.KronmemError as error:
        note_error(error, url)
        raise typer.Exit(1) from None
    except BrokenPipeError:  # `| head` has read enough; click would exit with 1
        discard_output()
        raise typer.Exit(0) from None


def note_error(error: kronmem.KronmemError, url: str | None) -> None:
    """An error of a service; a refused key is named by its variable."""
    note(f"kronmem: {error}")
    if isinstance(error, kronmem.AuthError):
        from kronmem import settings

        where = settings.resolve(url, key_for(url))
        variable = "KRONVEX_API_KEY" if where.kronvex and key_for(url) is None else "KRONMEM_API_KEY"
        note(f"The key in {variable} is not the right one for {shown(where.url)}.")


def nothing(client: kronmem.Client, agent: str | None, words: str) -> None:
    """Note that there is nothing, and which agent may have been meant; the answer itself stays empty."""
    if agent is None or not unknown(client, agent):
        note(words)


def unknown(client: kronmem.Client, agent: str) -> bool:
    """Whether there is no agent of that name; a note then has the names like it."""
    try:
        names = [one.name for one in client.agents()]
    except kronmem.KronmemError:  # only a hint: the command itself has its answer
        return False
    if agent in names or not names:
        return False
    close = get_close_matches(agent, names, 3) or [name for name in names if name.lower() == agent.lower()]
    few = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
    note(f"No agent {agent!r}. " + (f"Did you mean {' or '.join(close)}?" if close else f"There are: {few}"))
    return True


@contextmanager
def named(client: kronmem.Client, agent: str) -> Generator[None, None, None]:
    """Name the agents like the one that was typed when an id is not found under it."""
    try:
        yield
    except kronmem.NotFoundError:
        if not unknown(client, agent):
            note(f"`kronmem list --agent {shlex.quote(agent)}` shows the ids.")
        raise
