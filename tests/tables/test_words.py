"""The command that makes the table of word vectors, but for the encoder, which needs torch."""

from __future__ import annotations

import pytest

from kronmem.engine.word_vectors import SIZE, Table, _table

numpy = pytest.importorskip("numpy")
from tests.tables import words  # noqa: E402
from tests.tables.projection import Projection, pointed  # noqa: E402


def test_what_is_written_is_what_the_engine_reads() -> None:
    rows = numpy.arange(-128, 128, dtype=numpy.int8).reshape(1, SIZE).repeat(3, 0)
    made = Table(words.written(["tea", "coffee", "#year"], rows))
    assert len(made) == 3
    assert [word for word in ("tea", "coffee", "#year", "milk") if word in made] == ["tea", "coffee", "#year"]
    assert made.row("coffee").to_bytes(SIZE, "little") == bytes(range(SIZE))


def test_the_table_that_ships_is_the_same_as_itself_and_not_as_another() -> None:
    shipped = words.SHIPPED.read_bytes()
    assert words.compare(shipped, shipped) == (True, pytest.approx(1.0), pytest.approx(1.0), ())
    other = words.written(["tea"], numpy.ones((1, SIZE), numpy.int8))
    assert words.compare(other, shipped) == words.Likeness(same_words=False)


def test_a_dimension_that_is_turned_round_is_named() -> None:
    rows = numpy.arange(1, SIZE + 1).reshape(1, SIZE) % 100 + numpy.arange(1, 4).reshape(3, 1)
    names = ["tea", "coffee", "#year"]
    made = words.written(names, rows.astype(numpy.int8))
    rows[:, 179] *= -1
    found = words.compare(words.written(names, rows.astype(numpy.int8)), made)
    assert found.same_words
    assert found.turned_round == (179,)
    assert found.lowest <= found.cosine < 0.999
    assert str(found).endswith("dimensions turned round: 179")


def test_an_empty_row_is_like_another_empty_row_only() -> None:
    names, rows = ["tea", "yourselves"], numpy.ones((2, SIZE), numpy.int8)
    full = words.written(names, rows)
    rows[1] = 0
    empty = words.written(names, rows)
    assert words.compare(empty, empty) == (True, pytest.approx(1.0), pytest.approx(1.0), ())
    assert words.compare(empty, full) == words.compare(full, empty) == (True, pytest.approx(0.5), 0.0, ())


def test_an_axis_keeps_its_direction_when_its_two_largest_parts_change_places() -> None:
    parts = numpy.full((9, 1), 0.1)
    parts[0], parts[1] = 0.5001, -0.5
    changed = parts.copy()
    changed[0], changed[1] = 0.5, -0.5001
    for axes in (parts, -parts, changed, -changed):
        assert (pointed(axes)[:, 0] * parts[:, 0]).sum() > 0.5


def test_sentences_that_hardly_differ_have_the_same_axes() -> None:
    chance = numpy.random.RandomState(1)
    turn, _ = numpy.linalg.qr(chance.randn(300, 300))
    sentences = (chance.randn(2000, 300) * 0.98 ** numpy.arange(300)) @ turn + 0.2
    other = Projection.of(sentences + 1e-7 * chance.randn(*sentences.shape))
    one = Projection.of(sentences.astype(numpy.float32))
    assert one.axes.shape == (300, SIZE)
    assert (one(sentences) * other(sentences)).sum(1).min() > 0.999


def test_kept_vectors_serve_the_texts_they_were_made_of_and_no_others() -> None:
    names = {words.kept_name("words", texts) for texts in (["a", "b"], ["b", "a"], ["a"], ["a b"])}
    assert len(names) == 4
    assert words.kept_name("words", ["a", "b"]) == words.kept_name("words", ("a", "b")) in names


def test_the_words_that_ship_include_those_added_by_hand() -> None:
    table = _table()
    listed = words.SHIPPED.parents[2].joinpath("tests/tables/extra_words.txt").read_text("utf-8").split()
    assert len(listed) > 50
    assert not [word for word in listed if word not in table]
