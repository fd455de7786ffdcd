"""One recall: find by words and meaning, weigh, drop filtered, expired and repeated memories. No SQL, no clock."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import NamedTuple

from kronmem.engine import asker, index, ranking, scan, succession, terms, word_vectors
from kronmem.engine.embedding import cosines
from kronmem.engine.ranking import CLEAR, MODEL, MODEL_SHARE, TABLE, Answers, Score, confidence, statement
from kronmem.engine.scan import CachedCodes
from kronmem.engine.store import PLACE_BITS, Filter, Found, Page, Reader, Row, Space
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
    said = _score(rows, space, ranking.ask(asked.query), within)
    words = {place: score for place, score in said.items() if place >> PLACE_BITS not in known} if known else said
    scanned = ranking.SCANNED if embedded is None else ranking.SCANNED_BY_MODEL
    closeness = _closeness(rows, space, asked.query, words, codes, Reach(within, known), scanned)
    sense = TABLE
    if embedded is not None:
        closeness = closeness or _unread(space, words, Reach(within, known))
        closeness, sense = _by_model(rows, space, closeness, embedded), MODEL
    answers = ranking.combine(words, closeness, sense)
    if asked.told:
        answers = answers.lifted(rows.matching(space, Filter(since=asked.told.since, until=asked.told.until)))
    if known:
        answers = answers.without(_repeats(rows, space, answers, said, known, codes, asked.limit, now))
    # A name that was ever said matches by itself; about one that was not, a faint resemblance is chance.
    size = max(space.passages, ranking.NAMED) if terms.names(asked.query) else space.passages
    if asked.threshold is None and answers.silent(size, sense):
        return []
    seen: list[tuple[Score, Row]] = []
    found = ranking.distinct(_noted(_live(rows, space, answers, asked, now), seen), asked.limit)
    if asked.threshold is None and found:
        best = found[0][0]
        found = [(score, row) for score, row in found if not ranking.is_tail(score, best)]
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
    """Near duplicates of the caller's memories, among the best: they share its words, and so nearly its score."""
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
    said_by = {number: ranking.statement(row.content) for number, row in read.items()}
    return {n for n, alike in suspects.items() if n in read and any(said_by[n] == said_by.get(o) for o in alike)}


def is_general(query: str) -> bool:
    """Whether the query asks for nothing in particular: none of its words can tell one memory from another."""
    return not set(terms.terms(query)) - _GENERAL


def filler(row: Row, now: float) -> FoundRow:
    """A memory that nothing was asked about, so nothing is similar."""
    return _hit(row, None, now)


def listing(row: Row, now: float) -> FoundRow:
    """A memory that is listed because its time was asked for."""
    return _hit(row, Score(row.number, index.place(row.number, 0, 0), 0.0, 0.0, 1.0), now)


def _score(rows: Reader, space: Space, question: ranking.QueryTerms, within: frozenset[int] | None) -> dict[int, float]:
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
        best = ranking.best(ranking.score(question, rare, weights), COMPLETED)
        found = {
            t: _completed(rows, space, t, where, best) if bounds[t] == BOUND else where for t, where in found.items()
        }
    return ranking.score(question, found, weights)


def _completed(rows: Reader, space: Space, term: str, where: Found, best: Sequence[int]) -> Found:
    """Look a common term up also in the older memories that the rarer terms of the question found."""
    if not where.cut:
        return where
    seen = {place >> PLACE_BITS for place, _, _ in where.postings}
    missing = frozenset(map(index.number_of, best)) - seen
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
    places = ranking.to_compare(words, codes.nearest(question, scanned, reach.within, reach.without))
    numbers = dict(zip(places, map(index.number_of, places), strict=True))
    vectors = codes.vectors(rows, space, list(dict.fromkeys(numbers.values())))
    if missing := set(numbers.values()) - vectors.keys():
        # What is newer than this view of the space is not gone: somebody with a later view has added it.
        codes.discard({number for number in missing - _unfilled(words) if number <= space.last})
    found = {at: known for at, n in numbers.items() if (known := index.vector_at(vectors.get(n, b""), at))}
    numpy = scan.numpy_for(scan.COMPARED * len(found))
    closeness = word_vectors.Comparison(question).closeness(list(found.values()), numpy)
    return dict(zip(found, closeness, strict=True))


def _unfilled(words: Mapping[int, float]) -> set[int]:
    """Memories that the words found are there, whether or not they have a meaning yet."""
    return set(map(index.number_of, words))


