"""Text to terms: folding, tokens, stems and stopwords. Pure.

The terms of a text
lie in the index: change them and every database has to be indexed again (a schema migration).
"""

from __future__ import annotations

import re
import sys
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module, util
from types import ModuleType
from typing import Protocol, cast

MAX_TERM = 64
"""Longer tokens are cut: no question needs more, and keys in the index stay small."""

# Marks that writers leave out: Latin, Greek and Cyrillic accents, Hebrew points, Arabic vowels and tatweel.
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]")
# Scripts written without spaces; Hangul joins them because its particles stick to the word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_TOKEN = (
    rf"(?P<run>[{_UNSPACED}]+)"
    r"|(?P<word>[a-z][+#]{1,2}(?![^\W_])"  # c++, c#
    rf"|(?:(?![{_UNSPACED}])[^\W_])+(?:'(?:(?![{_UNSPACED}])[^\W_])+)*)"
    "|(?P<sign>[\u2600-\u27bf\U0001f000-\U0001faff])"
)
_ASCII_TOKEN = re.compile(r"[a-z][+#]{1,2}(?![a-z0-9])|[a-z0-9]+(?:'[a-z0-9]+)*")
"""The same for a text of ASCII alone: faster, and a process that meets no other need not compile the large one."""
_WORD = re.compile(r"\b[^\W\d_](?:\w|['\u2019])*")
_HAN = "[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"

_STOPWORDS = """
    a about above after again against all also am an and any are as at be because been before being below between both
    but by can could did do does doing down during each few for from further had has have having he her here hers
    herself him himself his how i if in into is it its itself just let me more most my myself no nor not of off on once
    only or other our ours ourselves out over own same she should so some such than that the their theirs them
    themselves then there these they this those through to too under until up very was we were what when where which
    while who whom whose why will with would you your yours yourself yourselves
    im ive id youre youve hes shes theyre weve dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt
    shouldnt havent hasnt hadnt thats whats heres theres lets s t d ll m re ve
"""
STOPWORDS = frozenset(_STOPWORDS.split())


def fold(text: str) -> str:
    """Lower case, without accents, width variants and typographic apostrophes."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", plain)))


def tokens(text: str) -> Iterator[str]:
    """The words of `text` in order; pairs of characters where a script has no spaces; each emoji by itself."""
    folded = text.lower() if text.isascii() else fold(text)
    if folded.isascii():  # no script without spaces, no emoji: the same words in a third of the time
        yield from [_plain(word) if "'" in word else word[:MAX_TERM] for word in _ASCII_TOKEN.findall(folded)]
        return
    for match in _compiled(_TOKEN).finditer(folded):
        if match.lastgroup == "run":
            yield from _pairs(match.group())
        else:
            yield _plain(match.group())


def _plain(word: str) -> str:
    return word.removesuffix("'s").replace("'", "")[:MAX_TERM]


@lru_cache(maxsize=2)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Ranges of many thousand characters take milliseconds to compile: at the first text that needs them."""
    return re.compile(pattern)


def _pairs(run: str) -> Iterator[str]:
    han = _compiled(_HAN)
    yield from han.findall(run)
    if len(run) > 1:
        yield from (run[i : i + 2] for i in range(len(run) - 1))
    elif not han.match(run):
        yield run


def terms(text: str) -> list[str]:
    """Stems without stopwords, repeats kept. A text of stopwords alone keeps them: it must be found too."""
    return stems(list(tokens(text)))


def stems(words: Sequence[str]) -> list[str]:
    """The terms of a text of these tokens."""
    telling = [word for word in words if word not in STOPWORDS]
    return [stem(word) for word in telling or words]


def names(text: str) -> frozenset[str]:
    """The terms of `text` written as names: with a capital that does not begin the text."""
    if text.isupper():
        return frozenset()
    capitals = (match.group() for match in _WORD.finditer(text) if match.start() and match.group()[0].isupper())
    return frozenset(term for word in capitals for term in terms(word) if fold(word) not in STOPWORDS)


class _Stemmer(Protocol):
    def stemWord(self, word: str, /) -> str: ...


def _english() -> type[_Stemmer]:
    """Snowball's English stemmer, without the thirty other languages that importing the package would load."""
    spec = util.find_spec("snowballstemmer")
    alias = ModuleType(f"{__package__}.snowball")
    alias.__path__ = list(spec.submodule_search_locations or ()) if spec else []
    sys.modules[alias.__name__] = alias
    try:
        return cast("type[_Stemmer]", import_module(f"{alias.__name__}.english_stemmer").EnglishStemmer)
    except ImportError:  # a package without files of its own, as in some bundles; never PyStemmer's, of any version
        from snowballstemmer.english_stemmer import EnglishStemmer  # type: ignore[import-untyped]  # ships no types

        return cast("type[_Stemmer]", EnglishStemmer)


_EnglishStemmer = _english()


class _Stemming(threading.local):
    """A stemmer for each thread: it keeps its word in itself."""

    def __init__(self) -> None:
        self.stemmer = _EnglishStemmer()


_stemming = _Stemming()


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The Snowball English stem; words of other languages pass through much as they are."""
    if word.isdigit():  # it is its own stem, and hardly ever one that was seen before
        return word
    return _stemming.stemmer.stemWord(word)


def variant_start(term: str) -> str | None:
    """How words begin that may be the same word in another form; short ones have too many neighbours."""
    return term[: max(5, len(term) - 2)] if len(term) > 5 and term.isalpha() and term.isascii() else None
