"""psycopg's errors as ours. A message names the database, never the password."""

from __future__ import annotations

from urllib.parse import urlsplit

import psycopg
from psycopg import errors

from kronmem.engine.store import UndoneError
from kronmem.errors import DeadlineError, KronmemError, StoreError, TransportError

UNPREPARED = (errors.DuplicatePreparedStatement, errors.InvalidSqlStatementName)
"""Another client's statement of the same name, or none: a pooler handed out another server connection."""
_REFUSALS = {
    "42501": "may not be read or written by this role",
    "25006": "may not be written: it is a replica, or default_transaction_read_only is on",
    "53100": "cannot grow: the disk is full",
    "42P01": "has lost a table of kronmem",
    "XX001": "is damaged",
    "XX002": "is damaged",
}
_AWAY = ("08", "57")
"""Connection failures and shutdowns."""


class TimeUp(psycopg.OperationalError):
    """The deadline passed on our side: nothing came from the server, or from a pooler that had none to give."""


def shown(url: str) -> str:
    """The url without its password and its parameters."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    user = f"{parts.username}@" if parts.username else ""
    return f"postgresql://{user}{host}{parts.path}"


def translate(error: psycopg.Error, place: str, *, committing: bool, connected: bool) -> KronmemError:
    """The error to raise. `connected`: the server that told us is still there."""
    code = error.sqlstate or ""
    if isinstance(error, TimeUp):
        return DeadlineError(f"{place} did not answer in time", sent=committing)
    if isinstance(error, (errors.QueryCanceled, errors.LockNotAvailable)):
        return DeadlineError(f"{place} is busy: it did not finish in time", sent=False)
    if code in _REFUSALS:
        damaged = code.startswith("XX")
        return StoreError(f"{place} {_REFUSALS[code]}", damaged=damaged, outage=not damaged)
    if isinstance(error, UNPREPARED):
        return UndoneError(f"{place} is behind a pooler: transaction rolled back, repeated without prepared statements")
    if isinstance(error, (errors.SerializationFailure, errors.DeadlockDetected)):
        return UndoneError(f"{place}: serialization failure, transaction rolled back")
    first = str(error).strip().partition("\n")[0]
    if isinstance(error, errors.InternalError_):  # a coordinator's class for a node that it lost in mid-transaction
        return TransportError(f"{place} failed: {first}", sent=committing, partial=connected)
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        # A coordinator answered: one of its nodes is away, and so are the agents that live there.
        if connected and code[:2] in _AWAY:
            return TransportError(f"a node behind {place} cannot be reached: {first}", sent=committing, partial=True)
        return TransportError(f"{place} cannot be reached, or was lost: {first}", sent=committing)
    return StoreError(f"{place}: {first}")
