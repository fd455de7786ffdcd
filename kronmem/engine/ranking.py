"""How well a memory answers a question: BM25 within one space, softened by related terms. Pure.

A question becomes groups, one for each of its terms; a group is the term itself and, at a lower weight, the terms close
to it in meaning. `similarity` is measured against a memory with exactly the words asked for, not against the best hit,
so that a question about something never mentioned scores low however the others compare.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from kronmem.engine import terms
from kronmem.engine.related_words import related
from kronmem.engine.store import Found
from kronmem.engine.topics import telling

K1 = 0.6
B = 0.3
"""BM25's own numbers, half and less of the textbook's 1.2 and 0.75: passages are short and of about one length, so
that neither a repeated word nor the length tells much."""
SOFT = 0.4
"""A related term counts so much of its similarity: less than half, since meaning is measured besides."""
TOPIC = 0.5
"""A word by which things are told of the kind that the question names."""
AS_USER = 0.1
"""So much of its worth the word "user" has beside what a question asks about the user."""
RELATED = 3
"""The closest related terms are asked for; with all ten, recall gains nothing and reads three times as much."""
VARIANT = 0.5
"""A word that only begins like the one that was said: half, as it may be another word. 0.25 and 0.75 move no figure of
the development sets by more than .006."""
NAME = 2.0
"""A name nobody mentioned says more than a word nobody used: words have synonyms. On LoCoMo's turns
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
    """One term of a question: how often it was said, if as a name, and the weighted terms that may stand for it."""

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
        """Every term to look up, and whether the question itself says it."""
        said = {group.term: True for group in self.groups}
        return {**{soft: False for group in self.groups for soft, _ in group.soft}, **said}


def ask(question: str) -> QueryTerms:
    """Turn a question into groups of terms; a very long one keeps its beginning and its end."""
    said = Counter(terms.terms(question))
    kept = list(said)
    if len(kept) > MAX_TERMS:
        kept = kept[: MAX_TERMS // 2] + kept[-MAX_TERMS // 2 :]
    names = terms.names(question)
    groups = [Group(t, said[t], t in names, _soft(t) if i < MAX_SOFTENED else ()) for i, t in enumerate(kept)]
    return QueryTerms(_about_user(question, groups), sum(said.values()))


_ASKER = re.compile(r"\b(?:i|me|my|mine|myself)\b", re.IGNORECASE)
_USER = re.compile(r"\b(?:the|this) user\b|\buser's\b", re.IGNORECASE)


def _about_user(question: str, groups: list[Group]) -> tuple[Group, ...]:
    """Whoever asks is the user: "my" finds notes that say "User …", and "the user" those that say "I"."""
    if _USER.search(question):
        others = tuple(group for group in groups if group.term != "user")
        return (*others, Group("user", 1, optional=True)) if others else tuple(groups)
    if groups and _ASKER.search(question) and all(group.term != "user" for group in groups):
        return (*groups, Group("user", 1, optional=True))
    return tuple(groups)


def with_variants(question: QueryTerms, variants: Mapping[str, Iterable[str]]) -> QueryTerms:
    """Let words that begin alike stand for those nobody used: to us they are one word, to the stemmer not always."""
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
        """The inverse document frequency: never zero, highest for a term nobody used."""
        count = max(self.count, FEW, spread)
        return math.log(1 + (count - spread + 0.5) / (spread + 0.5))

    def strength(self, times: int, length: int) -> float:
        """How much a term counts that occurs `times` in a text of `length` terms; 1 for once in an average text."""
        return times * (K1 + 1) / (times + K1 * (1 - B + B * length / self.average))


def score(question: QueryTerms, found: Mapping[str, Found], weights: Weights) -> dict[int, float]:
    """How well each memory that shares a term with the question answers it by itself: about 0 to 1."""
    scores: dict[int, float] = {}
    best = 0.0
    for group in question.groups:
        gained = _group_points(group, found, weights)
        if group.optional:
            gained = {number: AS_USER * gained[number] for number in scores.keys() & gained.keys()}
        shared = scores.keys() & gained.keys()  # few
        both = {number: scores[number] + gained[number] for number in shared}
        scores |= gained
        scores |= both
        share = 1.0 if not group.optional else AS_USER if gained else 0.0
        best += share * _best_possible(group, question.length, found[group.term], weights)
    return {number: points / best for number, points in scores.items()}


def _group_points(group: Group, found: Mapping[str, Found], weights: Weights) -> dict[int, float]:
    """The points that the group gives to each memory: whichever of its terms fits best, once."""
    points: dict[int, float] = {}
    base, slope = K1 * (1 - B), K1 * B / weights.average
    for term, factor in ((group.term, 1.0), *group.soft):
        where = found[term]
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
    have neighbouring numbers; whoever numbers memories leaves a gap where a conversation ends.
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
    found: set[int] = set()
    for distance in (1, 2):
        later = scores.keys() & {number + distance for number in scores}
        found |= later
        found |= {number - distance for number in later}
    return found


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
    """Without a threshold, a best hit less similar than this means: never heard of it.

    The more memories there are, the better the best accidental hit; chosen so that about two of three questions about
    something never mentioned are answered with silence, and one in seventy of the others.
    """
    return 0.05 + 0.016 * math.log2(1 + min(count, 1000))
