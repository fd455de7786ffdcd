"""One recall: find by words and meaning, weigh, drop filtered, expired and repeated memories. No SQL, no clock."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kronmem.engine import bm25, indexing, near_duplicates, scoring, succession, terms, vector_scan, word_vectors
from kronmem.engine.code_cache import CachedCodes
from kronmem.engine.confidence import confidence
from kronmem.engine.embedding import cosines
from kronmem.engine.scoring import MODEL, MODEL_SHARE, TABLE, Answers, Score
from kronmem.engine.store import PLACE_BITS, Filter, Found, Reader, Row, Space
from kronmem.models import Fill

BOUND = 1000
"""Of a term that is said more often, only the newest are read, and those that rarer terms of the question found. It is
half of a recall's cost among 10,000 memories; smaller spaces are read whole, and meaning is looked for everywhere."""
SOFT_BOUND = 300
"""The same for a term that is only related: it counts for less than half. 100 and 1,000 give the same figures on the
development sets; it bounds the work in large spaces."""
COMPLETED = 200
"""So many of those: twice the longest answer. 50 and 800 give the same figures on the development sets."""
VARIANTS = 4
"""So many words that begin alike stand for one that nobody used: about the forms of one word. 1 and 8 give the same
figures on the development sets."""
EVERYTHING = Filter()
_SUSPECTS = 20
"""So many memories are compared word by word with one that may repeat them."""
_DAY = 86400.0

# As stems. The tutorials ask "general context", and people "what do you know about me?".
_GENERAL = frozenset(
    stem
    for word in ("general", "context", "know", "knowledge", "about", "tell", "anything", "everything", "remember")
    for stem in terms.terms(word)
) | {*terms.STOPWORDS}


@dataclass(frozen=True)
class Told:
    """A range of time that the question names: `alone` if it asks for all of it, `dated` if by the calendar."""

    since: float
    until: float
    alone: bool = False
    dated: bool = False


@dataclass(frozen=True)
class Search:
    """A question, its filter, and how much of the answer is wanted."""

    query: str
    limit: int = 5
    threshold: float | None = None
    only: Filter = EVERYTHING
    count_access: bool = True
    exclude: frozenset[str] = frozenset()
    """The ids of memories that the caller has already."""
    fill: Fill = False
    told: Told | None = None


@dataclass(frozen=True)
class FoundRow:
    """A memory that was found; its access count includes this time, if that counts. `score` has the parts of
    `similarity`."""

    row: Row
    similarity: float
    confidence: float
    excerpt: str
    score: Score | None = None
    """None where nothing was asked: the memory fills a context up."""
    standing: bool = False
    earlier: bool = False


def search(
    rows: Reader, space: Space, asked: Search, now: float, codes: CachedCodes, embedded: Sequence[float] | None = None
) -> list[FoundRow]:
    """The best memories for a question; none when even the best is too weak to be meant."""
    known = codes.numbers(rows, space, asked.exclude) if asked.exclude else frozenset[int]()
    within = rows.matching(space, asked.only) if asked.only != EVERYTHING else None
    said = _score(rows, space, bm25.ask(asked.query), within)
    words = {place: score for place, score in said.items() if place >> PLACE_BITS not in known} if known else said
    scanned = scoring.SCANNED if embedded is None else scoring.SCANNED_BY_MODEL
    closeness = _closeness(rows, space, asked.query, words, codes, Reach(within, known), scanned)
    sense = TABLE
    if embedded is not None:
        closeness = closeness or _unread(space, words, Reach(within, known))
        closeness, sense = _by_model(rows, space, closeness, embedded), MODEL
    answers = scoring.combine(words, closeness, sense)
    if asked.told:
        answers = answers.lifted(rows.matching(space, Filter(since=asked.told.since, until=asked.told.until)))
    if known:
        answers = answers.without(_repeats(rows, space, answers, said, known, codes, asked.limit, now))
    # A name that was ever said matches by itself; about one that was not, a faint resemblance is chance.
    size = max(space.passages, scoring.NAMED) if terms.names(asked.query) else space.passages
    if asked.threshold is None and answers.silent(size, sense):
        return []
    seen: list[tuple[Score, Row]] = []
    found = near_duplicates.distinct(_noted(_live(rows, space, answers, asked, now), seen), asked.limit)
    if asked.threshold is None and found:
        best = found[0][0]
        found = [(score, row) for score, row in found if not scoring.is_tail(score, best)]
    if found and codes.changes:
        codes.changes.catch_up(rows, space, now)
    ordered = succession.arranged(rows, space, found, seen, codes.changes, now, within, known)[: asked.limit]
    return [_hit(row, score, now, counted=asked.count_access, earlier=earlier) for score, row, earlier in ordered]


