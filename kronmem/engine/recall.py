"""One recall: look the question's terms up, score, drop what is filtered or expired, cut. No SQL, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from kronmem.engine import ranking, terms
from kronmem.engine.embedding import cosine
from kronmem.engine.index import memory_of
from kronmem.engine.store import Filter, Found, Page, Reader, Row, Space

BOUND = 4000
"""Of a term that is said more often, only the newest are read, and those that rarer terms of the question found."""
SOFT_BOUND = 1000
"""The same for a term that is only related."""
COMPLETED = 500
"""So many of those."""
VARIANTS = 4
"""So many words that begin alike stand for one that nobody used."""
RESCORED = 100
"""So many candidates are compared by vector."""
EVERYTHING = Filter()
_DAY = 86400.0


@dataclass(frozen=True)
class Search:
    """A question, what it is limited to, and how much of the answer is wanted."""

    query: str
    limit: int = 5
    threshold: float | None = None
    only: Filter = EVERYTHING
    count_access: bool = True


@dataclass(frozen=True)
class Hit:
    """A memory that was found; its access count includes this time."""

    row: Row
    similarity: float
    confidence: float


def search(rows: Reader, space: Space, asked: Search, now: float, vector: Sequence[float] | None = None) -> list[Hit]:
    """The best memories for a question; none when even the best is too weak to be meant."""
    within = rows.matching(space, asked.only) if asked.only != EVERYTHING else None
    scores = _score(rows, space, ranking.ask(asked.query), within)
    gate = ranking.gate(space.count)
    if vector is not None:
        scores, gate = _rescore(rows, space, scores, within, vector), ranking.vector_gate(space.count)
    floor = asked.threshold if asked.threshold is not None else 0.0
    ranked = [number for number in ranking.best(scores, 4 * asked.limit) if min(scores[number], 1.0) >= floor]
    live = list(islice(_live(rows, space, ranked, asked.limit, now), asked.limit))
    if len(live) < asked.limit and len(scores) > len(ranked):  # much has expired: look further down
        ranked = [number for number in ranking.by_relevance(scores) if min(scores[number], 1.0) >= floor]
        live = list(islice(_live(rows, space, ranked, asked.limit, now), asked.limit))
    if asked.threshold is None and live and scores[live[0].number] < gate:
        return []
    return [_hit(row, min(scores[row.number], 1.0), now) for row in live]


def latest(rows: Reader, space: Space, only: Filter, limit: int, now: float) -> list[Hit]:
    """Pinned memories, then the newest; nothing was asked, so nothing is similar."""
    page = Page(limit=limit)
    found = rows.page(space, replace(only, pinned=True), page, now) + rows.page(space, only, page, now)
    return [_hit(row, 0.0, now) for row in islice({row.number: row for row in found}.values(), limit)]


def _score(rows: Reader, space: Space, question: ranking.Question, within: frozenset[int] | None) -> dict[int, float]:
    weights = ranking.Weights(space.passages, max(space.words / max(space.passages, 1), 1.0))
    bounds = {term: BOUND if said else SOFT_BOUND for term, said in question.terms().items()}
    found = rows.postings(space, bounds, within)
    variants = {
        group.term: rows.terms_like(space, start, VARIANTS)
        for group in question.groups
        if not found[group.term].spread and (start := terms.variant_start(group.term))
    }
    question = ranking.with_variants(question, variants) if variants else question
    new = {term: SOFT_BOUND for terms in variants.values() for term in terms if term not in bounds}
    found |= rows.postings(space, new, within) if new else {}
    bounds |= new
    if any(where.cut for where in found.values()):
        rare = {term: where if not where.cut else replace(where, postings=()) for term, where in found.items()}
        best = ranking.by_relevance(_by_memory(ranking.score(question, rare, weights)))[:COMPLETED]
        found = {
            t: _completed(rows, space, t, where, best) if bounds[t] == BOUND else where for t, where in found.items()
        }
    return ranking.in_company(_by_memory(ranking.score(question, found, weights)))


def _by_memory(scores: Mapping[int, float]) -> dict[int, float]:
    """The score of each memory: that of its best passage."""
    found: dict[int, float] = {}
    for passage, score in scores.items():
        number = memory_of(passage)
        if score > found.get(number, 0.0):
            found[number] = score
    return found


def _completed(rows: Reader, space: Space, term: str, where: Found, best: Sequence[int]) -> Found:
    """Look a common term up also in the older memories that the rarer terms of the question found."""
    if not where.cut:
        return where
    missing = frozenset(best) - {memory_of(passage) for passage, _, _ in where.postings}
    return replace(where, postings=[*where.postings, *rows.postings(space, {term: BOUND}, missing)[term].postings])


def _live(rows: Reader, space: Space, ranked: list[int], limit: int, now: float) -> Iterator[Row]:
    """The rows in order, read in steps: what has expired since its last sweep makes room for the next."""
    for start in range(0, len(ranked), limit):
        step = ranked[start : start + limit]
        found = rows.rows(space, step, now)
        yield from (found[number] for number in step if number in found)


def _hit(row: Row, similarity: float, now: float) -> Hit:
    counted = replace(row, access_count=row.access_count + 1)
    age = max(now - row.created_at, 0.0) / _DAY
    sure = ranking.confidence(similarity, age, row.memory_type, counted.access_count)
    return Hit(counted, round(similarity, 4), round(sure, 4))


def _rescore(
    rows: Reader,
    space: Space,
    scores: dict[int, float],
    within: frozenset[int] | None,
    vector: Sequence[float],
) -> dict[int, float]:
    """Mix words and vector for the best candidates; where words found too few, the newest memories fill up."""
    best = ranking.by_relevance(scores)[:RESCORED]
    numbers = list(dict.fromkeys((*best, *_newest(space, within, RESCORED - len(best)))))
    vectors = rows.embeddings(space, numbers)
    mixed = {n: ranking.mix(scores.get(n, 0.0), cosine(vector, vectors.get(n))) for n in numbers}
    return {**scores, **{number: score for number, score in mixed.items() if score > 0}}


def _newest(space: Space, within: frozenset[int] | None, wanted: int) -> Iterable[int]:
    if within is not None:
        return sorted(within, reverse=True)[:wanted]
    return range(space.last, max(space.last - 3 * wanted, 0), -1)  # there are gaps
