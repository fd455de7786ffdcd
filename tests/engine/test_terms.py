from __future__ import annotations

import hashlib
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from snowballstemmer.english_stemmer import EnglishStemmer

from kronmem.engine import terms
from kronmem.engine.ranking import related
from tests.benchmarks.recall_sets import EVERYDAY


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Caroline's dog doesn't bark", ["carolin", "dog", "bark"]),
        ("The user is running", ["user", "run"]),
        ("C++ and C# and x+y", ["c++", "c#", "x", "y"]),
        ("snake_case", ["snake", "case"]),
        ("Crème brûlée à Zürich", ["creme", "brule", "a", "zurich"]),
        ("ＦＵＬＬ width", ["full", "width"]),
        ("猫", ["猫"]),
        ("東京都", ["東", "京", "都", "東京", "京都"]),
        ("고양이", ["고양", "양이"]),
        ("عَرَبِيّ", ["عربي"]),
        ("🎉 party", ["🎉", "parti"]),
        ("", []),
        ("  ?!  ", []),
    ],
)
def test_text_becomes_terms(said: str, expected: list[str]) -> None:
    assert [t for t in terms.terms(said) if t != "a"] == [t for t in expected if t != "a"]


def test_a_text_of_stopwords_alone_keeps_them() -> None:
    assert terms.terms("To be or not to be") == ["to", "be", "or", "not", "to", "be"]


def test_a_very_long_word_is_cut() -> None:
    assert terms.terms("x" * 10_000) == ["x" * terms.MAX_TERM]


def test_a_decomposed_accent_is_the_same_as_a_composed_one() -> None:
    assert terms.terms("cafe\u0301") == terms.terms("caf\u00e9") == terms.terms("cafe")


def test_related_terms_come_with_their_similarity() -> None:
    assert ("difficulti", 0.71) in related("troubl")
    assert related("xyzzy") == []


def test_names_are_capitals_within_the_text() -> None:
    assert terms.names("Where does Anna-Lena's friend Bob live?") == {"anna", "lena", "bob"}
    assert terms.names("WHERE IS BOB") == frozenset()
    assert terms.names("Am I right?") == frozenset()


def test_stems_are_those_of_the_snowball_package() -> None:
    words = set(re.findall("[a-z]+", EVERYDAY.read_text("utf-8").lower()))
    assert len(words) > 1000
    theirs = EnglishStemmer()
    assert {word: terms.stem(word) for word in words} == {word: theirs.stemWord(word) for word in words}


def test_stems_are_those_that_stored_indexes_hold() -> None:
    """If this fails, the stemmer has changed: indexes made before have to be made anew (a schema migration)."""
    changed = [
        "added",
        "evening",
        "international",
        "interval",
        "organize",
        "paste",
        "pathologist",
        "skis",
        "vying",
    ]  # between 2.2 and 3.1
    stems = ["add", "evening", "internat", "interval", "organiz", "paste", "patholog", "ski", "vie"]
    assert [terms.stem(word) for word in changed] == stems
    words = sorted(set(re.findall("[a-z]+", EVERYDAY.read_text("utf-8").lower())))
    held = hashlib.sha256(" ".join(map(terms.stem, words)).encode()).hexdigest()
    assert held == "89030e859bf0711a5f3c19877216cd3aa686c93b3fd39a5ca77f8ece0ca116af"


def test_only_the_english_stemmer_is_loaded() -> None:
    code = "import sys, kronmem.engine.terms; print([name for name in sys.modules if name.endswith('_stemmer')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "['kronmem.engine.snowball.english_stemmer']"


@given(st.text(st.characters(codec="ascii")) | st.text("aZ9'+#_ -"))
def test_a_text_of_ascii_alone_has_the_tokens_that_the_pattern_for_all_scripts_finds(text: str) -> None:
    beside = list(terms.tokens(f"{text} 猫"))  # one character of another script, and the other pattern reads it
    assert [*terms.tokens(text), "猫"] == beside
