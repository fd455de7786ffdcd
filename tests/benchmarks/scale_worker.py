"""One installed kronmem, told over standard input: `python scale_worker.py DATABASE`, a file or a PostgreSQL url. Works with 0.1 as well as today's.

A line in is `[command, texts]`, a line out the seconds of each call (`room`: bytes). Only public names are used.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

from kronmem import Client

AGENT = "agent-0"


def main(path: str) -> None:
    """Answer until there is nothing more to read."""
    with Client(path if "://" in path else f"sqlite:///{path}") as client:
        agent = client.agent(AGENT)
        calls = {
            "batch": lambda texts: agent.remember_many(texts),
            "single": lambda text: agent.remember(text),
            "recall": lambda text: agent.recall(text, 5, threshold=0.0),
        }
        for line in sys.stdin:
            command, texts = json.loads(line)
            done = [room(path)] if command == "room" else [seconds(calls[command], text) for text in texts]
            print(json.dumps(done), flush=True)


def seconds(call: object, text: object) -> float:
    """How long one call takes."""
    began = time.perf_counter()
    call(text)  # type: ignore[operator]  # one of the lambdas above
    return time.perf_counter() - began


def room(path: str) -> int:
    """The size of the file once its log is written into it, or of the tables once they are vacuumed."""
    if "://" in path:
        return tables(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(path).stat().st_size


def tables(url: str) -> int:
    """The bytes of tables and indexes."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
        found = connection.execute(
            """SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class AS c
            JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE nspname = 'kronmem' AND relkind = 'r'"""
        ).fetchone()
    return int(found[0]) if found else 0


if __name__ == "__main__":
    main(sys.argv[1])
