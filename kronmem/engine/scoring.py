"""How well a memory answers: its words and its meaning, weighed by who said it. Pure.

    similarity = (words + meaning) x speaker, at most 1

`words` is the BM25 of the best passage (`bm25.score`) lifted by its neighbours; `meaning` is the cosine of the
closest passage, times a weight that shrinks as the words of this question find more. Both are keyed by place (see
`indexing`), the result by the memory's number. A recall needs from the store: the postings of the question's terms, how
many passages the space has and how long they are on average, the vectors of the passages that `scan` names and of the
best by words, and the rows of the hits.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from kronmem.engine import bm25
from kronmem.engine.indexing import KIND_BITS, QUESTION
from kronmem.engine.store import PLACE_BITS

SCANNED = 200
"""So many passages that are close by their codes are compared exactly, and the hundred best by words."""
SCANNED_BY_MODEL = 500
"""The same where a model then compares: it finds more than the table's codes put first. Cosines of five hundred
vectors cost 10 ms, and 2 ms with numpy."""
BY_WORDS = 100
"""As many as a recall may ask for: words alone can fill it."""
SPEAKER = (1.0, 0.7, 0.75, 0.525)
"""By kind: a statement, a bare question, and the same by an assistant or a tool.

An assistant repeats what it was told and says much besides: x 0.8 to x 0.6 gained on chats with assistants, below 0.75
notes that an assistant took are lost. A bare question holds no answer; x 0.7 keeps it below the statement it resembles,
and the second best, third best, … question counts for a half, a third, …: a question that was asked in every turn of a
chat resembles the next one more than its answer does, and twenty of them would leave the answer no place.
"""
TIMELY = 0.5
"""What a memory gains, as a share of its similarity and of what it lacks, that was told when the question says."""
CLEAR = 0.6
TAIL = 0.3
"""After a hit at least that similar, others are left out that have less than this share of it. `python -m
tests.benchmarks.recall_quality` shows the price of other numbers."""
FAINT = 0.1
"""After any other, those with less than this share: by then only accidents are left, but for those that are closer in
meaning than the best hit itself, which may share a common word only: "What tone should you use?", "We use FastAPI"."""

_KINDS = (1 << KIND_BITS) - 1


@dataclass(frozen=True)
class Sense:
    """A way to measure meaning: its weight, and how near a question about something never mentioned may come.

    `discount` is the share of the weight that the best words of a question take away. The bounds are for 25 passages
    and rise with each doubling: the more there is, the better the best accident.
    """

    weight: float
    discount: float
    similar: float
    similar_rise: float
    close: float
    close_rise: float


TABLE = Sense(weight=0.5, discount=1.0, similar=0.24, similar_rise=0.025, close=0.23, close_rise=0.055)
"""The table of word vectors. Chosen on conversations of 25 to 2500 passages: of the questions about something else two
in three (four in ten in long chats with assistants) are answered with silence, of the others that would have been
answered one in fifty, one in ten where they share no word with the answer."""
MODEL = Sense(weight=0.95, discount=0.6, similar=0.32, similar_rise=0.05, close=0.205, close_rise=0.056)
"""A sentence encoder (chosen with all-MiniLM-L6-v2): it orders better than the table, so words overrule it less."""
MODEL_SHARE = 0.8
"""Of the meaning; the rest is the table's. They err differently: together they order better than the model alone."""
_FEWEST, _MOST = 3, 4096
"""The sizes between which the bounds rise: with fewer passages, lower ones would let chance in. One to four memories of
the everyday set answer 78 to 92 % of foreign questions with silence (all 25 of an agent: 70 %), and 15 to 19 % of own
ones in other words; with 5 in place of 3 it is 80 to 93 % and 19 to 22 %."""
NAMED = 25
"""A question with a name in it is asked of a space at least this large."""
_FALL = 0.65
"""Below 25 passages the bounds fall by this share of their rise for each halving: parts of 5 to 12 memories of the
everyday set then answer about as many foreign questions with silence as the whole, and half as many own ones."""


@dataclass(frozen=True)
class Score:
    """Why a memory was found. `place` is its best passage; the parts are rounded, and `similarity` is made of them."""

    number: int
    place: int
    words: float
    meaning: float
    speaker: float

    @property
    def similarity(self) -> float:
        """The number by which hits are ordered and that is shown."""
        return similarity(self.words, self.meaning, self.speaker)


def similarity(words: float, meaning: float, speaker: float) -> float:
    """Words and meaning together, weighed by who said it; rounded to four digits."""
    return round(min((words + meaning) * speaker, 1.0), 4)


