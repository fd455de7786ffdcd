from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kronmem.engine import index

LONG = "The first sentence has seven words here. " * 30


def texts(text: str) -> list[str]:
    return [text[start:end] for start, end in index.split_passages(text)]


@pytest.mark.parametrize("text", ["One short note.", "  padded on both sides\n", "word " * 60, "猫が好きです。"])
def test_a_short_text_is_one_passage(text: str) -> None:
    assert texts(text) == [text.strip()]


def test_a_blank_text_has_none() -> None:
    assert index.split_passages(" \n ") == []


def test_a_long_text_is_cut_between_sentences() -> None:
    found = texts(LONG)
    assert len(found) == 4
    assert all(passage.startswith("The first") and passage.endswith("here.") for passage in found)
    assert all(len(passage.split()) <= index.PASSAGE_WORDS for passage in found)


def test_lines_end_sentences_too() -> None:
    assert texts("- a point of the list without a full stop\n" * 20)[0].endswith("stop")


def test_a_sentence_longer_than_a_passage_is_cut_into_windows_that_overlap() -> None:
    words = [f"word{n}" for n in range(200)]
    found = [passage.split() for passage in texts(" ".join(words))]
    assert all(len(passage) <= index.PASSAGE_WORDS for passage in found)
    assert all(a[-index.PASSAGE_OVERLAP :] == b[: index.PASSAGE_OVERLAP] for a, b in pairwise(found))
    assert found[0][0] == "word0"
    assert found[-1][-1] == "word199"


def test_a_parting_phrase_joins_the_passage_before_it() -> None:
    assert texts(LONG.strip() + " " + "Tell me more about it now. " * 7 + "Bye!")[-1].endswith("Bye!")
    assert all(len(passage.split()) > 1 for passage in texts(LONG + "Bye!"))


def test_a_script_without_spaces_is_cut_as_well() -> None:
    found = texts("これはとても長い日本語の文章です。" * 40)
    assert len(found) > 3
    assert all(passage.endswith("。") for passage in found)


@given(st.text(alphabet="ab .?!\n猫。é\u2003", max_size=2000))
def test_no_word_is_lost_and_every_passage_is_a_part_of_the_text(text: str) -> None:
    spans = index.split_passages(text)
    covered = {at for start, end in spans for at in range(start, end)}
    assert all(at in covered for at, char in enumerate(text) if not char.isspace())
    assert spans == sorted(spans)
    assert all(start < end <= len(text) for start, end in spans)


@given(st.lists(st.text("aZ9'. \n\t\x1c\x1f", min_size=1), min_size=20).map(" ".join))
def test_a_text_of_ascii_alone_is_cut_as_one_with_other_scripts(text: str) -> None:
    padded = "word " * 80 + text
    assert index.split_passages(padded) == index.split_passages(padded + " \u2003")  # no word, but not ASCII
