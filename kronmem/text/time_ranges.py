"""Words of time in a question ("last week", "on Monday", "seit Freitag") as the range of time that they mean. Pure.

English, and the commonest words of German. Times are local and without a zone, as the clock of the process that asks
shows them. A phrase without a range ("before the launch meeting", "every Monday", "tomorrow") is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

_DAY = timedelta(days=1)
_OLDEST = 1971
"""A year that every system can convert to UTC."""


@dataclass(frozen=True)
class TimeRange:
    """From `since` on and before `until`."""

    since: datetime
    until: datetime
    alone: bool = False
    """The question holds nothing else: it asks for all that was stated in the range."""
    dated: bool = False
    """It is named by the calendar ("in March"), which a memory may name too, and not by its distance from now."""


def find(query: str, now: datetime) -> TimeRange | None:
    """The range that the question names; None if it names none, or one that has not begun."""
    text = query.lower().replace("’", "'")
    if not _HINT.search(text):
        return None
    for pattern, meant, dated in _PATTERNS:
        for match in pattern.finditer(text):
            try:
                since, until = meant(match, now)
            except (ValueError, OverflowError):  # 31 June, 9,999,999 weeks ago
                continue
            if since < until and since <= now and since.year >= _OLDEST:
                return TimeRange(since, until, alone=_asks_for_all(text, *match.span()), dated=dated)
    return None


_NUMBERS = {
    word: number
    for number, words in enumerate(
        (
            *("a an one ein einem einer", "two couple zwei", "three few drei paar", "four vier", "five funf fünf"),
            *("six sechs", "seven sieben", "eight acht", "nine neun", "ten zehn", "eleven elf", "twelve zwölf"),
        ),
        1,
    )
    for word in words.split()
}
_N = rf"(?P<n>\d{{1,4}}|{'|'.join(_NUMBERS)})"
_WEEKDAYS = (
    *("monday montag", "tuesday dienstag", "wednesday mittwoch", "thursday donnerstag", "friday freitag"),
    *("saturday samstag sonnabend", "sunday sonntag"),
)
_WEEKDAY = {word: at for at, words in enumerate(_WEEKDAYS) for word in words.split()}
_W = rf"(?P<weekday>{'|'.join(_WEEKDAY)})"
_MONTHS = (
    *("january januar jan", "february februar feb", "march märz mar", "april apr", "may mai", "june juni jun"),
    *("july juli jul", "august aug", "september sept sep", "october oktober oct", "november nov"),
    "december dezember dec",
)
_MONTH = {word: at for at, words in enumerate(_MONTHS, 1) for word in words.split()}
_M = rf"(?P<month>{'|'.join(sorted(_MONTH, key=len, reverse=True))})"
_PARTS = {"morning": (0, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 30), "noon": (11, 14)}
_PART = r"(?P<part>morning|afternoon|evening|night|noon)"
_MINUTE, _HOUR = timedelta(minutes=1), timedelta(hours=1)
_UNITS = {"minute": _MINUTE, "hour": _HOUR, "day": _DAY, "week": 7 * _DAY, "month": 30 * _DAY, "year": 365 * _DAY}
_GERMAN = {"stunde": "hour", "tag": "day", "woche": "week", "monat": "month", "jahr": "year"}
_U = r"(?P<unit>minute|hour|day|week|month|year|stunde|tag|woche|monat|jahr)(?:s|en|n|e)?"

Range = tuple[datetime, datetime]
Match = re.Match[str]
Meaning = Callable[[Match, datetime], Range]
_Patterns = tuple[tuple[str, Meaning], ...]


def _midnight(now: datetime, days: int = 0) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0) + days * _DAY


def _part_of(day: datetime, part: str | None) -> Range:
    first, last = _PARTS[part] if part else (0, 24)
    return day + timedelta(hours=first), day + timedelta(hours=last)


def _days_ago(days: int) -> Meaning:
    return lambda match, now: _part_of(_midnight(now, -days), match.groupdict().get("part"))


def _last_night(_match: Match, now: datetime) -> Range:
    return _midnight(now, -1) + timedelta(hours=18), _midnight(now) + timedelta(hours=6)


def _weeks_ago(weeks: int) -> Meaning:
    def meant(_match: Match, now: datetime) -> Range:
        monday = _midnight(now, -now.weekday() - 7 * weeks)
        return monday, monday + 7 * _DAY

    return meant


def _first(now: datetime, year: int, month: int, day: int = 1) -> datetime:
    return _midnight(now).replace(year=year, month=month, day=day)


def _month(now: datetime, year: int, month: int) -> Range:
    return _first(now, year, month), _first(now, year + month // 12, month % 12 + 1)


def _months_ago(months: int) -> Meaning:
    def meant(_match: Match, now: datetime) -> Range:
        years, month = divmod(12 * now.year + now.month - 1 - months, 12)
        return _month(now, years, month + 1)

    return meant


def _years_ago(years: int) -> Meaning:
    return lambda _found, now: (_first(now, now.year - years, 1), _first(now, now.year - years + 1, 1))


def _ever(_match: Match, now: datetime) -> Range:
    """The conversation before this one, whenever that was: the newest of all."""
    return _midnight(now).replace(year=_OLDEST, month=1, day=2), now + _DAY


def _count(match: Match) -> int:
    word = match["n"]
    return int(word) if word.isdigit() else _NUMBERS[word]


def _ago(match: Match, now: datetime) -> Range:
    """That long ago, as exactly as it is put: an hour, a day, about a week."""
    unit = _UNITS[_GERMAN.get(match["unit"], match["unit"])]
    then = now - _count(match) * unit
    if unit < _DAY:
        return then - unit / 2, then + unit / 2
    if match["n"] in ("few", "couple", "paar"):
        return _midnight(then, -2 * unit.days), _midnight(then, unit.days + 1)
    if unit == _DAY:
        return _midnight(then), _midnight(then, 1)
    return _midnight(then, -(unit.days // 2)), _midnight(then, unit.days // 2 + 1)


def _past(match: Match, now: datetime) -> Range:
    """The last so many days: whole ones, today included."""
    unit = _UNITS[_GERMAN.get(match["unit"], match["unit"])]
    length = (_count(match) if match["n"] else 1) * unit
    return (now - length if unit < _DAY else _midnight(now - length)), now + _DAY


def _weekday(match: Match, now: datetime) -> Range:
    back = (now.weekday() - _WEEKDAY[match["weekday"]]) % 7 or 7
    return _part_of(_midnight(now, -back), match.groupdict().get("part"))


def _weekend(_match: Match, now: datetime) -> Range:
    saturday = _midnight(now, -((now.weekday() - 5) % 7)) if now.weekday() != 5 else _midnight(now)
    return saturday, saturday + 2 * _DAY


def _in_month(match: Match, now: datetime) -> Range:
    month = _MONTH[match["month"]]
    if year := match.groupdict().get("year"):
        return _month(now, int(year), month)
    last = match.group().startswith(("last", "letzten"))
    return _month(now, now.year - (month > now.month or (last and month == now.month)), month)


def _date(match: Match, now: datetime) -> Range:
    month = match.groupdict().get("month")
    number = _MONTH[month] if month else int(match["number"])
    day = _first(now, int(match["year"] or now.year), number, int(match["day"]))
    if not match["year"] and day > now:
        day = day.replace(year=now.year - 1)
    return day, day + _DAY


def _day_of_month(match: Match, now: datetime) -> Range:
    years, month = divmod(12 * now.year + now.month - 1 - (int(match["day"]) > now.day), 12)
    day = _first(now, years, month + 1, int(match["day"]))
    return day, day + _DAY


def _since(meant: Meaning) -> Meaning:
    return lambda match, now: (meant(match, now)[0], now + _DAY)


_DATE: _Patterns = (
    (rf"(?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)? (?:of )?{_M}\b,?(?: (?P<year>(?:19|20)\d\d))?", _date),
    (rf"{_M} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:),?(?: (?P<year>(?:19|20)\d\d)\b)?", _date),
    (r"(?P<year>(?:19|20)\d\d)-(?P<number>\d\d)-(?P<day>\d\d)\b", _date),
    (r"(?P<day>\d{1,2})\.(?P<number>\d{1,2})\.(?P<year>(?:19|20)\d\d)?(?!\d)", _date),
)
_STOP = r"(?=\s*(?:[.!?]|$))"
_DISTANT: _Patterns = (
    (r"(?:the day before yesterday|vorgestern)", _days_ago(2)),
    (r"last night|yesterday night|gestern nacht|gestern abend", _last_night),
    (rf"(?:yesterday|gestern)(?: {_PART})?", _days_ago(1)),
    (r"this morning|heute (?:morgen|früh|vormittag)", lambda _found, now: _part_of(_midnight(now), "morning")),
    (r"this (?P<part>afternoon|evening)", _days_ago(0)),
    (r"tonight|heute abend", lambda _found, now: _part_of(_midnight(now), "evening")),
    (r"(?:earlier )?today|heute", _days_ago(0)),
    (rf"(?:about |around )?(?:a )?{_N}(?: of)? {_U} ago", _ago),
    (rf"vor {_N} {_U}", _ago),
    (rf"(?:in|over|during|within|for)? ?(?:the )?(?:last|past|previous) {_N} {_U}", _past),
    (rf"(?:in|over|during|within) (?:the )?past (?P<n>){_U}", _past),
    (rf"in den letzten {_N} {_U}", _past),
    (r"(?:the )?(?:last|previous) week(?!end)|letzte woche|vergangene woche", _weeks_ago(1)),
    (r"(?:the )?week before last|vorletzte woche", _weeks_ago(2)),
    (r"this week(?!end)|diese woche", _weeks_ago(0)),
    (r"(?:the )?(?:last|previous) month|letzten monat|im letzten monat", _months_ago(1)),
    (r"this month|diesen monat", _months_ago(0)),
    (r"last year|letztes jahr", _years_ago(1)),
    (r"this year|dieses jahr", _years_ago(0)),
    (rf"(?:where (?:were|are) we(?: at)?|where did (?:we|i) (?:leave off|stop)){_STOP}", _ever),
    (rf"(?:what were we (?:doing|working on)|wo (?:waren|sind) wir(?: stehen ?geblieben)?){_STOP}", _ever),
    (r"(?:over |at |on |during )?(?:the |last )?weekend|(?:letztes|am) wochenende", _weekend),
    (rf"(?:on|last|this past|this|am|letzten) {_W}(?: {_PART})?", _weekday),
)
_CALENDAR: _Patterns = (
    *((rf"(?:on |am |of |from |vom )?{pattern}", meant) for pattern, meant in _DATE),
    (r"on the (?P<day>\d{1,2})(?:st|nd|rd|th)", _day_of_month),
    (rf"(?:in|during|last|im|letzten) {_M}\b(?: (?P<year>(?:19|20)\d\d))?", _in_month),
)
_SINCE: _Patterns = (
    (rf"(?:since|seit)(?: last| letztem)? {_W}", _since(_weekday)),
    (r"(?:since|seit) (?:yesterday|gestern)", _since(_days_ago(1))),
    (r"since last week|seit letzter woche", _since(_weeks_ago(1))),
    (rf"(?:since|seit) {_M}\b(?: (?P<year>(?:19|20)\d\d))?", _since(_in_month)),
    *((rf"(?:since|seit)(?: dem)? {pattern}", _since(meant)) for pattern, meant in _DATE),
)
# What makes a word of time no range: it repeats, it lies ahead, or it belongs to a thing ("the Monday meeting").
_NO = r"(?<!every )(?<!each )(?<!next )(?<!before )(?<!after )(?<!until )(?<!by )(?<!jeden )(?<!nächsten )(?<![\w-])"
_PATTERNS = [
    (re.compile(rf"{_NO}(?:{pattern})(?![\w-]|'s| of )"), meant, dated)
    for patterns, dated in ((_SINCE, False), (_DISTANT, False), (_CALENDAR, True))
    for pattern, meant in patterns
]

_HINT = re.compile(
    r"\d|where (?:were|are|did) |what were we |wo (?:waren|sind) wir"
    r"|\b(?:to(?:day|night)|yesterday|ago|morning|afternoon|evening|night|week|weekend|days?|hours?|minutes?"
    r"|months?|years?|past|heute|gestern"
    rf"|vorgestern|woche|wochen|wochenende|tagen|stunden|monat|monaten|jahr|{'|'.join(_WEEKDAY)}|{'|'.join(_MONTH)})\b|weeks"
)

_ASKING = frozenset(
    (
        *(
            "what",
            "whats",
            "which",
            "who",
            "when",
            "did",
            "do",
            "does",
            "was",
            "were",
            "is",
            "are",
            "has",
            "have",
            "had",
            "been",
        ),
        *(
            "happen",
            "happened",
            "happens",
            "happening",
            "i",
            "we",
            "you",
            "they",
            "me",
            "us",
            "my",
            "our",
            "your",
            "the",
            "a",
            "an",
            "all",
        ),
        *(
            "say",
            "said",
            "tell",
            "told",
            "decide",
            "decided",
            "decisions",
            "decision",
            "talk",
            "talked",
            "talking",
            "discuss",
        ),
        *(
            "discussed",
            "discussions",
            "mention",
            "mentioned",
            "learn",
            "learned",
            "remember",
            "recall",
            "note",
            "noted",
            "notes",
        ),
        *(
            "memories",
            "memory",
            "about",
            "of",
            "from",
            "on",
            "in",
            "to",
            "for",
            "at",
            "there",
            "anything",
            "everything",
            "something",
        ),
        *(
            "things",
            "thing",
            "new",
            "news",
            "up",
            "going",
            "list",
            "show",
            "give",
            "please",
            "summary",
            "summarize",
            "summarise",
        ),
        *(
            "recap",
            "events",
            "any",
            "so",
            "far",
            "and",
            "hi",
            "hello",
            "done",
            "get",
            "know",
            "conversation",
            "conversations",
            "chat",
        ),
        *(
            "chats",
            "were",
            "day",
            "go",
            "plan",
            "planned",
            "agree",
            "agreed",
            "stored",
            "store",
            "save",
            "saved",
            "work",
            "worked",
        ),
        *(
            "was",
            "ist",
            "hat",
            "habe",
            "haben",
            "ich",
            "wir",
            "du",
            "sie",
            "gesagt",
            "erzählt",
            "passiert",
            "war",
            "los",
            "alles",
        ),
        *(
            "besprochen",
            "beschlossen",
            "entschieden",
            "gemacht",
            "denn",
            "uns",
            "mir",
            "über",
            "es",
            "gab",
            "neues",
            "wurde",
            "open",
            "left",
            "pending",
            "unfinished",
            "still",
            "offen",
            "noch",
        ),
    )
)


_END = re.compile(r"(?<=[.!?])\s+|\n+")


def _asks_for_all(text: str, start: int, end: int) -> bool:
    """Whether the sentence of the range asks for nothing else, and no other sentence asks."""
    bounds = [0, *(stop.end() for stop in _END.finditer(text)), len(text)]
    first = max(at for at in bounds if at <= start)
    last = min(at for at in bounds if at >= end)
    words = re.findall(r"[^\W_]+", f"{text[first:start]} {text[end:last]}".replace("'", ""))
    return "?" not in text[:first] + text[last:] and all(word in _ASKING for word in words)