def _noted(found: Iterator[tuple[Score, Row]], seen: list[tuple[Score, Row]]) -> Iterator[tuple[Score, Row]]:
    """The same, kept in `seen` as far as it is read."""
    for one in found:
        seen.append(one)
        yield one


class Reach(NamedTuple):
    """The memories that may answer, or all, and those that the caller has already."""

    within: Collection[int] | None
    without: Collection[int]


def _repeats(
    rows: Reader,
    space: Space,
    answers: Answers,
    said: Mapping[int, float],
    known: frozenset[int],
    codes: CachedCodes,
    limit: int,
    now: float,
) -> set[int]:
    """Near duplicates of what the caller has, among the best: they share its words, and so nearly its score."""
    own = sorted((score, number) for place, score in said.items() if (number := place >> PLACE_BITS) in known)
    unsaid: list[int] | None = None
    suspects: dict[int, list[int]] = {}
    for number, place in ((score.number, score.place) for score in answers.best(limit)):
        if score := said.get(place):
            first, last = bisect_left(own, (0.8 * score,)), bisect_right(own, (1.25 * score, space.last))
            like = [n for _, n in own[first:last]]
        else:
            unsaid = unsaid if unsaid is not None else list(known.difference(n for _, n in own))
            like = unsaid
        if alike := codes.alike(number, like)[:_SUSPECTS]:
            suspects[number] = alike
    read = rows.rows(space, [*suspects, *{n for alike in suspects.values() for n in alike}], now)
    said_by = {number: near_duplicates.statement(row.content) for number, row in read.items()}
    return {n for n, alike in suspects.items() if n in read and any(said_by[n] == said_by.get(o) for o in alike)}


def is_general(query: str) -> bool:
    """Whether the query asks for nothing in particular: none of its words can tell one memory from another."""
    return not set(terms.terms(query)) - _GENERAL


def filler(row: Row, now: float) -> FoundRow:
    """A memory that nothing was asked about, so nothing is similar."""
    return _hit(row, None, now)


def listing(row: Row, now: float) -> FoundRow:
    """A memory that is listed because its time was asked for."""
    return _hit(row, Score(row.number, indexing.place(row.number, 0, 0), 0.0, 0.0, 1.0), now)


def _score(rows: Reader, space: Space, question: bm25.QueryTerms, within: frozenset[int] | None) -> dict[int, float]:
    weights = bm25.Weights(space.passages, max(space.words / max(space.passages, 1), 1.0))
    bounds = {term: BOUND if said else SOFT_BOUND for term, said in question.terms().items()}
    found = rows.postings(space, bounds, within)
    variants = {
        group.term: rows.terms_like(space, start, VARIANTS)
        for group in question.groups
        if not found[group.term].spread and (start := terms.variant_start(group.term))
    }
    question = bm25.with_variants(question, variants) if variants else question
    new = {term: SOFT_BOUND for terms in variants.values() for term in terms if term not in bounds}
    found |= rows.postings(space, new, within) if new else {}
    bounds |= new
    if any(where.cut for where in found.values()):
        rare = {term: where if not where.cut else replace(where, postings=()) for term, where in found.items()}
        best = bm25.best(bm25.score(question, rare, weights), COMPLETED)
        found = {
            t: _completed(rows, space, t, where, best) if bounds[t] == BOUND else where for t, where in found.items()
        }
    return bm25.score(question, found, weights)


