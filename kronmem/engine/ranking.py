"""Ranks memories for a question: BM25 softened by related terms, combined with meaning and speaker. Pure.

A question becomes groups, one for each of its terms: the term itself and, at a lower weight, the terms close to it in
meaning. `similarity` is measured against a memory with exactly the words asked for, not against the best hit,
so that a question about something never mentioned scores low however the others compare.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources

from kronmem.engine import terms
from kronmem.engine.index import KIND_BITS, QUESTION
from kronmem.engine.store import PLACE_BITS, Found, Row
from kronmem.engine.topics import telling

K1 = 0.6
B = 0.3
"""BM25's own numbers, half and less of the textbook's 1.2 and 0.75: passages are short and of about one length, so
that neither a repeated word nor the length weighs much."""
SOFT = 0.4
"""A related term counts so much of its similarity: less than half, since meaning is measured besides."""
TOPIC = 0.5
"""A word by which things of the asked kind are stated."""
AS_USER = 0.1
"""So much of its worth the word "user" has beside what a question asks about the user."""
RELATED = 3
"""The closest related terms are asked for; with all ten, recall gains nothing and reads three times as much."""
VARIANT = 0.5
"""A word that only begins like the one that was asked: half, as it may be another word. 0.25 and 0.75 move no figure of
the development sets by more than .006."""
NAME = 2.0
"""A name without hits weighs more than a word without hits: words have synonyms. On LoCoMo's turns
77 % of foreign questions are met with silence; with 1 it is 65 %, with 3 84 % and .006 of R@5 is lost."""
COMPANY = (0.36, 0.14)
"""What a memory gains from the scores of its next and its second next neighbours; all four together at most 1. Without
it LoCoMo's turns lose .075 of R@10, with half of it .034; half as much again gains .003 and shows more of the tail."""
FEW = 100
"""A smaller space counts as this large: among five memories, being in two of them is no sign of being common."""
MAX_TERMS = 64
"""Of a question: more than the words of any passage, and a bound for a text that was pasted in."""
MAX_SOFTENED = 16
"""Of a long question, only so many terms bring their relatives: the work for one recall is bounded."""


@dataclass(frozen=True)
class Group:
    """One term of a question: how often it occurs, if as a name, and the weighted terms that may stand for it."""

    term: str
    times: int
    name: bool = False
    soft: tuple[tuple[str, float], ...] = ()
    optional: bool = False
    """It is good to have, and nothing is missing without it."""


@dataclass(frozen=True)
class QueryTerms:
    """A question as terms."""

    groups: tuple[Group, ...]
    length: int

    def terms(self) -> dict[str, bool]:
        """Every term to look up, and whether the question itself contains it."""
        own = {group.term: True for group in self.groups}
        return {**{soft: False for group in self.groups for soft, _ in group.soft}, **own}


