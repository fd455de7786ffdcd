"""The outbox file: its tables and rows, its transactions and the lanes in it.

It is moved away when damaged, drained when the disk is full, and not waited for when it is busy.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import json
import logging
import os
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from sqlite3 import Connection
from typing import NamedTuple, Self, TypeVar

from pydantic import JsonValue, TypeAdapter, ValidationError

from kronmem.core.calls import Draft
from kronmem.errors import DeadlineError, StoreError
from kronmem.models import DeadLetter, QueuedMemory
from kronmem.sqlite_file import DiskFullError, FileMovedError, FileSchema, SqliteFile

T = TypeVar("T")

RESERVE = 1024 * 1024
"""Kept free for draining: delivering on a full disk needs room for twice the WAL, which is held below half of this."""
PAGE = 4096
"""Bytes of a page: SQLite's default."""
BUSY = 5.0
"""A file that was found busy is not waited for again during this time, only tried."""
TRY = 0.05
"""Long enough for another thread's own short transaction."""

log = logging.getLogger("kronmem")


class DurableFile:
    """Runs transactions on the outbox file, be it damaged, full or busy."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.salt: bytes | None = None
        """The one that this process's lanes were made with; a new file gets it too."""
        self._number = 1
        self._reserved = False
        self._busy_until = 0.0
        self._lock = threading.Lock()
        self._file = self._new_file()

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def run(
        self, begin: str, synchronous: str, timeout: float, work: Callable[[Connection], T], *, drains: bool = True
    ) -> T:
        """Do `work` as one transaction."""
        file, ends = self._file, time.monotonic() + timeout
        try:
            return self._once(file, begin, synchronous, timeout, work)
        except DiskFullError:
            if not drains:
                raise
            self._make_room(file, ends)
        except StoreError as error:
            if isinstance(error, FileMovedError):
                self._reopen(file, error, ends)
            elif error.damaged:
                raise self._damaged(error) from error
            elif self._current() is file:  # else another thread has begun a new one and closed the old one under us
                raise
        return self._once(self._file, begin, synchronous, ends - time.monotonic(), work)

    def _once(
        self, file: SqliteFile, begin: str, synchronous: str, timeout: float, work: Callable[[Connection], T]
    ) -> T:
        if time.monotonic() < self._busy_until:
            timeout = min(timeout, TRY)
        try:
            with file.transaction(begin, timeout, synchronous=synchronous) as db:
                answer = work(db)
        except DeadlineError:
            self._busy_until = time.monotonic() + BUSY
            raise
        if begin != "BEGIN":
            self._busy_until = 0.0
        return answer

    def number(self, timeout: float) -> int:
        """How many files this process has used at this path, the one that is there now included."""
        file = self._file
        if file.has_moved():
            self._reopen(file, FileMovedError(self.path), time.monotonic() + timeout)
        return self._number

    def scrub(self, timeout: float) -> bool:
        """See that no deleted text is left in the file and its log."""
        return self._file.scrub(timeout)

    # ── a full disk ──────────────────────────────────────────────────────────────────────────────────────────────

    def make_reserve(self) -> None:
        """Hold room for draining; without it nothing new is accepted."""
        if self._reserved:
            return
        path = f"{self.path}-reserve"
        try:
            os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
            try:
                if os.fstat(descriptor).st_size == 0:
                    _fill(descriptor, self._room())
            finally:
                os.close(descriptor)
        except OSError as error:
            with suppress(OSError):
                os.unlink(path)
            raise DiskFullError(f"{self.path} cannot grow: {error.strerror or error}") from error
        self._reserved = True

    def _make_room(self, file: SqliteFile, ends: float) -> None:
        self._reserved = False
        with suppress(OSError):
            os.unlink(f"{self.path}-reserve")
        file.scrub(ends - time.monotonic())

    def _room(self) -> int:
        try:
            disk = os.statvfs(os.path.dirname(os.path.abspath(self.path)))
        except (OSError, AttributeError):  # no such directory yet; Windows has no statvfs
            return RESERVE
        return min(RESERVE, disk.f_bavail * disk.f_frsize // 4 // PAGE * PAGE)

    def _keep_wal_small(self, db: Connection) -> None:
        # What the WAL holds needs its room in the database too before the WAL can begin again.
        with suppress(OSError):
            size = os.path.getsize(f"{self.path}-reserve")
            db.execute(f"PRAGMA wal_autocheckpoint = {max(4, size // PAGE // 2)}")
            return
        db.execute(f"PRAGMA wal_autocheckpoint = {max(4, self._room() // PAGE // 2)}")

    # ── a file that was moved away, or is damaged ────────────────────────────────────────────────────────────────

    def _reopen(self, file: SqliteFile, error: StoreError, ends: float) -> None:
        with self._lock:
            if self._file is not file:  # another thread has done it
                return
            if not file.close_at_rest(ends - time.monotonic()):
                raise error
            self._file, self._number = self._new_file(), self._number + 1
        log.error("%s; a new outbox was begun", error)

    def _damaged(self, error: StoreError) -> StoreError:
        command = f"sqlite3 {shlex.quote(self.path)} .recover"
        return StoreError(f"{error}: copy what is readable with  {command}  and move it away", damaged=True)

    def _current(self) -> SqliteFile:
        with self._lock:  # between closing the old file and opening the new one, neither can be used
            return self._file

    def _new_file(self) -> SqliteFile:
        schema = SCHEMA
        if self.salt is not None:
            schema = replace(schema, create=(*schema.create, f"INSERT INTO salt VALUES(x'{self.salt.hex()}')"))
        return SqliteFile(self.path, schema, self._keep_wal_small)


def _fill(descriptor: int, size: int) -> None:
    """Write bytes that no file system stores as a hole or compresses away."""
    data = memoryview(secrets.token_bytes(size))
    while data:
        data = data[os.write(descriptor, data) :]


# The tables of an outbox file.

_HEAD = "service, mark, agent, seq, max(backoff, asked, lease), noted, lease"


def _head_again(row: str) -> str:
    """The statements of a trigger that find the oldest waiting row of an agent again."""
    lane = f"service = {row}.service AND mark = {row}.mark AND agent = {row}.agent"
    return f"""DELETE FROM head WHERE {lane} AND seq = {row}.seq;
        INSERT OR IGNORE INTO head SELECT {_HEAD} FROM waiting WHERE {lane} AND dead = 0 ORDER BY seq LIMIT 1;"""


SCHEMA = FileSchema(
    application_id=0x6B726F6F,
    version=1,
    create=(
        "CREATE TABLE salt(value BLOB NOT NULL)",
        "CREATE TABLE total(rows INTEGER NOT NULL, bytes INTEGER NOT NULL)",
        "INSERT INTO total VALUES(0, 0)",
        """CREATE TABLE waiting(
            seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, service TEXT NOT NULL, mark TEXT NOT NULL,
            agent TEXT NOT NULL, session TEXT, body TEXT NOT NULL, bytes INTEGER NOT NULL, created REAL NOT NULL,
            dead INTEGER NOT NULL DEFAULT 0, refused INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
            cancelled INTEGER NOT NULL DEFAULT 0, error TEXT, noted REAL NOT NULL DEFAULT 0,
            backoff REAL NOT NULL DEFAULT 0, asked REAL NOT NULL DEFAULT 0, lease REAL NOT NULL DEFAULT 0,
            holder TEXT NOT NULL DEFAULT '')""",
        # Numbers differ from those of the file before, should that one be set aside while rows of it are being sent.
        "INSERT INTO sqlite_sequence VALUES('waiting', abs(random() >> 12))",
        "CREATE INDEX waiting_lane ON waiting(service, mark, dead, agent, seq)",
        """CREATE TABLE delivered(
            id TEXT PRIMARY KEY, service TEXT NOT NULL, agent TEXT NOT NULL, memory TEXT NOT NULL, at REAL NOT NULL
        ) WITHOUT ROWID""",
        "CREATE INDEX delivered_at ON delivered(at)",
        """CREATE TRIGGER waiting_in AFTER INSERT ON waiting BEGIN
            UPDATE total SET rows = rows + 1, bytes = bytes + NEW.bytes; END""",
        """CREATE TRIGGER waiting_out AFTER DELETE ON waiting BEGIN
            UPDATE total SET rows = rows - 1, bytes = bytes - OLD.bytes; END""",
        # The oldest waiting row of every agent: who is due is found here, however many rows stand behind.
        """CREATE TABLE head(
            service TEXT NOT NULL, mark TEXT NOT NULL, agent TEXT NOT NULL, seq INTEGER NOT NULL,
            due REAL NOT NULL, noted REAL NOT NULL, lease REAL NOT NULL,
            PRIMARY KEY(service, mark, agent)) WITHOUT ROWID""",
        "CREATE INDEX head_due ON head(service, mark, due, seq)",
        "CREATE INDEX head_noted ON head(service, mark, noted, lease)",
        f"""CREATE TRIGGER head_in AFTER INSERT ON waiting WHEN NEW.dead = 0 BEGIN
            INSERT OR IGNORE INTO head SELECT {_HEAD} FROM waiting WHERE seq = NEW.seq; END""",
        f"CREATE TRIGGER head_out AFTER DELETE ON waiting BEGIN {_head_again('OLD')} END",
        f"""CREATE TRIGGER head_moved AFTER UPDATE OF service, mark, agent, dead ON waiting BEGIN
            {_head_again("OLD")}
            DELETE FROM head WHERE service = NEW.service AND mark = NEW.mark AND agent = NEW.agent;
            {_head_again("NEW")} END""",
        """CREATE TRIGGER head_noted AFTER UPDATE OF noted, backoff, asked, lease ON waiting BEGIN
            UPDATE head SET due = max(NEW.backoff, NEW.asked, NEW.lease), noted = NEW.noted, lease = NEW.lease
            WHERE service = NEW.service AND mark = NEW.mark AND agent = NEW.agent AND seq = NEW.seq; END""",
        # 429 is about the key, not about one row: nothing of the lane is sent before this time.
        """CREATE TABLE pause(
            service TEXT NOT NULL, mark TEXT NOT NULL, until REAL NOT NULL, noted REAL NOT NULL,
            PRIMARY KEY(service, mark)) WITHOUT ROWID""",
        # The traceparent of the span that queued a row.
        "CREATE TABLE origin(seq INTEGER PRIMARY KEY, traceparent TEXT NOT NULL)",
        """CREATE TRIGGER origin_out AFTER DELETE ON waiting BEGIN
            DELETE FROM origin WHERE seq = OLD.seq; END""",
        # Rows that the service may have stored although no reply came.
        "CREATE TABLE sent(seq INTEGER PRIMARY KEY)",
        """CREATE TRIGGER sent_out AFTER DELETE ON waiting BEGIN
            DELETE FROM sent WHERE seq = OLD.seq; END""",
    ),
    too_old="was written by kronmem 0.1, which this version does not read: let 0.1 deliver what waits and move it away",
    sign="sent",
)


# The file under an outbox: its transactions, and the lanes in it.

_SET_ASIDE = "SELECT 1 FROM sqlite_master WHERE name = 'set_aside'"
"""A table that 0.2 made: the memories that its repairs at Kronvex had deleted for a moment."""


@dataclass(frozen=True)
class Lane:
    """The rows of one service and one key."""

    service: str
    mark: str


class QueueFile:
    """One file that several processes may share. Every method is one transaction."""

    def __init__(self, path: str, *, now: Callable[[], float] = time.time, timeout: float = 5.0) -> None:
        self.path = path
        self._now, self._timeout = now, timeout
        self._disk = DurableFile(path)

    def within(self, timeout: float) -> Self:
        """The same file for a caller with so many seconds left."""
        other = copy.copy(self)
        other._timeout = max(timeout, 0.0)
        return other

    def close(self) -> None:
        """Release the file."""
        self._disk.close()

    def lane(self, service: str, key: str) -> Lane:
        """The lane of a service and a key: the key itself is not written anywhere."""
        salt = self.read(self._salt) or self.write(self._new_salt)
        return Lane(service, hmac.new(salt, key.encode(), hashlib.sha256).hexdigest()[:32])

    def number(self) -> int:
        """Changes when another file is at the path: that one may have a salt of its own."""
        return self._disk.number(self._timeout)

    def _salt(self, db: Connection) -> bytes | None:
        row = db.execute("SELECT value FROM salt").fetchone()
        if row is None:
            return None
        self._disk.salt = bytes(row[0])  # inside the transaction: no other thread sets the file aside in between
        return self._disk.salt

    def _new_salt(self, db: Connection) -> bytes:
        if (salt := self._salt(db)) is None:
            self._disk.salt = salt = self._disk.salt or secrets.token_bytes(16)
            db.execute("INSERT INTO salt VALUES(?)", (salt,))
        return salt

    def read(self, work: Callable[[Connection], T]) -> T:
        """Do `work` as one reading transaction."""
        return self._disk.run("BEGIN", "FULL", self._timeout, work)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do `work` as one transaction that is on disk when this returns."""
        return self._disk.run("BEGIN IMMEDIATE", "FULL", self._timeout, work)

    def set_aside(self, lane: Lane) -> list[tuple[str, str]]:
        """Agent and id of each memory that a repair of 0.2 has left deleted, and that was not forgotten since."""

        def work(db: Connection) -> list[tuple[str, str]]:
            if db.execute(_SET_ASIDE).fetchone() is None:
                return []
            sql = "SELECT agent, memory FROM set_aside WHERE service = ? AND mark = ? AND forgotten = 0 ORDER BY at"
            return db.execute(sql, (lane.service, lane.mark)).fetchall()

        return self.read(work)

    def drop_set_aside(self, lane: Lane) -> None:
        """Drop the notes of these memories, and with the last one of all lanes their table."""

        def work(db: Connection) -> None:
            if db.execute(_SET_ASIDE).fetchone() is None:  # another process was faster
                return
            db.execute("DELETE FROM set_aside WHERE service = ? AND mark = ?", (lane.service, lane.mark))
            if db.execute("SELECT 1 FROM set_aside LIMIT 1").fetchone() is None:
                db.execute("DROP TABLE set_aside")

        if self.read(lambda db: db.execute(_SET_ASIDE).fetchone()) is not None:
            self.write(work)

    def _note(self, work: Callable[[Connection], T]) -> T:
        # Without an fsync: a power cut may undo it, and then the row is sent once more under the same id.
        return self._disk.run("BEGIN IMMEDIATE", "NORMAL", self._timeout, work)

    def _change(self, sql: str, values: Sequence[tuple[float, ...]]) -> None:
        # The count, not the cursor: one that outlives its transaction would keep the file open across a fork.
        self._note(lambda db: db.executemany(sql, values).rowcount)


# A memory as a row of the outbox and back. The body is JSON; fields that this version does not know stay in it.

_DRAFT = TypeAdapter(Draft)
_BESIDE = frozenset({"agent_id", "client_id"})
"""Fields with a column of their own."""
COLUMNS = (
    "seq, CAST(id AS BLOB), CAST(agent AS BLOB), CAST(body AS BLOB), created, attempts, refused, cancelled,"
    " CAST(error AS BLOB), backoff, asked, service, lease, noted, holder,"
    " (SELECT CAST(traceparent AS BLOB) FROM origin WHERE origin.seq = waiting.seq)"
)
"""Texts as bytes: SQLite keeps what it is given, UTF-8 or not, and one bad row must not hide the others."""


class QueuedRow(NamedTuple):
    """A row as it is on disk."""

    seq: int
    id: bytes
    agent: bytes
    body: bytes
    created: float
    attempts: int
    refused: int
    cancelled: int
    error: bytes | None
    backoff: float
    asked: float
    service: str
    lease: float
    noted: float
    holder: str
    origin: bytes | None


class UnreadableRowError(ValueError):
    """The row is not a memory."""


@dataclass(frozen=True)
class Waiting:
    """A claimed row."""

    seq: int
    draft: Draft
    created: float
    attempts: int
    refused: int
    cancelled: bool
    lease: float = 0.0
    """When the claim ends; a later claim of the same row has another end."""
    origin: str | None = None
    """The traceparent of the span that queued it."""
    interrupted: bool = False
    """The call that sent it was given up before its answer: the service may have it."""


def encode_row(draft: Draft) -> str:
    """The body of a row: the fields that say something."""
    body: dict[str, JsonValue] = _DRAFT.dump_python(draft, mode="json", exclude_defaults=True)
    return json.dumps({name: value for name, value in body.items() if name not in _BESIDE}, ensure_ascii=False)


def decode(row: QueuedRow) -> Draft:
    """The memory in a row, or `UnreadableRowError` with the reason."""
    try:
        body: object = json.loads(row.body.decode())
        if not isinstance(body, dict):
            raise UnreadableRowError("the body is not a JSON object")
        return _DRAFT.validate_python({**body, "agent_id": row.agent.decode(), "client_id": row.id.decode()})
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise UnreadableRowError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except RecursionError:
        raise UnreadableRowError("the body is nested too deeply") from None
    except UnicodeDecodeError:
        raise UnreadableRowError("the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise UnreadableRowError(f"the body is not JSON ({error.msg})") from None


def is_other_text(row: QueuedRow, draft: Draft) -> bool:
    """Does the row hold another text than this memory's? One that cannot be read may be any."""
    try:
        return decode(row).content != draft.content
    except UnreadableRowError:
        return True


def waiting_row(row: QueuedRow, lease: float) -> Waiting:
    """A row that can be sent."""
    origin = row.origin.decode(errors="replace") if row.origin is not None else None
    return Waiting(row.seq, decode(row), row.created, row.attempts, row.refused, bool(row.cancelled), lease, origin)


def dead_letter(row: QueuedRow) -> DeadLetter:
    """The dead letter of a row; one that cannot be read comes with its bytes."""
    try:
        draft, raw = decode(row), None
    except UnreadableRowError:
        draft, raw = _shown(row), row.body
    return DeadLetter(
        id=draft.client_id,
        agent_id=draft.agent_id,
        content=draft.content,
        memory_type=draft.memory_type,
        error=(row.error or b"").decode(errors="replace"),
        queued_at=_date(row.created),
        raw=raw,
    )


def queued_memory(row: QueuedRow) -> QueuedMemory:
    """A row that waits."""
    try:
        draft = decode(row)
    except UnreadableRowError:
        draft = _shown(row)
    due = max(row.backoff, row.asked)
    return QueuedMemory(
        id=draft.client_id,
        agent_id=draft.agent_id,
        content=draft.content,
        memory_type=draft.memory_type,
        session_id=draft.session_id,
        attempts=row.attempts,
        error=(row.error or b"").decode(errors="replace"),
        queued_at=_date(row.created),
        next_attempt_at=_date(due) if due else None,
        url=row.service,
    )


def _shown(row: QueuedRow) -> Draft:
    return Draft(row.agent.decode(errors="replace"), row.id.decode(errors="replace"), row.body.decode(errors="replace"))


def _date(seconds: float) -> datetime:
    return datetime.fromtimestamp(min(max(seconds, 0.0), 253_402_300_000.0), UTC)  # at most the year 9999
