"""Later statements directly before the earlier ones that they replace, drawn in where the question did not find them.

The statements of a space about a change ("moved to", "no longer") are kept in memory by the words of the thing they
change, so that a hit finds them without a search. No SQL, no clock.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kronmem.engine import rivals, terms
from kronmem.engine.ranking import Score, statement
from kronmem.engine.rivals import Clause, Statement
from kronmem.engine.store import PLACE_BITS, Reader, Row, Space

MOST = 2000
"""Of the changes of a space the newest: about 3 MB."""
_READ = 200
"""So many new memories are read; among more, the index names those with the words of a change."""
_PER_WORD = 300
"""Of a word of change, so many of the newest memories."""
_COMPARED = 20
"""So many of the best hits are compared with one another: nobody reads further."""
_CANDIDATES = 12
"""Changes that are compared with one hit."""
_HOME, _WORK, _MARRIAGE = "\0home", "\0work", "\0marriage"
_STATES = (_HOME, _WORK, _MARRIAGE)
_ASKED = (
    "live living reside based wohne wohnt habite vivo vive",
    "work working employed job arbeite",
    "single engaged married divorced widowed",
)
_STATE_STEMS = {terms.stem(word): state for state, words in zip(_STATES, _ASKED, strict=True) for word in words.split()}

Found = list[tuple[Score, Row]]


@dataclass
class Changes:
    """The statements of one space that tell of a change. Safe for any thread."""

    _last: int = 0
    _statements: dict[int, Statement] = field(default_factory=lambda: dict[int, Statement]())
    _by_word: dict[str, list[int]] = field(default_factory=lambda: dict[str, list[int]]())
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def catch_up(self, rows: Reader, space: Space, now: float) -> None:
        """Read the memories stored since."""
        if (last := self._last) >= space.last:
            return
        found = rows.rows(space, _news(rows, space, last), now)
        read = [(number, told) for number, row in sorted(found.items()) if (told := _change(row.content))]
        with self._lock:
            if self._last == last:
                self._add(read)
                self._last = space.last

    def _add(self, read: Iterable[tuple[int, Statement]]) -> None:
        for number, told in read:
            self._statements[number] = told
            for word in _words_of(told):
                self._by_word.setdefault(word, []).append(number)
        for number in list(self._statements)[:-MOST]:
            for word in _words_of(self._statements.pop(number)):
                self._by_word[word].remove(number)

    def after(self, number: int, words: Collection[str]) -> list[int]:
        """Later changes of a statement that a memory of these words may hold, newest first."""
        with self._lock:
            lists = [numbers for word in words if (numbers := self._by_word.get(word)) and numbers[-1] > number]
            found = {later for numbers in lists for later in numbers[-_CANDIDATES:] if later > number}
        return sorted(found, reverse=True)[:_CANDIDATES]

    def statement(self, number: int) -> Statement | None:
        """The change that a memory states."""
        return self._statements.get(number)


def _news(rows: Reader, space: Space, last: int) -> list[int]:
    """The numbers of new memories that may tell of a change."""
    if space.last - last <= _READ:
        return list(range(last + 1, space.last + 1))
    found = rows.postings(space, dict.fromkeys(rivals.CUES, _PER_WORD), None)
    numbers = {place >> PLACE_BITS for where in found.values() for place, _, _ in where.postings}
    return sorted(number for number in numbers if number > last)[-MOST:]


def _change(content: str) -> Statement | None:
    told = rivals.read(content)
    news = told and (
        told.over or told.changed or any(told.becomes) or told.turns or any(_has_news(c) for c in told.clauses)
    )
    return told if news else None


def _has_news(clause: Clause) -> bool:
    """Whether a clause gives a thing a value that is said to be new: "was cut to", "the goal is 20 now"."""
    return clause.changed or (clause.cued and bool(clause.value) and not clause.person)


def _words_of(told: Statement) -> set[str]:
    """The words by which the statement that it replaces is found."""
    found = {terms.stem(word) for stems in (*told.over, *told.changed) for stem in stems for word in terms.tokens(stem)}
    found |= {stem for clause in told.clauses if _has_news(clause) for stem in clause.subject}
    found |= {terms.stem(noun) for _, noun in told.pairs} if told.turns else set()
    return found | {state for state, becomes in zip(_STATES, told.becomes, strict=True) if becomes}


def arranged(
    rows: Reader,
    space: Space,
    hits: Found,
    seen: Found,
    changes: Changes | None,
    now: float,
    allowed: Collection[int] | None,
    known: Collection[int],
) -> list[tuple[Score, Row, bool]]:
    """The hits with later rivals directly before earlier ones, which are marked; unread rivals are drawn in.

    `allowed` are the memories that pass the filter, `known` those that the caller has: their former texts are left out.
    """
    later = {old: _latest(found) for old, found in _compared(hits, seen).items()}
    gone: set[int] = set()
    if changes is not None:
        for old, new in _drawn(rows, space, hits, changes, now).items():
            if new.number in known:
                gone.add(old)
            elif (allowed is None or new.number in allowed) and (old not in later or _said(new) > _said(later[old])):
                later[old] = new
    if not later and not gone:
        return [(score, row, False) for score, row in hits]
    return list(_grouped([hit for hit in hits if hit[1].number not in gone], later))


def _compared(hits: Found, seen: Found) -> dict[int, list[Row]]:
    """By hit, the memories that were read anyway and replace it."""
    found: dict[int, list[Row]] = {}
    words = {row.number: set(statement(row.content)) for _, row in seen[: 2 * _COMPARED]}
    for _, old in hits[:_COMPARED]:
        own = words.get(old.number)
        for _, new in seen[: 2 * _COMPARED]:
            if own and new is not old and _may_differ(own, words[new.number]) and replaces(new, old):
                found.setdefault(old.number, []).append(new)
    return found


def _may_differ(own: set[str], other: set[str]) -> bool:
    """Whether two texts share enough to give two values of one thing."""
    return 2 * len(own & other) >= min(len(own), len(other)) or not rivals.WORDS.isdisjoint(other)


def replaces(new: Row, old: Row) -> bool:
    """Whether a memory gives another value of something that an earlier one states."""
    if _said(new) <= _said(old) or (new.key and old.key and new.key != old.key):
        return False
    told, former = rivals.read(new.content), rivals.read(old.content)
    return told is not None and former is not None and rivals.replaces(told, former)


def question_for(new: Row) -> str:
    """A question that finds the statements that one may replace; "" for a text that replaces nothing."""
    told = rivals.read(new.content)
    if told is None:
        return ""
    words = [words for words, becomes in zip(_ASKED, told.becomes, strict=True) if becomes]
    return " ".join((new.content, *words))


def _drawn(rows: Reader, space: Space, hits: Found, changes: Changes, now: float) -> dict[int, Row]:
    """By hit, the latest change that replaces it."""
    wanted: dict[int, list[int]] = {}
    for _, old in hits[:_COMPARED]:
        if len(old.content) > rivals.LONGEST:
            continue
        words = set(map(terms.stem, statement(old.content)))
        words |= {state for word in words if (state := _STATE_STEMS.get(word))}
        if candidates := changes.after(old.number, words):
            former = rivals.read(old.content)
            found = [
                n for n in candidates if former and (told := changes.statement(n)) and rivals.replaces(told, former)
            ]
            wanted |= {old.number: found} if found else {}
    if not wanted:
        return {}
    read = rows.rows(space, sorted({n for numbers in wanted.values() for n in numbers}), now)
    olds = {row.number: row for _, row in hits}
    drawn = {
        old: [read[n] for n in numbers if n in read and replaces(read[n], olds[old])] for old, numbers in wanted.items()
    }
    return {old: _latest(found) for old, found in drawn.items() if found}


def _grouped(hits: Found, later: Mapping[int, Row]) -> Iterator[tuple[Score, Row, bool]]:
    """Rivals together where the best of them stood, the latest first; all have the similarity of that one."""
    heads: dict[int, int] = {}
    for _, row in hits:
        number = row.number
        while number in later and later[number].number > number:
            number = later[number].number
        heads[row.number] = number
    rows = {row.number: row for row in (*later.values(), *(row for _, row in hits))}
    shown: set[int] = set()
    for score, row in hits:
        head = heads[row.number]
        if head not in shown:
            shown.add(head)
            members = [one.number for _, one in hits if heads[one.number] == head]
            numbers = sorted({head, *members}, key=lambda number: _said(rows[number]), reverse=True)
            yield from ((score, rows[number], at > 0) for at, number in enumerate(numbers))


def _said(row: Row) -> tuple[float, int]:
    return row.said_at, row.number


def _latest(found: Sequence[Row]) -> Row:
    return max(found, key=_said)