def _completed(rows: Reader, space: Space, term: str, where: Found, best: Sequence[int]) -> Found:
    """Look a common term up also in the older memories that the rarer terms of the question found."""
    if not where.cut:
        return where
    seen = {place >> PLACE_BITS for place, _, _ in where.postings}
    missing = frozenset(map(indexing.number_of, best)) - seen
    return replace(where, postings=[*where.postings, *rows.postings(space, {term: BOUND}, missing)[term].postings])


def _closeness(
    rows: Reader,
    space: Space,
    query: str,
    words: Mapping[int, float],
    codes: CachedCodes,
    reach: Reach,
    scanned: int,
) -> dict[int, float]:
    """How close in meaning the passages are that the scan names or that the words found first, by place."""
    question = word_vectors.vector(query)
    if not question:
        return {}
    places = scoring.to_compare(words, codes.nearest(question, scanned, reach.within, reach.without))
    numbers = dict(zip(places, map(indexing.number_of, places), strict=True))
    vectors = codes.vectors(rows, space, list(dict.fromkeys(numbers.values())))
    if missing := set(numbers.values()) - vectors.keys():
        # What is newer than this view of the space is not gone: somebody with a later view has added it.
        codes.discard({number for number in missing - _unfilled(words) if number <= space.last})
    found = {at: known for at, n in numbers.items() if (known := indexing.vector_at(vectors.get(n, b""), at))}
    numpy = vector_scan.numpy_for(vector_scan.COMPARED * len(found))
    closeness = word_vectors.Comparison(question).closeness(list(found.values()), numpy)
    return dict(zip(found, closeness, strict=True))


def _unfilled(words: Mapping[int, float]) -> set[int]:
    """Memories that the words found are there, whether or not they have a meaning yet."""
    return set(map(indexing.number_of, words))


def _unread(space: Space, words: Mapping[int, float], reach: Reach) -> dict[int, float]:
    """For a model alone: the newest memories, where the table knows no word of the question, such as one in Russian."""
    found = set(map(indexing.number_of, words))
    newest = range(space.last, max(space.last - scoring.SCANNED_BY_MODEL, 0), -1)
    within = newest if reach.within is None else reach.within
    others = (n for n in newest if n not in found and n not in reach.without and n in within)
    return dict.fromkeys(scoring.to_compare(words, (indexing.place(n, 0, 0) for n in others)), 0.0)


def _by_model(rows: Reader, space: Space, closeness: dict[int, float], embedded: Sequence[float]) -> dict[int, float]:
    """The same with the vectors of a model, where a memory has one; the others keep the table's."""
    vectors = rows.embeddings(space, list(dict.fromkeys(map(indexing.number_of, closeness))))
    known = cosines(embedded, vectors, vector_scan.numpy_for(vector_scan.COMPARED * len(vectors)))
    return {
        place: close
        if (model := known.get(indexing.number_of(place))) is None
        else MODEL_SHARE * max(model, 0.0) + (1 - MODEL_SHARE) * close
        for place, close in closeness.items()
    }


def _live(rows: Reader, space: Space, answers: Answers, asked: Search, now: float) -> Iterator[tuple[Score, Row]]:
    """The hits in order, read in steps: a memory that has expired since its last sweep makes room for the next."""
    floor = asked.threshold if asked.threshold is not None else 0.0
    start, step = 0, 2 * asked.limit
    while True:  # further down each time, for as long as somebody wants more
        part = answers.best(start + step)[start:]
        found = rows.rows(space, [score.number for score in part if score.similarity >= floor], now)
        read = ((score, found[score.number]) for score in part if score.number in found)
        yield from (one for one in read if one[1].id not in asked.exclude)
        if len(part) < step:
            return
        start, step = start + step, 4 * step


def _hit(row: Row, score: Score | None, now: float, *, counted: bool = True, earlier: bool = False) -> FoundRow:
    seen = replace(row, access_count=row.access_count + counted)
    similarity = score.similarity if score else 0.0
    age = max(now - row.created_at, 0.0) / _DAY
    sure = confidence(similarity, age, row.memory_type, seen.access_count)
    excerpt = indexing.excerpt(row.content, score.place) if score and row.passages > 1 else row.content
    return FoundRow(seen, similarity, round(sure, 4), excerpt, score, earlier=earlier)
