"""No database file is renamed while another process opens or closes it.

SQLite opens and deletes the files of the write-ahead log by name, some time after the database itself: a database that
is renamed in between would get the log of the one that took its place, or delete it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

if sys.platform != "win32":
    import fcntl

LOOK_AGAIN = 0.002
"""Seconds between two tries: a lock is held for about a millisecond."""
PATIENCE = 1.0
"""Opening and closing wait for so long, then go on: somebody else may lock the directory for reasons of their own."""


@contextmanager
def in_place(path: str) -> Generator[None]:
    """While the file is opened or closed: it is not renamed."""
    with _locked(path, exclusive=False, timeout=PATIENCE):
        yield


@contextmanager
def renaming(path: str, timeout: float) -> Generator[bool]:
    """While the file is renamed: nobody opens or closes it. False: somebody does so for longer."""
    with _locked(path, exclusive=True, timeout=timeout) as locked:
        yield locked


@contextmanager
def _locked(path: str, *, exclusive: bool, timeout: float) -> Generator[bool]:
    """Lock the directory: a lock on the file itself would move with it, and one beside it would have to stay."""
    if sys.platform == "win32":  # an open file cannot be renamed there
        yield True
        return
    try:
        directory = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # no such directory, or one that may not be listed
        yield True
        return
    try:
        yield _lock(directory, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH, time.monotonic() + timeout)
    finally:
        with suppress(OSError):
            fcntl.flock(directory, fcntl.LOCK_UN)  # closing alone would leave it to a child that was forked meanwhile
        os.close(directory)


def _lock(directory: int, kind: int, ends: float) -> bool:
    while sys.platform != "win32":
        try:
            fcntl.flock(directory, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= ends:
                return False
            time.sleep(LOOK_AGAIN)
        except OSError:  # a network file system that has no such locks
            break
    return True
