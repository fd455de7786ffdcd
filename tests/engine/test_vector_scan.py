from __future__ import annotations

import random
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kronmem.engine import index, scan
from kronmem.engine.engine import Engine
from kronmem.engine.service import Service
from kronmem.engine.sqlite.reading import SqliteReader
from kronmem.engine.sqlite.store import SqliteStore
from kronmem.engine.word_vectors import SIZE, code, pack_codes
from tests.engine.calling import Caller, Clock, calling


def some_vectors(count: int, seed: int = 1) -> list[bytes]:
    chance = random.Random(seed)
    return [bytes(chance.randrange(256) for _ in range(SIZE)) for _ in range(count)]


def filled(vectors: list[bytes]) -> scan.Codes:
    codes = scan.Codes()
    for number, vector in enumerate(vectors, 1):
        codes.add(number, pack_codes([0], [vector]))
    return codes


def numbers(places: list[int]) -> list[int]:
    return [index.number_of(place) for place in places]


def test_the_nearest_differ_in_the_fewest_bits() -> None:
    vectors = some_vectors(300)
    found = numbers(filled(vectors).nearest(vectors[41], 10))
    apart = sorted(range(300), key=lambda at: ((code(vectors[at]) ^ code(vectors[41])).bit_count(), -at))[:10]
    assert found == sorted(at + 1 for at in apart)
    assert 42 in found


def test_of_equally_near_ones_the_newest_are_named() -> None:
    vector = some_vectors(1)[0]
    assert numbers(filled([vector] * 50).nearest(vector, 3)) == [48, 49, 50]


def test_with_numpy_the_answer_is_the_same() -> None:
    numpy = pytest.importorskip("numpy")
    for seed in range(5):
        codes = [code(vector) for vector in some_vectors(400, seed)]
        codes += codes[:50]  # ties
        flat = bytearray(b"".join(one.to_bytes(SIZE // 8, "little") for one in codes))
        for count in (1, 7, 60):
            assert scan.closest_by_numpy(numpy, codes[3], flat, count) == scan.closest(codes[3], codes, count)


def test_codes_find_the_same_with_numpy_as_without(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")
    vectors = some_vectors(300)
    codes = filled(vectors[:200])
    quick = [codes.nearest(vectors[0], 20)]
    for number, vector in enumerate(vectors[200:], 201):
        codes.add(number, pack_codes([0], [vector]))
    quick.append(codes.nearest(vectors[0], 20))
    monkeypatch.setattr(scan, "numpy_for", lambda passages: None)
    assert quick == [filled(vectors[:200]).nearest(vectors[0], 20), filled(vectors).nearest(vectors[0], 20)]


def test_a_code_that_differs_in_every_bit_is_the_farthest() -> None:
    every = (1 << SIZE) - 1
    assert scan.closest(0, [every, 3, every, 1, every], 2) == [1, 3]


def test_a_space_too_large_to_scan_is_still_asked_for_words(monkeypatch: pytest.MonkeyPatch) -> None:
    with calling() as call:
        for text in ("The violin stands in the hall", "Dinner is at eight", "The server runs Debian"):
            call.remember(text)
        assert call.recall("Which instrument is there?", threshold=0)[0] == "The violin stands in the hall"
        monkeypatch.setattr(scan, "MOST_PASSAGES", 2)
        assert call.recall("Which instrument is there?", threshold=0) == []
        assert call.recall("Where is the violin?")[0] == "The violin stands in the hall"


class LaggingStore(SqliteStore):
    """Does `meanwhile` once, in another thread, when a reader has its view of the database and has not yet used it."""

    meanwhile: Callable[[], object] | None = None

    @contextmanager
    def read(self, timeout: float) -> Generator[SqliteReader]:
        with super().read(timeout) as rows:
            rows.find_space("", "bot")
            if (todo := self.meanwhile) is not None:
                self.meanwhile = None
                thread = threading.Thread(target=todo)
                thread.start()
                thread.join()
            yield rows


def test_a_recall_with_an_older_view_leaves_newer_memories_to_be_found_by_meaning(tmp_path: Path) -> None:
    store = LaggingStore(str(tmp_path / "memory.db"))
    call = Caller(Service(Engine(store)), Clock())
    try:
        for text in ("Dinner is at eight", "The server runs Debian"):
            call.remember(text)
        asked = "Which instrument is there?"
        found: list[list[str]] = []

        def meanwhile() -> None:
            call.remember("The violin stands in the hall")
            found.append(call.recall(asked, threshold=0)[:1])

        store.meanwhile = meanwhile
        assert "The violin stands in the hall" not in call.recall(asked, threshold=0)
        assert found == [["The violin stands in the hall"]]
        assert call.recall(asked, threshold=0)[:1] == ["The violin stands in the hall"]
    finally:
        call.service.close()


def test_a_scan_can_be_limited_to_some_memories() -> None:
    vectors = some_vectors(50)
    assert numbers(filled(vectors).nearest(vectors[7], 2, within={3, 8, 9})) in ([3, 8], [8, 9])
    assert filled(vectors).nearest(vectors[7], 2, within=()) == []


def test_what_was_discarded_is_not_found() -> None:
    vectors = some_vectors(50)
    codes = filled(vectors)
    codes.discard({8})
    assert len(codes) == 49
    assert 8 not in numbers(codes.nearest(vectors[7], 10))


def test_a_passage_or_a_question_without_a_vector_finds_nothing() -> None:
    codes = filled([b"", b""])
    assert len(codes) == 0
    assert filled(some_vectors(3)).nearest(b"", 2) == []