def _unread(space: Space, words: Mapping[int, float], reach: Reach) -> dict[int, float]:
    """For a model alone: the newest memories, where the table knows no word of the question, such as one in Russian."""
    found = set(map(index.number_of, words))
    newest = range(space.last, max(space.last - ranking.SCANNED_BY_MODEL, 0), -1)
    within = newest if reach.within is None else reach.within
    others = (n for n in newest if n not in found and n not in reach.without and n in within)
    return dict.fromkeys(ranking.to_compare(words, (index.place(n, 0, 0) for n in others)), 0.0)


def _by_model(rows: Reader, space: Space, closeness: dict[int, float], embedded: Sequence[float]) -> dict[int, float]:
    """The same with the vectors of a model, where a memory has one; the others keep the table's."""
    vectors = rows.embeddings(space, list(dict.fromkeys(map(index.number_of, closeness))))
    known = cosines(embedded, vectors, scan.numpy_for(scan.COMPARED * len(vectors)))
    return {
        place: close
        if (model := known.get(index.number_of(place))) is None
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
    excerpt = index.excerpt(row.content, score.place) if score and row.passages > 1 else row.content
    return FoundRow(seen, similarity, round(sure, 4), excerpt, score, earlier=earlier)


# What stands around the hits of a question: standing notes, a profile, or all that fills a context up. No SQL.

FIRST = ("preference", "decision")
"""The types that say most about somebody whom nothing was asked about, in this order."""

MOST_PAGES = 10
"""So many pages are read where near duplicates take no place of their own: a context is worth no longer walk."""
STANDING, STANDING_CHARS = 5, 600
"""Of standing notes: they are in every prompt, so they take about 150 tokens of it and no more."""
OLDEST, NEWEST = 200, 800
"""So many facts are looked at for a profile: people introduce themselves at the beginning."""
FACTS = 3
"""So many places of a profile are kept for facts, however many preferences there are."""


class _Surroundings:
    """The rows of one agent that a question may be filled up with: within its filter, and not known to the caller."""

    def __init__(self, rows: Reader, space: Space, asked: Search, now: float, codes: CachedCodes) -> None:
        self._rows, self._space, self._only, self._now, self._codes = rows, space, asked.only, now, codes
        self._known = codes.numbers(rows, space, asked.exclude) if asked.exclude else frozenset[int]()

    def pinned(self, limit: int) -> list[Row]:
        page = Page(limit=limit + len(self._known))
        return self._rows.page(self._space, replace(self._only, pinned=True), page, self._now)

    def of_type(self, memory_type: str, *, oldest: int = 0, newest: int = NEWEST) -> Iterator[Row]:
        """Memories of a type, newest first, by the index of types: few of many have one of those asked for."""
        if self._only.memory_type not in (None, memory_type):
            return
        numbers = sorted(self._rows.matching(self._space, replace(self._only, memory_type=memory_type)), reverse=True)
        wanted = list(dict.fromkeys((*numbers[:newest], *numbers[len(numbers) - oldest :])))
        for start in range(0, len(wanted), 100):
            found = self._rows.rows(self._space, wanted[start : start + 100], self._now)
            yield from (found[number] for number in wanted[start : start + 100] if number in found)

    def newest(self, limit: int) -> Iterator[Row]:
        size = limit + len(self._known)
        for page in range(MOST_PAGES):
            part = self._rows.page(self._space, self._only, Page(limit=size, offset=page * size), self._now)
            yield from part
            if len(part) < size:
                return

    def unknown(self, found: Iterable[Row]) -> Iterator[Row]:
        """Those that the caller does not have, in these or nearly these words."""
        return (row for row in found if row.number not in self._known and not self._repeats(row))

    def current(self, notes: Sequence[Row]) -> list[Row]:
        """The notes, each given up for a later one that replaces it."""
        if (changes := self._codes.changes) is not None:
            changes.catch_up(self._rows, self._space, self._now)
        found = [(Score(row.number, index.place(row.number, 0, 0), 0.0, 0.0, 1.0), row) for row in notes]
        within = self._rows.matching(self._space, self._only) if self._only != EVERYTHING else None
        ordered = succession.arranged(self._rows, self._space, found, found, changes, self._now, within, self._known)
        return [row for _, row, earlier in ordered if not earlier]

    def _repeats(self, row: Row) -> bool:
        if not self._known or not (alike := self._codes.alike(row.number, self._known)):
            return False
        known = self._rows.rows(self._space, alike, self._now).values()
        return statement(row.content) in {statement(one.content) for one in known}


def fill_context(
    rows: Reader, space: Space, hits: Sequence[FoundRow], asked: Search, now: float, codes: CachedCodes
) -> list[FoundRow]:
    """The hits with the neighbours that the question wants."""
    around = _Surroundings(rows, space, asked, now, codes)
    filled = _with_standing if asked.fill == "profile" else _filled_up
    return filled(around, hits, asked.limit, now)


def _with_standing(around: _Surroundings, hits: Sequence[FoundRow], limit: int, now: float) -> list[FoundRow]:
    """Standing notes first, then the hits; where there is room for one of both only, half of it is the hits'."""
    answered = {hit.row.number: hit for hit in hits}
    notes = around.current(list(around.unknown(_standing_notes(around))))
    numbers = {row.number for row in notes}
    others = [hit for hit in hits if hit.row.number not in numbers]
    notes = notes[: limit - min(len(others), limit // 2)]
    standing = [replace(answered.get(row.number) or filler(row, now), standing=True) for row in notes]
    return [*standing, *others][:limit]


def _standing_notes(around: _Surroundings) -> list[Row]:
    """Pinned memories, then preferences, newest first, within both bounds; the same for every question."""
    notes: dict[tuple[str, ...], Row] = {}
    left = STANDING_CHARS
    for row in chain(around.pinned(4 * STANDING), islice(around.of_type("preference"), 4 * STANDING)):
        if len(row.content) <= left and (said := statement(row.content)) not in notes:
            notes[said] = row
            left -= len(row.content)
        if len(notes) == STANDING:
            break
    return list(notes.values())


def _filled_up(around: _Surroundings, hits: Sequence[FoundRow], limit: int, now: float) -> list[FoundRow]:
    """Pinned memories first, at most half of `limit`; the hits; preferences, decisions and the newest up to `limit`."""
    answered = {hit.row.number: hit for hit in hits}
    found: dict[tuple[str, ...], FoundRow] = {}  # one for each statement: near duplicates take one place
    for row in islice(around.unknown(around.pinned(limit)), max(limit // 2, 1)):
        found.setdefault(statement(row.content), answered.get(row.number) or filler(row, now))
    for hit in hits:
        found.setdefault(statement(hit.row.content), hit)
    rest = chain(*(around.of_type(memory_type) for memory_type in FIRST), around.newest(limit))
    for row in around.unknown(rest):
        if len(found) >= limit:
            break
        found.setdefault(statement(row.content), filler(row, now))
    return list(islice(found.values(), limit))


def told(
    rows: Reader, space: Space, hits: Sequence[FoundRow], asked: Search, when: Told, now: float, codes: CachedCodes
) -> list[FoundRow]:
    """All of a range of time, newest first; memories found by a date that they name stand before."""
    within = replace(asked, only=replace(asked.only, since=when.since, until=when.until))
    around = _Surroundings(rows, space, within, now, codes)
    listed = _distinct(islice(around.unknown(around.newest(asked.limit)), 4 * asked.limit))
    if _DECIDED.search(asked.query):
        listed.sort(key=lambda row: row.memory_type != "decision")
    named = [hit for hit in hits if when.dated and hit.similarity >= CLEAR] if listed else hits
    numbers = {hit.row.number for hit in named}
    return [*named, *(listing(row, now) for row in listed if row.number not in numbers)][: asked.limit]


_DECIDED = re.compile(r"decid|decision|entschieden|beschlossen", re.IGNORECASE)


def profile(rows: Reader, space: Space, asked: Search, now: float, codes: CachedCodes) -> list[FoundRow]:
    """The person who asks: pinned memories, preferences, decisions, then the facts that say most; none of it if nothing
    is known except from an assistant."""
    around = _Surroundings(rows, space, asked, now, codes)
    noted = [*around.pinned(asked.limit), *islice(around.of_type("preference"), 2 * asked.limit)]
    decided = list(islice(around.of_type("decision"), 2 * asked.limit))
    told = [row for row in around.of_type("fact", oldest=OLDEST) if row.role in ("user", None)]
    facts = sorted(told, key=lambda row: -asker.importance(row.content))
    if not noted and not any(row.role == "user" or asker.importance(row.content) for row in (*facts, *decided)):
        return []
    before, behind = _distinct(around.unknown((*noted, *decided))), _distinct(around.unknown(facts))
    before = before[: asked.limit - min(len(behind), FACTS, (asked.limit + 1) // 2, asked.limit - 1)]
    chosen = _distinct((*before, *behind))[: asked.limit]
    return [replace(filler(row, now), standing=True) for row in chosen]


def _distinct(found: Iterable[Row]) -> list[Row]:
    kept: dict[tuple[str, ...], Row] = {}
    for row in found:
        kept.setdefault(statement(row.content), row)
    return list(kept.values())