def ask(question: str) -> QueryTerms:
    """Turn a question into groups of terms; a very long one keeps its beginning and its end."""
    counts = Counter(terms.terms(question))
    kept = list(counts)
    if len(kept) > MAX_TERMS:
        kept = kept[: MAX_TERMS // 2] + kept[-MAX_TERMS // 2 :]
    names = terms.names(question)
    groups = [Group(t, counts[t], t in names, _soft(t) if i < MAX_SOFTENED else ()) for i, t in enumerate(kept)]
    return QueryTerms(_about_user(question, groups), sum(counts.values()))


_ASKER = re.compile(r"\b(?:i|me|my|mine|myself)\b", re.IGNORECASE)
_USER = re.compile(r"\b(?:the|this) user\b|\buser's\b", re.IGNORECASE)


def _about_user(question: str, groups: list[Group]) -> tuple[Group, ...]:
    """The asker is the user: "my" finds notes that say "User …", and "the user" those that say "I"."""
    if _USER.search(question):
        others = tuple(group for group in groups if group.term != "user")
        return (*others, Group("user", 1, optional=True)) if others else tuple(groups)
    if groups and _ASKER.search(question) and all(group.term != "user" for group in groups):
        return (*groups, Group("user", 1, optional=True))
    return tuple(groups)


def with_variants(question: QueryTerms, variants: Mapping[str, Iterable[str]]) -> QueryTerms:
    """Let words that begin alike stand for words without hits: to us they are one word, to the stemmer not always."""
    return replace(question, groups=tuple(_widened(group, variants.get(group.term)) for group in question.groups))


def _widened(group: Group, alike: Iterable[str] | None) -> Group:
    if alike is None:
        return group
    known = {group.term, *(soft for soft, _ in group.soft)}
    return replace(group, soft=group.soft + tuple((term, VARIANT) for term in alike if term not in known))


@lru_cache(maxsize=4096)
def _soft(term: str) -> tuple[tuple[str, float], ...]:
    close = {neighbour: SOFT * closeness for neighbour, closeness in related(term)[:RELATED]}
    return tuple((dict.fromkeys(telling(term), TOPIC) | close).items())


@dataclass(frozen=True)
class Weights:
    """The statistics of one space: how many memories, how long on average."""

    count: int
    average: float

    def rarity(self, spread: float) -> float:
        """The inverse document frequency: never zero, highest for a term that never occurs."""
        count = max(self.count, FEW, spread)
        return math.log(1 + (count - spread + 0.5) / (spread + 0.5))

    def strength(self, times: int, length: int) -> float:
        """How much a term counts that occurs `times` in a text of `length` terms; 1 for once in an average text."""
        return times * (K1 + 1) / (times + K1 * (1 - B + B * length / self.average))


def score(question: QueryTerms, postings: Mapping[str, Found], weights: Weights) -> dict[int, float]:
    """How well each memory that shares a term with the question answers it by itself: about 0 to 1."""
    scores: dict[int, float] = {}
    best = 0.0
    for group in question.groups:
        gained = _group_points(group, postings, weights)
        if group.optional:
            gained = {number: AS_USER * gained[number] for number in scores.keys() & gained.keys()}
        shared = scores.keys() & gained.keys()  # few
        both = {number: scores[number] + gained[number] for number in shared}
        scores |= gained
        scores |= both
        share = 1.0 if not group.optional else AS_USER if gained else 0.0
        best += share * _best_possible(group, question.length, postings[group.term], weights)
    return {number: points / best for number, points in scores.items()}


def _group_points(group: Group, postings: Mapping[str, Found], weights: Weights) -> dict[int, float]:
    """The points that the group gives to each memory: whichever of its terms fits best, once."""
    points: dict[int, float] = {}
    base, slope = K1 * (1 - B), K1 * B / weights.average
    for term, factor in ((group.term, 1.0), *group.soft):
        where = postings[term]
        worth = factor * weights.rarity(where.spread) * (K1 + 1)
        # `strength`, written out: this is most of a recall.
        gained = {n: worth * times / (times + base + slope * length) for n, times, length in where.postings}
        if points:
            gained |= {n: points[n] for n in points.keys() & gained.keys() if points[n] > gained[n]}
        points |= gained
    return points


def _best_possible(group: Group, length: int, where: Found, weights: Weights) -> float:
    unheard = NAME if group.name and not where.spread else 1.0
    return unheard * weights.rarity(where.spread) * weights.strength(group.times, length)


def in_company(scores: Mapping[int, float]) -> dict[int, float]:
    """Lift memories with neighbours that answer too: neighbouring messages are about the same.

    Company closes a part of the gap to a perfect answer, so a perfect one is never overtaken by its neighbours. Those
    have neighbouring numbers; `remembering` leaves a gap where a conversation ends.
    """
    low = min(scores, default=0) - 2
    span = max(scores, default=0) - low + 3
    if span > 20 * len(scores) + 100:
        return {**scores, **_lifted({n: scores[n] for n in _neighbours(scores)}, defaultdict(float, scores), 0)}
    own = [0.0] * span  # where they lie close: twice as fast to read
    for number, score in scores.items():
        own[number - low] = score
    return _lifted(scores, own, low)


def _lifted(scores: Mapping[int, float], own: Sequence[float] | Mapping[int, float], low: int) -> dict[int, float]:
    near, far = COMPANY
    return {
        n: score + (1 - score) * (near * (own[(at := n - low) - 1] + own[at + 1]) + far * (own[at - 2] + own[at + 2]))
        if score < 1
        else score
        for n, score in scores.items()
    }


def _neighbours(scores: Mapping[int, float]) -> set[int]:
    """Those that have company: few, where scores lie far apart."""
    near: set[int] = set()
    for distance in (1, 2):
        later = scores.keys() & {number + distance for number in scores}
        near |= later
        near |= {number - distance for number in later}
    return near


def best(scores: Mapping[int, float], count: int) -> list[int]:
    """The first `count` of `by_relevance`, without sorting the rest."""
    if len(scores) <= count:
        return by_relevance(scores)
    least = sorted(scores.values())[-count] - 1e-9  # what rounding makes equal to the last one may be newer
    return by_relevance({number: score for number, score in scores.items() if score >= least})[:count]


def by_relevance(scores: Mapping[int, float]) -> list[int]:
    """The best first; among equals the newer one, in whichever order the points were added."""
    rounded = {number: round(scores[number], 9) for number in sorted(scores, reverse=True)}
    return sorted(rounded, key=rounded.__getitem__, reverse=True)


def gate(count: int) -> float:
    """Without a threshold, a best hit less similar than this means: never mentioned.

    The more memories there are, the better the best accidental hit; chosen so that about two of three questions about
    something never mentioned are answered with silence, and one in seventy of the others.
    """
    return 0.05 + 0.016 * math.log2(1 + min(count, 1000))


# similarity = (words + meaning) x speaker, at most 1
#
# `words` is the BM25 of the best passage (`score`) lifted by its neighbours; `meaning` is the cosine of the closest
# passage, times a weight that shrinks as the words of this question find more. Both are keyed by place (see `index`),
# the result by the memory's number. A recall needs from the store: the postings of the question's terms, how many
# passages the space has and how long they are on average, the vectors of the passages that `scan` names and of the best
# by words, and the rows of the hits.

SCANNED = 200
"""So many passages that are close by their codes are compared exactly, and the hundred best by words."""
SCANNED_BY_MODEL = 500
"""The same where a model then compares: it finds more than the table's codes put first. Cosines of five hundred
vectors cost 10 ms, and 2 ms with numpy."""
BY_WORDS = 100
"""As many as a recall may ask for: words alone can fill it."""
SPEAKER = (1.0, 0.7, 0.75, 0.525)
"""By kind: a statement, a bare question, and the same by an assistant or a tool.

An assistant repeats its input and adds much: x 0.8 to x 0.6 gained on chats with assistants, below 0.75
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
MIN_SHARE = 0.1
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
    """Words and meaning together, weighed by the speaker; rounded to four digits."""
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
        scores = (self.score(number) for number in best(self.similarity, count))
        hits = [score for score in scores if score.similarity > 0]
        return sorted(hits, key=lambda score: (score.similarity, score.number), reverse=True)

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
            if (own := similarity.get(number, 0.0)) > 0:
                gained = TIMELY * own * max(1 - own, 0.0)
                words[number] = words.get(number, 0.0) + gained
                similarity[number] = own + gained * self.speaker.get(number, 1.0)
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
            return similar < gate(passages)
        doublings = math.log2(min(max(passages, _FEWEST), _MOST) / 25)
        doublings *= _FALL if doublings < 0 else 1.0
        distant = max(self.close.values()) < sense.close + sense.close_rise * doublings
        return distant and similar < sense.similar + sense.similar_rise * doublings


def combine(words: Mapping[int, float], closeness: Mapping[int, float], sense: Sense = TABLE) -> Answers:
    """Bring the passages' words and cosines (both by place) together to memories."""
    by_words, worded = _by_number(words)
    close, closest = _by_number(closeness)
    lifted = in_company(by_words)
    # The better the words fit, the less there is left for the meaning to say: fixed weights lose where names decide.
    weight = sense.weight * (1 - sense.discount * min(max(lifted.values(), default=0.0), 1.0))
    sums = lifted | {number: lifted.get(number, 0.0) + weight * meaning for number, meaning in close.items()}
    speaker = _speakers(sums, closest | worded)
    similar = sums | {number: sums[number] * share for number, share in speaker.items()}
    return Answers(lifted, worded, close, closest, weight, speaker, similar)


def _speakers(sums: Mapping[int, float], places: Mapping[int, int]) -> dict[int, float]:
    """The weights other than 1, by kind, which all passages of a memory share; each further question counts less."""
    weights = {number: SPEAKER[place & _KINDS] for number, place in places.items() if place & _KINDS}
    asking = [number for number in weights if places[number] & QUESTION]
    asking.sort(key=lambda number: (sums[number] * weights[number], number), reverse=True)
    return weights | {number: round(weights[number] / rank, 4) for rank, number in enumerate(asking, start=1)}


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
    """Is a hit only a remainder after the best one: weak after one that is clearly meant, or faint?"""
    if best.similarity >= CLEAR:
        return score.similarity < TAIL * best.similarity
    return score.similarity < MIN_SHARE * best.similarity and score.meaning <= best.meaning


def to_compare(words: Mapping[int, float], scanned: Iterable[int]) -> list[int]:
    """The places to compare exactly: those that the scan named, and the best by words."""
    return list(dict.fromkeys((*scanned, *best(words, BY_WORDS))))


# How sure a hit is: its similarity, its recency and how often it was recalled. Pure.

_INFLECTION = {
    "fact": 180.0,
    "semantic": 180.0,
    "procedural": 90.0,
    "preference": 60.0,
    "episodic": 14.0,
    "context": 3.0,
}
"""In days, by type: the numbers of Kronvex's server, so that a confidence means the same there and here."""
_OTHER_INFLECTION = 30.0
"""The one number that Kronvex documents."""


def confidence(similarity: float, age_days: float, memory_type: str, access_count: int) -> float:
    """Kronvex' formula: relevance, freshness by type, and use. `access_count` counts this recall."""
    inflection = _INFLECTION.get(memory_type, _OTHER_INFLECTION)
    recency = 1 / (1 + math.exp(min(0.05 * (age_days - inflection), 700.0)))
    frequency = min(math.log(1 + access_count) / math.log(11), 1.0)
    return 0.6 * similarity + 0.2 * recency + 0.2 * frequency


# Words related to a question's words, from a table in the package that is read at the first question.


def related(term: str) -> list[tuple[str, float]]:
    """Terms close in meaning to `term`, with their similarity from 0 to 1."""
    neighbours = related_terms().get(term, "").split()
    return [(neighbour[:-2], int(neighbour[-2:]) / 100) for neighbour in neighbours]


@lru_cache(maxsize=1)
def related_terms() -> Mapping[str, str]:
    """Every term that has relatives, and these as the table has them."""
    packed = resources.files("kronmem.engine").joinpath("soft_terms.z").read_bytes()
    lines = (line.partition(" ") for line in zlib.decompress(packed).decode().splitlines())
    return {term: neighbours for term, _, neighbours in lines}


# Near duplicates: of memories that say the same but for order, case, punctuation and filler, one is a hit. Pure.

# Words that a repeat adds or drops without printing anything else. No negation is among them, and no name.
_FILLER = frozenset(
    (
        *("a", "an", "the", "so", "well", "oh", "um", "uh", "hm", "please", "just", "really", "very", "quite"),
        *("actually", "also", "too", "again", "anyway", "btw", "ok", "okay", "yes", "hi", "hey", "hello", "thanks"),
    )
)


def distinct(hits: Iterable[tuple[Score, Row]], limit: int) -> list[tuple[Score, Row]]:
    """The first `limit` that say something else each: of near duplicates the pinned or newest one stands for all.

    Those score alike, so none is looked for beyond twice the limit once there are enough.
    """
    kept: dict[tuple[str, ...], tuple[Score, Row]] = {}
    for seen, (score, row) in enumerate(hits, start=1):
        key = statement(row.content)
        if key in kept:
            kept[key] = max(kept[key], (score, row), key=lambda one: (one[1].pinned, one[1].number))
        elif len(kept) < limit:
            kept[key] = (score, row)
        if len(kept) == limit and seen >= 2 * limit:
            break
    return sorted(kept.values(), key=lambda one: (one[0].similarity, one[0].number), reverse=True)


# The hits of one turn are those of the next: reading their words again is a tenth of a recall.
@lru_cache(maxsize=512)
def statement(content: str) -> tuple[str, ...]:
    """The words of a text but for order, case, punctuation and filler."""
    words = sorted(terms.tokens(content))
    return tuple(word for word in words if word not in _FILLER) or tuple(words)
