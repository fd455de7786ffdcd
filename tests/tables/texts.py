"""The words that get a row, and the sentences that the rows are fitted to."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from kronmem.engine.terms import STOPWORDS, tokens
from kronmem.engine.word_vectors import checksum
from tests.tables.sources import Synset

HERE = Path(__file__).parent
WORDS = 45_000
"""As many as fit into a wheel of nine megabytes."""
OFTEN = 3
"""Words that occur so often in definitions and examples come before the rest of the lemmas."""
COMMON = 20_000
"""Of the encoder's tokens, those that may fill a template."""
SENTENCES = 60_000
SEED = 7


@dataclass(frozen=True)
class Texts:
    """All that is encoded."""

    words: list[str]
    examples: list[str]
    definitions: list[str]
    templates: list[str]


def gather(synsets: list[Synset], vocabulary: list[str], pieces: Callable[[str], int]) -> Texts:
    """Choose words and sentences; `pieces` counts the tokens that the encoder makes of a word."""
    definitions = [text for synset in synsets for text in synset.definitions]
    examples = [text for synset in synsets for text in synset.examples]
    counted = Counter(token for text in definitions + examples for token in tokens(text))
    lemmas = dict.fromkeys(word for synset in synsets for member in synset.members if (word := _single(member)))
    words = dict.fromkeys(word for word in vocabulary if _plain(word))
    words |= dict.fromkeys(w for w, n in counted.most_common() if n >= OFTEN and _plain(w) and len(w) > 2)
    words |= dict.fromkeys((HERE / "extra_words.txt").read_text("utf-8").split())
    words |= dict.fromkeys(w for w in lemmas if _plain(w) and len(w) > 2 and (counted[w] or pieces(w) <= 2))
    return Texts(_distinct(words)[:WORDS], examples, definitions, _templates(synsets, vocabulary))


def _plain(word: str) -> bool:
    return word.isascii() and word.isalpha() and (len(word) > 1 or word in "ia")


def _single(member: str) -> str | None:
    found = list(tokens(member))
    return found[0] if len(found) == 1 else None


def _distinct(words: Iterable[str]) -> list[str]:
    """Rows are found by checksum: of two words that share one, the first stays."""
    return list({checksum(word): word for word in reversed(list(words))}.values())[::-1]


def _templates(synsets: list[Synset], vocabulary: list[str]) -> list[str]:
    """Sentences as people tell and ask an assistant, filled with common words: dictionaries have few of them."""
    common = {word for word in vocabulary[:COMMON] if word not in STOPWORDS and len(word) > 2}
    filling = {name: _of(synsets, parts, common) for name, parts in {"n": "n", "v": "v", "a": "as"}.items()}
    chance = random.Random(SEED)
    lines = (HERE / "templates.txt").read_text("utf-8").splitlines()
    slots = {"n": "n", "n2": "n", "v": "v", "v2": "v", "a": "a"}
    return [
        chance.choice(lines).format(**{slot: chance.choice(filling[kind]) for slot, kind in slots.items()})
        for _ in range(SENTENCES)
    ]


def _of(synsets: list[Synset], parts: str, common: set[str]) -> list[str]:
    members = (word for synset in synsets if synset.part_of_speech in parts for word in map(_single, synset.members))
    return list(dict.fromkeys(word for word in members if word in common))
