"""The outbox file deleted under a process that uses it: what is queued afterwards is on disk."""

from __future__ import annotations

import multiprocessing
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kronmem import Client
from kronmem.outbox.queue import OutboxFile
from kronmem.sqlite_file import ENDINGS
from tests.outbox.services import NOBODY, ONCE, keeping, texts
from tests.services import RawServer


def remove(path: Path) -> None:
    for ending in ENDINGS:
        Path(f"{path}{ending}").unlink(missing_ok=True)


def test_what_is_queued_after_the_file_was_deleted_is_on_disk_for_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "o.db"
    with Client(NOBODY, outbox=path, retry=ONCE) as client:
        client.remember_later("alice", "before")
        remove(path)
        client.remember_later("alice", "after")
        with closing(sqlite3.connect(path)) as db:
            assert [row[0].count("after") for row in db.execute("SELECT body FROM waiting")] == [1]


@pytest.mark.slow
def test_a_file_that_another_process_began_anew_is_used_with_its_own_salt(tmp_path: Path) -> None:
    path = tmp_path / "o.db"
    with RawServer([keeping]) as server, Client(server.url, outbox=path) as client:
        client.remember_later("alice", "before")
        assert client.outbox.flush(20.0) == 0
        remove(path)
        with multiprocessing.get_context("spawn").Pool(1) as others:
            others.apply(_begin, (str(path), server.url))
        client.remember_later("alice", "after")
        assert client.outbox.flush(20.0) == 0
        assert client.outbox.stranded() == []
        assert texts(server)[-1] == "after"


def _begin(path: str, url: str) -> None:
    with closing(OutboxFile(path)) as file:
        file.lane(url, "")
