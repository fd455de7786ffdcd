"""The command that makes the table of word vectors, but for the encoder, which needs torch."""

from __future__ import annotations

import pytest

from kronmem.engine.word_vectors import SIZE, Table, _table
from tests.tables import words

numpy = pytest.importorskip("numpy")


def test_what_is_written_is_what_the_engine_reads() -> None:
    rows = numpy.arange(-128, 128, dtype=numpy.int8).reshape(1, SIZE).repeat(3, 0)
    made = Table(words.written(["tea", "coffee", "#year"], rows))
    assert len(made) == 3
    assert [word for word in ("tea", "coffee", "#year", "milk") if word in made] == ["tea", "coffee", "#year"]
    assert made.row("coffee").to_bytes(SIZE, "little") == bytes(range(SIZE))


def test_the_table_that_ships_is_the_same_as_itself_and_not_as_another() -> None:
    shipped = words.SHIPPED.read_bytes()
    assert words.compare(shipped, shipped) == (True, pytest.approx(1.0))
    other = words.written(["tea"], numpy.ones((1, SIZE), numpy.int8))
    assert words.compare(other, shipped) == (False, 0.0)


def test_the_words_that_ship_include_those_added_by_hand() -> None:
    table = _table()
    listed = words.SHIPPED.parents[2].joinpath("tests/tables/extra_words.txt").read_text("utf-8").split()
    assert len(listed) > 50
    assert not [word for word in listed if word not in table]
