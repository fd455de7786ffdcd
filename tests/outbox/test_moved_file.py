"""The outbox file deleted, or set aside by another process or thread: no row is lost, and no sound file set aside."""

from __future__ import annotations

import multiprocessing
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client, StoreError
from kronmem.core.calls import Draft
from kronmem.outbox.queue import OutboxFile
from kronmem.sqlite_file import ENDINGS, rename_lock, renaming
from kronmem.sqlite_file.rename_lock import in_place
from tests.outbox.services import NOBODY, ONCE, change, keeping, texts
from tests.services import RawServer


def draft(name: str) -> Draft:
    return Draft("alice", name, name)


def remove(path: Path) -> None:
    with renaming(str(path), 60.0) as alone:  # at one stroke, or a file made anew in between would lose its log
        assert alone
        for ending in ENDINGS:
            Path(f"{path}{ending}").unlink(missing_ok=True)


def damaged(directory: Path) -> list[Path]:
    return list(directory.glob("o.db.damaged-*[0-9a-f]"))


def test_what_is_queued_after_the_file_was_deleted_is_on_disk_for_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "o.db"
    with Client(NOBODY, outbox=path, retry=ONCE) as client:
        client.remember_later("alice", "before")
        remove(path)
        client.remember_later("alice", "after")
        with closing(sqlite3.connect(path)) as db:
            assert [row[0].count("after") for row in db.execute("SELECT body FROM waiting")] == [1]


def test_an_undamaged_file_that_took_the_place_of_a_damaged_one_is_not_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "o.db"
    with closing(OutboxFile(str(path))) as one, closing(OutboxFile(str(path))) as other:
        lane = one.lane("service", "key")
        assert other.lane("service", "key") == lane
        change(path, "DROP TABLE waiting")
        one.put(lane, [draft("of one")])
        other.put(lane, [draft("of other")])
        assert [row.draft.content for row in one.claim(lane)] == ["of one", "of other"]
    assert len(damaged(tmp_path)) == 1


def test_a_row_of_the_file_set_aside_settles_no_row_of_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "o.db"
    with closing(OutboxFile(str(path))) as file:
        lane = file.lane("service", "key")
        file.put(lane, [draft("old")])
        (row,) = file.claim(lane)
        change(path, "DROP TABLE total")
        file.put(lane, [draft("new")])
        assert file.done(lane, row, "stored")
        assert file.pending(lane) == 1


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


@pytest.mark.slow  # two processes that find the damage at about the same time, again and again
def test_nothing_is_lost_while_two_processes_find_the_damage_at_once(tmp_path: Path) -> None:
    path, rounds = tmp_path / "o.db", 40
    context = multiprocessing.get_context("spawn")
    barrier: Any = context.Barrier(3)
    with RawServer([keeping]) as server:
        others = [context.Process(target=_queue, args=(str(path), server.url, name, rounds, barrier)) for name in "ab"]
        for process in others:
            process.start()
        for _ in range(rounds):
            barrier.wait(120.0)
            change(path, "DROP TABLE total")
            barrier.wait(120.0)
        for process in others:
            process.join(300.0)
            assert process.exitcode == 0
        with Client(server.url, outbox=path) as client:
            assert client.outbox.flush(60.0) == 0
            assert client.outbox.stranded() == []
        expected = {f"{name} {number}" for name in "ab" for number in range(rounds)}
        assert expected <= set(texts(server))


def _queue(path: str, url: str, name: str, rounds: int, barrier: Any) -> None:
    with Client(url, outbox=path) as client:
        for number in range(rounds):
            assert client.outbox.flush(60.0) == 0  # what the damage takes along was delivered before
            client.remember_later(name, f"{name} at first {number}")
            assert client.outbox.flush(60.0) == 0
            barrier.wait(120.0)
            barrier.wait(120.0)
            client.remember_later(name, f"{name} {number}")


def test_a_damaged_file_stays_while_another_process_opens_or_closes_it(tmp_path: Path) -> None:
    path = tmp_path / "o.db"
    with closing(OutboxFile(str(path))) as file:
        lane = file.lane("service", "key")
        change(path, "DROP TABLE total")
        with in_place(str(path)), pytest.raises(StoreError, match="no such table"):
            file.within(0.2).put(lane, [draft("at first")])
        assert not damaged(tmp_path)
        file.put(lane, [draft("then")])
        assert len(damaged(tmp_path)) == 1
        assert file.pending(lane) == 1


def test_a_directory_that_somebody_else_has_locked_is_used_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rename_lock, "PATIENCE", 0.01)
    with renaming(str(tmp_path / "other.db"), 1.0) as alone, Client.local(tmp_path / "memory.db") as client:
        assert alone
        client.remember("alice", "stored")
        assert [memory.content for memory in client.memories("alice")] == ["stored"]