@dataclass(frozen=True)
class Answers:
    """The finds of words and meaning, by number of memory: the parts, the places that earned them, and the sum."""

    words: Mapping[int, float]
    worded: Mapping[int, int]
    close: Mapping[int, float]
    closest: Mapping[int, int]
    weight: float
    speaker: Mapping[int, float]
    similarity: Mapping[int, float]

    def best(self, count: int) -> list[Score]:
        """The most similar memories, the best first, among equals the newer one; none that shares nothing at all."""
        scores = (self.score(number) for number in bm25.best(self.similarity, count))
        found = [score for score in scores if score.similarity > 0]
        return sorted(found, key=lambda score: (score.similarity, score.number), reverse=True)

    def without(self, numbers: Collection[int]) -> Answers:
        """The same as if some memories were not there."""
        close, similarity = dict(self.close), dict(self.similarity)
        for number in numbers:
            close.pop(number, None)
            similarity.pop(number, None)
        return replace(self, close=close, similarity=similarity)

    def lifted(self, numbers: Collection[int]) -> Answers:
        """The same with memories of the time that was asked for closer to a full answer, each in its own measure."""
        words, similarity = dict(self.words), dict(self.similarity)
        for number in numbers:
            if (found := similarity.get(number, 0.0)) > 0:
                gained = TIMELY * found * max(1 - found, 0.0)
                words[number] = words.get(number, 0.0) + gained
                similarity[number] = found + gained * self.speaker.get(number, 1.0)
        return replace(self, words=words, similarity=similarity)

    def score(self, number: int) -> Score:
        """The parts of one memory's similarity."""
        words, meaning = self.words.get(number, 0.0), self.weight * self.close.get(number, 0.0)
        by_words = number in self.worded and words >= meaning
        place = self.worded[number] if by_words else self.closest[number]
        return Score(number, place, round(words, 4), round(meaning, 4), self.speaker.get(number, 1.0))

    def silent(self, passages: int, sense: Sense = TABLE) -> bool:
        """Whether even the best is no better than a question about something never mentioned would find."""
        similar = max(self.similarity.values(), default=0.0)
        if not self.close:  # in a language that the table does not know, words alone decide
            return similar < bm25.gate(passages)
        doublings = math.log2(min(max(passages, _FEWEST), _MOST) / 25)
        doublings *= _FALL if doublings < 0 else 1.0
        distant = max(self.close.values()) < sense.close + sense.close_rise * doublings
        return distant and similar < sense.similar + sense.similar_rise * doublings


def combine(words: Mapping[int, float], closeness: Mapping[int, float], sense: Sense = TABLE) -> Answers:
    """Bring the passages' words and cosines (both by place) together to memories."""
    by_words, worded = _by_number(words)
    close, closest = _by_number(closeness)
    lifted = bm25.in_company(by_words)
    # The better the words fit, the less there is left for the meaning to say: fixed weights lose where names decide.
    weight = sense.weight * (1 - sense.discount * min(max(lifted.values(), default=0.0), 1.0))
    sums = lifted | {number: lifted.get(number, 0.0) + weight * found for number, found in close.items()}
    speaker = _speakers(sums, closest | worded)
    similar = sums | {number: sums[number] * share for number, share in speaker.items()}
    return Answers(lifted, worded, close, closest, weight, speaker, similar)


def _speakers(sums: Mapping[int, float], places: Mapping[int, int]) -> dict[int, float]:
    """The weights other than 1, by kind, which all passages of a memory share; each further question counts less."""
    found = {number: SPEAKER[place & _KINDS] for number, place in places.items() if place & _KINDS}
    asking = [number for number in found if places[number] & QUESTION]
    asking.sort(key=lambda number: (sums[number] * found[number], number), reverse=True)
    return found | {number: round(found[number] / rank, 4) for rank, number in enumerate(asking, start=1)}


def _by_number(scores: Mapping[int, float]) -> tuple[dict[int, float], dict[int, int]]:
    """The best passage of each memory: its score and its place."""
    numbers = [place >> PLACE_BITS for place in scores]  # `number_of`, written out: thousands of times a recall
    best = dict(zip(numbers, scores.values(), strict=True))
    if len(best) == len(scores) and min(best.values(), default=0.0) > 0:  # each has one passage
        return best, dict(zip(numbers, scores, strict=True))
    return _best_passages(scores)


def _best_passages(scores: Mapping[int, float]) -> tuple[dict[int, float], dict[int, int]]:
    best: dict[int, float] = {}
    places: dict[int, int] = {}
    for place, score in scores.items():
        number = place >> PLACE_BITS
        if score > best.get(number, 0.0):
            best[number], places[number] = score, place
    return best, places


def is_tail(score: Score, best: Score) -> bool:
    """Is a hit only what is left after the best one: weak after one that is clearly meant, or faint?"""
    if best.similarity >= CLEAR:
        return score.similarity < TAIL * best.similarity
    return score.similarity < FAINT * best.similarity and score.meaning <= best.meaning


def to_compare(words: Mapping[int, float], scanned: Iterable[int]) -> list[int]:
    """The places to compare exactly: those that the scan named, and the best by words."""
    return list(dict.fromkeys((*scanned, *bm25.best(words, BY_WORDS))))
