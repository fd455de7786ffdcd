"""The tables of an outbox file."""

from __future__ import annotations

from kronmem.sqlite_file import FileSchema

_HEAD = "service, mark, agent, seq, max(backoff, asked, lease), noted, lease"


def _head_again(row: str) -> str:
    """The statements of a trigger that find the oldest waiting row of an agent anew."""
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
        # Rows that the service may have stored although nobody heard so.
        "CREATE TABLE sent(seq INTEGER PRIMARY KEY)",
        """CREATE TRIGGER sent_out AFTER DELETE ON waiting BEGIN
            DELETE FROM sent WHERE seq = OLD.seq; END""",
    ),
    too_old="was written by kronmem 0.1, which this version does not read: let 0.1 deliver what waits and move it away",
    sign="sent",
)
