from __future__ import annotations

import logging
import struct
import threading
from collections.abc import Sequence

import pytest

from kronmem.engine.embedding import cosines, progress, unit
from kronmem.engine.sqlite.store import SqliteStore
from kronmem.engine.store import Store
from tests.engine.calling import calling

MEANINGS = {
    "feline": 0,
    "cat": 0,
    "kitten": 0,
    "кошка": 0,
    "котёнок": 0,
    "bank": 1,
    "money": 1,
    "loan": 1,
    "ship": 2,
    "boat": 2,
}


class Meanings:
    """A deterministic embedder: three meanings. Tells when it has embedded memories, not questions."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.done = threading.Semaphore(0)

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = [[0.01, 0.01, 0.01] for _ in texts]
        for vector, text in zip(vectors, texts, strict=True):
            for word in text.lower().split():
                if word in MEANINGS:
                    vector[MEANINGS[word]] += 1.0
        self.seen += texts
        self.done.release()
        return vectors


def wait_for(embed: Meanings, texts: int) -> None:
    while len(embed.seen) < texts:
        assert embed.done.acquire(timeout=10)


def test_a_vector_becomes_a_cosine() -> None:
    assert unit([3.0, 4.0]) == [0.6, 0.8]
    assert unit([0.0, 0.0]) == [0.0, 0.0]
    assert cosines([0.6, 0.8], {7: struct.pack("<2f", 0.0, 1.0)}) == {7: pytest.approx(0.8)}


def test_a_vector_of_another_model_is_not_compared() -> None:
    assert cosines([1.0, 0.0], {7: b"\x00" * 4}) == {}


def test_cosines_are_the_same_with_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    stored = {key: struct.pack("<3f", *unit([key, 1.0, -key])) for key in range(40)}
    assert cosines([0.6, 0.0, 0.8], stored, numpy) == pytest.approx(cosines([0.6, 0.0, 0.8], stored))


def test_vectors_reorder_what_the_words_found(path: str) -> None:
    texts = ["my bank is by the river boat", "my bank gave me a loan of money", "a kitten sleeps"]
    with calling(path) as call:
        for text in texts:
            call.remember(text, session_id=str(len(text)))
        plain = call.recall("money in the bank", threshold=0)
    embed = Meanings()
    with calling(path, embed=embed) as call:
        call.recall("wake")  # starts the thread, which embeds what was written without it
        wait_for(embed, 4)
        call.service.close()
    with calling(path, embed=embed) as call:
        assert call.recall("feline", threshold=0)[0] == "a kitten sleeps"
        assert call.recall("money in the bank")[0] == plain[0] == texts[1]


def test_a_model_answers_questions_whose_words_the_table_does_not_know(path: str) -> None:
    embed = Meanings()
    with calling(path, embed=embed) as call:
        for text in ("котёнок спит", "my bank gave me a loan of money", "пароход плывёт"):
            call.remember(text)
        call.recall("wake")
        wait_for(embed, 4)
        call.service.close()  # the last batch is written
    with calling(path, embed=embed) as call:
        assert call.recall("кошка")[0] == "котёнок спит"
        assert call.recall("кошка", session_id="another") == []
    with calling(path) as call:
        assert call.recall("кошка") == [], "without a model there is nothing to go by"


def test_new_memories_are_embedded_in_the_background(path: str) -> None:
    embed = Meanings()
    with calling(path, embed=embed) as call:
        call.remember("a kitten sleeps")
        wait_for(embed, 1)
        call.service.close()
    with calling(path, embed=embed) as call:
        assert call.recall("feline", threshold=0) == ["a kitten sleeps"]
        call.remember("a kitten sleeps")
    assert embed.seen.count("a kitten sleeps") == 1


def test_a_recall_never_waits_for_memories_to_be_embedded() -> None:
    stuck = threading.Event()

    def embed(texts: Sequence[str]) -> list[list[float]]:
        if texts != ["tea"]:
            stuck.wait(30)
        return [[1.0] for _ in texts]

    with calling(embed=embed) as call:
        call.remember("tea at five")
        assert call.recall("tea") == ["tea at five"]
        stuck.set()


def test_a_question_that_cannot_be_embedded_is_answered_by_words(caplog: pytest.LogCaptureFixture) -> None:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        raise RuntimeError("no model")

    with calling(embed=embed) as call, caplog.at_level(logging.WARNING, logger="kronmem.engine"):
        call.remember("tea at five")
        assert call.recall("tea") == ["tea at five"]
    assert "by words alone" in caplog.text


def test_a_question_that_hangs_is_answered_by_words() -> None:
    stuck = threading.Event()

    def embed(texts: Sequence[str]) -> list[list[float]]:
        stuck.wait(30)
        return [[1.0] for _ in texts]

    with calling(embed=embed) as call:
        call.remember("tea at five")
        for _ in range(10):
            _, reply = call("POST", "recall", {"query": "tea"}, timeout=0.02)
            assert reply["total_found"] == 1
        stuck.set()


class Named(Meanings):
    """The same meanings in another order, as another model would have them."""

    def __init__(self, model: str, size: int = 3) -> None:
        super().__init__()
        self.model, self.size = model, size

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        shift = len(self.model) % 3
        return [(v[shift:] + v[:shift] + [0.0] * self.size)[: self.size] for v in super().__call__(texts)]


def embedded_with(path: str, embed: Named) -> tuple[list[str], list[tuple[str, str]]]:
    """Ask once, wait until both memories have been embedded, and ask again: the hits and the progress."""
    with calling(path, embed=embed) as call:
        call.recall("feline", threshold=0)
        wait_for(embed, 3)
        call.service.close()
    with calling(path, embed=embed) as call:
        found = call.recall("feline", threshold=0)
    return found, told(path)


def told(path: str) -> list[tuple[str, str]]:
    store = opened(path)
    try:
        return progress(store)
    finally:
        store.close()


def opened(path: str) -> Store:
    if not path.startswith("postgresql"):
        return SqliteStore(path)
    from kronmem.engine.postgres.store import PostgresStore  # not without psycopg

    return PostgresStore(path)


def test_vectors_of_another_model_or_size_are_made_anew(path: str, caplog: pytest.LogCaptureFixture) -> None:
    with calling(path) as call:
        call.remember("a kitten sleeps")
        call.remember("a loan of money")
    for model, size in (("one", 3), ("another", 3), ("another", 5)):
        caplog.clear()
        embed = Named(model, size)
        found, progress = embedded_with(path, embed)
        assert found[0] == "a kitten sleeps"
        assert ("vectors", f"{model}, {size} numbers: 2 of 2 memories") in progress
        assert ("are replaced by" in caplog.text) == (model == "another")
    again = Named("another", 5)
    with calling(path, embed=again) as call:
        assert call.recall("feline", threshold=0)[0] == "a kitten sleeps"
    assert again.seen == ["feline"]


def test_without_vectors_there_is_no_progress_to_tell(path: str) -> None:
    with calling(path) as call:
        call.remember("a kitten sleeps")
    assert told(path) == []
