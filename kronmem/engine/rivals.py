"""Rivals: two statements that give different values of one thing, so that the later one holds. Pure; words and vectors.

A text is cut into clauses; a clause becomes a subject, a relation and a value. Two clauses are rivals when they share
the subject and differ in its value, or when the later one ends ("no longer", "took over from") what the earlier one
states. English is read in full; of other languages, sentences that differ in one value.
Precision comes first: what can hold beside each other is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

from kronmem.engine import terms, word_vectors

LONGEST = 280
"""Characters of a text that can be a rival: longer ones tell of more than one thing."""
_CLAUSES = 5
"""Clauses of such a text."""
_VALUE = 6
"""Words of a value at most: more are a story."""
_CLOSE = 0.35
"""Two values are of one kind from this cosine on: colours .8, tools .4 to .7, strangers below .3."""

_ALIKE = 0.45
"""What was switched from and to are as close as this."""
_WORD = re.compile(r"[^\W_](?:[\w'’@/+#&-]|[.,:](?=\w))*")
_CLAUSE_END = re.compile(
    r"[.!?;](?=\s|$)|[,:](?=\s)|\s[-–—]\s|\s(?:but|so|because)\s|\s(?=and (?:bought|got|study|use|work|live|moved)\b)"
)
_SPEAKER = re.compile(r"^([A-Z]\w+): ")
_MAYBE = re.compile(
    r"\b(?:what if|if i|if we|would|i'd|we'd|might|maybe|perhaps|thinking (?:about|of)|considering|want to|wants to"
    r"|hope to|hopes to"
    r"|should we|should i|visiting|said|says|told me|asked|dream|wish|could|i guess|depends)\b|^(?:if|should|can|do"
    r"|does|did|is it"
    r"|are you)\b"
)
_PAST = re.compile(
    r"\b(?:used to|as a child|when i was|last year|years ago|in (?:19|20)\d\d|back then|my old|former)\b"
)
_COUNTED = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
    "zwei drei vier funf sechs sieben acht neun zehn elf zwolf",
)
_NUMBERS = {word: str(number) for words in _COUNTED for number, word in enumerate(words.split(), 2)}
_DAYS = frozenset(
    (
        *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
        *("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag"),
        *("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
        *("lunes", "martes", "miercoles", "jueves", "viernes", "sabado", "domingo"),
    )
)
_SHORT_DAYS = frozenset(("mon", "tue", "tues", "wed", "thu", "thur", "thurs", "fri", "sat"))
_MONTHS = frozenset(
    (
        *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october"),
        *("november", "december", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"),
        *("januar", "februar", "marz", "mai", "juni", "juli", "oktober", "dezember", "mayo", "enero", "junio", "mars"),
    )
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_COLOURS = _words("red blue green yellow orange purple pink black white grey gray brown silver gold turquoise beige")
_FOREIGN = _words("ist sind ein eine est es un une il el la le les mein meine mi mon ma unser het een de der die das")
_UNITS = frozenset(
    map(
        terms.stem,
        _words(
            "kg g mg km m cm mm ml l euro euros dollar dollars pound pounds eur usd gb mb tb minutes minute min "
            "hours hour days day weeks week months month years year percent degrees o'clock am pm times x seconds "
            "second ms cents points stunden tage jahre wochen uhr"
        ),
    )
)
_NO_THING = frozenset(
    map(
        terms.stem,
        _words(
            "like without just home part way thing things everything nothing something some here there today "
            "yesterday early late me him them alone behind house room one lot bit"
        ),
    )
)
_MONTH_STEMS = frozenset(map(terms.stem, _MONTHS))
_IS = "⇒"
# Longer spellings of "is now", each with what may stand before and behind it.
_BECOMES = re.compile(
    r"\b(?:(?:has|have|had|was|were|is|are|got|gets|been|being|now|just|already|will be) )*"
    r"(?:moved|changed|cut|raised|lowered|extended|postponed|increased|reduced|shifted|pushed|rescheduled|relocated"
    r"|delayed"
    r"|slipped|went|gone|goe?s?(?= (?:up |down )?to \d)|rose|fell|dropped|grew|brought|set|switched|updated|bumped|put)"
    r"(?: back| up| down| out| forward| over| on)* (?:to|until|till|from \S+(?: \S+)? to)\b"
    r"|\b(?:is|are|am|'m|was set|will be|shall be|becomes|became|goes|costs?|is called|is named|are called|equals"
    r"|amounts to)\b(?: called\b| named\b)?"
    r"|\bist (?:gestiegen|gesunken|verschoben(?: worden)?|erhoht worden) auf\b"
    r"|\b(?:ist|sind|betragt|kostet|heisst|est|sont|coute|es|son|cuesta|e|costa|zijn)\b"
)
_SCHEDULED = re.compile(
    r"\b(?:leaves|starts|begins|opens|closes|ends|departs|arrives|expires|runs|takes place)(?= (?:at|on|from|in|\d))"
)
_CUE = re.compile(
    r"\b(?:from now on|these days|as of (?:now|today)|at the moment|any ?more|no longer|not any longer|instead(?:"
    r" of [\w' ]+)?|nowadays|meanwhile"
    r"|(?:now|currently|actually|finally|already|again|new|correction|changed (?:my|our) minds?|jetzt|ab jetzt"
    r"|maintenant|ahora|desormais)"
    r"|since [\w' ]+|from [\w ]{2,20} on(?:wards)?|effective \w+)\b"
)
_LEAD = re.compile(
    r"^(?:(?:(?:the )?(?:start|beginning|date|time) of|please|so|well|ok|okay|yes|no|oh|hey|decided|note|remember"
    r" that|fyi|update|and|also|the|a|an|our|my|your|i think) )+"
)
_TURNS = re.compile(
    r"\b(?:switch(?:ed)?|moved|changed|went) (?:back |over )?to\b|\b(?:from now on|instead|these days)\b|\bnow"
    r" (?:use|on|in)\b"
)
_TARGET = re.compile(r"\b(?:switch(?:ed)?|changed|migrated|converted) (?:back |over )?to (?:a |an |the )?([\w.+#-]+)")
_STRONG = re.compile(
    r"\b(?:from now on|from [\w ]{2,20} on|these days|any ?more|no longer|instead|now|currently|actually|new"
    r"|correction|changed|since"
    r"|jetzt|ahora|maintenant)\b"
)
_TO_CHANGE = (
    "changed?|renamed?|switch(?:ed|es)?|moved?|updated?|replaced?|migrated?|swapped|transferred|relocated|lowered"
    "|raised"
    "|cut|reduced|increased"
)
# A change that names the thing: "we renamed the default branch to main", "we moved office".
_OF = re.compile(
    rf"\b(?:{_TO_CHANGE}) (?:our |my |the |your |his |her |their )?(?P<what>[\w' -]{{3,40}}?)"
    r"(?: (?:to|from|with|by|into)\b|$)"
)
_NEW = re.compile(r"\bnew (?P<what>\w{3,})(?: \w+)? (?:came|arrived|is|has|runs|was installed|works)\b")
# What is over, and so what an earlier statement must hold.
_OVER = tuple(
    re.compile(pattern)
    for pattern in (
        r"\b(?:moved|migrated|switched|transferred|converted|upgraded) (?:\w+ ){0,3}?from (?P<old>[\w'.+# -]+?) to\b",
        r"\b(?:replaced|swapped|exchanged|traded)(?: in)? (?:our |my |the )?(?P<old>[\w'.+# -]+?) (?:with|by|for|as)\b",
        r"\brenamed (?P<old>[\w'.+# -]+?) (?:to|as)\b",
        r"\btook over (?P<topic>[\w' -]+?) from (?P<old>[\w'.-]+)",
        r"\b(?:takes|taking) over (?P<topic>[\w' -]+?) from (?P<old>[\w'.-]+)",
        r"\bno longer (?:\w+ing |use[sd]? |on |at |in |with |for |a |an |the |have |has |own |need[s]? |support[s]?"
        r" )*(?P<old>[\w'.+# -]+)",
        r"\b(?:not|n't) (?:\w+ing |use |on |a |an |the |in |at )*(?P<old>[\w'.+#-]+(?: \w+)?) any ?(?:more|longer)\b",
        r"\b(?:gave|given|giving) up (?:on |the |my |our )?(?P<old>[\w'.+#-]+(?: \w+)?)",
        r"(?<!my )(?<!the )(?<!her )(?<!his )(?<!our )(?<!on )(?<!has )\b(?:sold|scrapped|cancel?led|abandoned"
        r"|stopped|quit|dropped|ditched|retired|left|skipped|got rid of|shut"
        r" down|turned off|switched off)"
        r" (?:using |the |my |our |playing |eating |taking |drinking |working at |working for"
        r" )*(?P<old>[\w'.+#-]+(?: \w+)?)",
        r"(?P<old>[\w'.+#-]+(?: [\w'.+#-]+)?) (?:is|are|was|has been|were)(?: now)? (?:gone|over|history|obsolete"
        r"|dead|scrapped|cancel?led|deprecated"
        r"|switched off|shut down|discontinued|retired|outdated|sold|broken up|dropped|out)\b",
        r"\binstead of (?:the |my |our )?(?P<old>[\w'.+#-]+(?: \w+)?)",
        r"\bnot (?:the )?(?P<old>[\w'.:+#-]+)$",
        r"\brather than (?P<old>[\w'.+#-]+)",
        r"\b(?P<old>[\w'.-]+) (?:has )?(?:left|quit|retired|resigned)$",
        r"\b(?P<old>[a-z]+ \d[\w.-]*) is now\b",
    )
)
_OVER_HINT = re.compile(
    r"\b(?:from|replaced|swapped|exchanged|traded|renamed|over|longer|more|up|sold|scrapped|cancel|abandon|stopped"
    r"|quit|dropped|ditched|retired|left"
    r"|skipped|got rid|shut|turned|switched|gone|history|obsolete|dead|deprecated|discontinued|outdated|broken|out"
    r"|instead|not|rather|resigned|is now)"
)
_SHORT_IS = re.compile(r"\b(i|we|he|she|it|that|they)'(?:s|m|re)\b")
_LABEL = re.compile(
    r"(?!(?:changed|renamed|correction|update|new|decided|actually|note)\b)((?:[\w'-]+ ){0,4}[\w'-]+): "
)
_WORDS = re.compile(rf"{_IS}|{_WORD.pattern}")
_NEGATED = re.compile(r"\b(?:not|never|no longer|nicht|kein\w*|pas)\b|n't\b")
_MEASURE = re.compile(rf"\b(\d[\d.,:]*|{'|'.join(_NUMBERS)}) ([a-z%€$]+)")
_HOME = (
    re.compile(
        r"\b(?:live|lives|living|reside|resides|wohne|wohnt|habite|vivo|vive|abito|woon|woont)\b|\b(?:am|is|are|'m"
        r"|'s) based in\b"
    ),
    re.compile(
        r"(?<!'s )(?<!my )(?<!our )(?<!the )\b\w+ (?:have |has |had |just |finally |recently |also )*(?:moved"
        r"|relocated) (?:to|here|in|back|out|away)\b"
        r"|\b(?:umgezogen|gezogen|demenage|mudado|trasferito|verhuisd)\b"
    ),
)
_JOB = (
    re.compile(
        r"^(?!.*\b(?:lost|left|quit)\b).*(?:\b(?:work|works|working|employed) (?:at|as|from|for(?! (?:a long|some"
        r"|years|me|him|her|them)))\b|\bjob (?:at|as"
        r"|is)\b|\bbefore my job\b|\barbeite\b)"
    ),
    re.compile(
        r"\b(?:started|starting|got|took|accepted|have|found) (?:\w+ ){0,3}?(?:job|position)\b|\b(?:joined|hired by"
        r"|transferred to|promoted to)\b"
        r"|\bnow works? (?:at|for|as)\b|\b(?:quit|left|lost) (?:my|the|his|her|their) job\b"
    ),
)
_COUPLE = (
    re.compile(r"\b(?:single|engaged|married|divorced|widowed)\b"),
    re.compile(r"\b(?:got|getting|we are|are|is|'m|am)?\s?(?:married|engaged|divorced|broke up|separated)\b"),
)
_STATES = (_HOME, _JOB, _COUPLE)
WORDS = _words(
    "moved relocated migrated switched changed replaced swapped renamed transferred converted upgraded "
    "took gave quit left sold scrapped cancelled canceled abandoned stopped dropped ditched retired "
    "skipped gone longer anymore instead joined hired promoted started married divorced engaged cut "
    "raised lowered extended postponed increased reduced shifted rescheduled delayed actually rather "
    "correction new now gezogen umgezogen"
)
"""Words of a change."""
CUES = frozenset(map(terms.stem, WORDS))
"""The terms of changes: a later rival that shares no word with a question has one of these."""
_SELF = frozenset(
    (
        "i",
        "i'm",
        "im",
        "i've",
        "we",
        "we're",
        "we've",
        "me",
        "us",
        "user",
        "ich",
        "wir",
        "je",
        "j'habite",
        "yo",
        "my",
        "our",
        "user's",
        "the user",
    )
)
_KIN = _words(
    "sister brother mother father wife husband son daughter partner friend cousin aunt uncle colleague "
    "boss neighbour neighbor competitor mum mom dad grandmother grandfather girlfriend boyfriend roommate "
    "flatmate"
)
_MANY = re.compile(
    r"\b(?:likes?|loves?|enjoys?|speaks?|plays?|owns?|knows?|hates?|reads?|eats?|bought|supports?|mag|liebt|gern"
    r"|aime|gusta|piace|houdt|allergic|visited|met"
    r"|wants?|needs?|learn\w*|watch\w*|interested|also|too|another|bring|knows)\b"
)
_EVENT = re.compile(
    r"\b(?:ran|bought|met|had|went|saw|did|made|got|ate|was|were|visited|released|wrote|read|gave|took|called|came"
    r"|finished|watched|walked"
    r"|paid|sent|talked|discussed|played|cooked|slept|swam|rode|drove|spent|scored|won|lost|attended)\b"
)
_DID = re.compile(
    r"^(?:i|we|he|she|they|\w+ \w+|\w+ \w+ \w+) (?!based|used|called|named|located|married|need|speed|feed"
    r"|breed)[a-z]{3,}ed\b"
)
_TURNED = re.compile(
    r"\b(?:moved|changed|cut|raised|lowered|extended|postponed|increased|reduced|shifted|pushed|rescheduled"
    r"|relocated|delayed|goe?s?(?= (?:up |down )?to \d))\b"
)
_TIMES = frozenset(
    map(terms.stem, _words("today yesterday last week month year day now new finally since time morning evening"))
)
_ORDINAL = re.compile(r"^(?:first|second|third|fourth|fifth|last|next|1st|2nd|3rd|\d+th)$")
_SMALL = terms.STOPWORDS | _words(
    "the a an our my your his her their its this that to of in on at for from by with der die das den dem "
    "ein eine einen le la les un une el los il lo het de du des del am um im zu als is are be each every "
    "all please use get go goes"
)


@dataclass(frozen=True)
class Clause:
    """One clause: its words without filler, and its reading."""

    words: tuple[str, ...]
    subject: frozenset[str]
    """Stems of what stands before the relation; empty without a relation."""
    value: tuple[str, ...]
    person: str
    """Who it is about: "self", a name or a relative, or "" where it is about a thing."""
    cued: bool
    negated: bool
    many: bool
    """Its relation takes several values at a time."""
    event: bool
    changed: bool
    """Its relation is a change: "moved to", "was cut to"."""

    content: frozenset[str]
    """The stems of its words."""


@dataclass(frozen=True)
class Statement:
    """A text as clauses, with all that it declares over or changed."""

    clauses: tuple[Clause, ...]
    person: str
    label: frozenset[str]
    """The stems before a colon, which say what all of it is about."""
    stems: frozenset[str]
    over: frozenset[frozenset[str]]
    """The stems of each thing that is no longer so."""
    changed: frozenset[frozenset[str]]
    """The things it says to have another value now."""
    states: tuple[bool, ...]
    becomes: tuple[bool, ...]
    """For home, work and marriage: whether it states one, and whether it tells of a new one."""
    cued: bool
    numbers: frozenset[tuple[str, str]]
    """Numbers with the unit behind each."""
    turns: bool
    """It tells of a switch to something."""
    target: str
    """What it tells of a switch to."""
    pairs: frozenset[tuple[str, str]]
    """Words that stand before one another."""


def replaces(later: Statement, earlier: Statement) -> bool:
    """Whether the later statement gives another value of something that the earlier one states."""
    if later.label and earlier.label and later.label != earlier.label:
        return False
    if _ended(later, earlier) or any(_held_by_another(new, old) for new in later.clauses for old in earlier.clauses):
        return True
    return _same_person(later.person, earlier.person) and (
        any(_other_value(new, old) for new in later.clauses for old in earlier.clauses)
        or (bool(later.person) and later.person == earlier.person and _lives_otherwise(later, earlier))
        or _measured_anew(later, earlier)
        or _of_another_kind(later, earlier)
        or any(_denied(new, old) for new in later.clauses for old in earlier.clauses)
        or any(_noted(later, new, old) for new in later.clauses for old in earlier.clauses)
    )


def _noted(later: Statement, new: Clause, old: Clause) -> bool:
    """Whether one is a bare value of the other's kind, behind the name that the other is about: "Kim: Friday now"."""
    named = later.cued and bool(later.person) and later.person not in ("self", "") and later.person == old.person
    kinds = _kinds(new.words) & _kinds(old.words) - {"number"} if named and len(later.clauses) == 1 else set[str]()
    return bool(kinds) and _only_values(new.words) and not (old.many or old.event or set(new.words) <= set(old.words))


def _held_by_another(new: Clause, old: Clause) -> bool:
    """Whether another person has now the role that one had: "Lea is our designer now"."""
    held = {"our", "the", "my", "head", "lead", "responsible", "in"} & set(new.words)
    return bool(new.cued and held and new.value and new.value == old.value and new.person and old.person) and (
        new.person != old.person and "self" not in (new.person, old.person) and new.subject != old.subject
    )


def _same_person(one: str, other: str) -> bool:
    return not one or not other or one == other


def _other_value(new: Clause, old: Clause) -> bool:
    if new.many or not new.words or not old.words or new.words == old.words:
        return False
    if not _same_person(new.person, old.person) or new.negated or old.negated:
        return False
    if not old.many and new.value and old.value and _one_subject(new, old):
        return _differ(new, old) or (bool(_FOREIGN & set(new.words)) and _one_segment_differs(new, old))
    if new.cued and new.subject and "self" not in new.subject and new.subject <= old.content and not old.event:
        kinds = _kinds(new.value) & _kinds(old.words)
        if kinds - {"number", "colour"} and not set(new.value) <= set(old.words):
            return True
    if old.many:
        return False
    return _one_segment_differs(new, old) or (sorted(new.words) == sorted(old.words) and "prefers" in new.words)


def _one_subject(new: Clause, old: Clause) -> bool:
    """The same, or put more shortly in news of it: "Submission was moved to …"."""
    if not new.subject or not old.subject or new.subject == old.subject:
        return bool(new.subject) and new.subject == old.subject
    if new.changed and _kinds(new.value) & _kinds(old.value) - {"number"}:
        return new.subject <= old.subject or old.subject <= new.subject
    return (
        new.cued and len(new.subject & old.subject) >= 2 and (new.subject <= old.subject or old.subject <= new.subject)
    )


def _differ(new: Clause, old: Clause) -> bool:
    """Two values of one subject that cannot both hold."""
    if set(new.value) == set(old.value) or max(len(new.value), len(old.value)) > _VALUE or new.event or old.event:
        return False
    if kinds := _kinds(new.value) & _kinds(old.value):
        bare = new.changed and all(word[0].isdigit() for word in new.value)  # the unit goes without saying
        return bare or "number" not in kinds or bool(kinds - {"number"}) or _same_unit(new.value, old.value)
    if new.person and new.subject <= {"self", terms.stem(new.person)}:  # a person is many things
        return new.cued and not (_kinds(new.value) or _kinds(old.value)) and _closeness(new.value, old.value) >= _CLOSE
    if _kinds(new.value) or _kinds(old.value):
        return False
    bare = _is_name(new.value) and _is_name(old.value)
    return bare or new.cued or _closeness(new.value, old.value) >= _CLOSE


def _one_segment_differs(new: Clause, old: Clause) -> bool:
    """The same sentence but for one value, or for numbers and times."""
    if abs(len(new.words) - len(old.words)) > 3 or new.event or old.event or len(old.words) < 3:
        return False
    parts = [
        part for part in SequenceMatcher(None, old.words, new.words, autojunk=False).get_opcodes() if part[0] != "equal"
    ]
    if not parts or any(part[0] != "replace" for part in parts):
        return False
    pairs = [(old.words[a:b], new.words[c:d]) for _, a, b, c, d in parts]
    common = [word for word in old.words if word in new.words and word not in _SMALL and word != _IS]
    named = [_kinds(was) and _names_a_thing(old.words, part[1]) for part, (was, _) in zip(parts, pairs, strict=True)]
    if any(named) and not (new.cued and len(parts) == 1 and parts[0][1] > 1):
        return False
    if len(pairs) > 1 and any("colour" in _kinds(was) for was, _ in pairs):  # the blue box, the red box
        return False
    if all(_kinds(was) & _kinds(now) and _only_values(was) and _only_values(now) for was, now in pairs):
        return bool(common)
    (was, now), at = pairs[0], parts[0][1]
    if len(pairs) > 1 or max(len(was), len(now)) > 3 or _ordinal(was) or _kinds(was) or _kinds(now):
        return False
    return _takes_one_value(new, old, at, was, now)


_LABELS = _words(
    "note message memory fact text entry record file worker agent user tester number step version room floor chapter "
    "phase sprint line ticket team part day week round level no "
    "page item issue release section episode season lesson exercise task milestone station platform gate "
    "schritt kapitel teil raum etage stock gleis"
)


def _names_a_thing(words: Sequence[str], at: int) -> bool:
    """Whether a number stands where it identifies the thing, and not how many or when."""
    before = words[at - 1]  # "note 0 9": a number behind a number is a part of its name
    return at < (words.index(_IS) if _IS in words else 2) or before in _LABELS or before.isdigit()


_ONE_VALUE = re.compile(
    r"\b(?:lives?|works?|reports? to|called|named|wohn\w*|arbeit\w*|habit\w*|travaill\w*|viv\w*|trabaj\w*|lavor\w*"
    r"|abit\w*|woon\w*|werk\w*|j'habite"
    r"|runs? on|runs? in|answer|reply|write|responsible|deploy\w*|hosted|stored|prefers?)\b"
)


def _takes_one_value(new: Clause, old: Clause, at: int, was: Sequence[str], now: Sequence[str]) -> bool:
    before, behind = old.words[:at], old.words[at + len(was) :]
    told = [word for word in (*before, *behind) if word not in _SMALL and word != _IS]
    if new.cued and at and not _MANY.search(" ".join(before)) and (_IS not in old.words or _IS in before):
        return bool(told)  # the same sentence, said to be news
    if _IS in before:
        return bool(told) and not (new.person == "self" and set(before) <= {*_SMALL, *_SELF, _IS})
    if _ONE_VALUE.search(" ".join(before)):
        return new.cued or "prefer" not in " ".join(before)
    # "Tom is responsible for billing", "We use Teams for chat": what stands behind says what it is the one of.
    if behind and behind[0] in ("for", _IS) and told:
        return (behind[0] == "for" or behind[1:2] in (("the",), ("our",), ("my",))) and bool(
            set(behind) - _SMALL - {_IS}
        )
    return False


def _ended(later: Statement, earlier: Statement) -> bool:
    """Whether the later one declares over, or changed, the subject of the earlier one."""
    values = frozenset(stem for clause in earlier.clauses if not clause.event for stem in clause.content)
    gone = {stem for old in later.over if old <= values for stem in old}
    if not _same_person(later.person, earlier.person) and terms.stem(earlier.person) not in gone:
        return False
    return bool(gone) or any(
        what == clause.subject
        or (not clause.subject and what == frozenset([*_stems(clause.words)][:1]))
        or (len(what) >= 2 and what <= clause.content)
        for what in later.changed
        for clause in earlier.clauses
        if what
    )


def _lives_otherwise(later: Statement, earlier: Statement) -> bool:
    return any(new and old for new, old in zip(later.becomes, earlier.states, strict=True))


def _measured_anew(later: Statement, earlier: Statement) -> bool:
    """Another number of the same unit about the same thing, when the later one is marked as news."""
    units = {unit for _, unit in later.numbers} & {unit for _, unit in earlier.numbers} - _MONTH_STEMS
    if (
        not units
        or not (later.cued or later.changed)
        or any(clause.event and not clause.subject for clause in earlier.clauses)
    ):
        return False
    counted = units - _UNITS  # what is counted is a thing itself: "15 people", "three raised beds"
    shared = (later.stems & earlier.stems) - (units - counted)
    same = {number for number, unit in later.numbers if unit in units} & {number for number, _ in earlier.numbers}
    least = 1 if counted else min(len(later.stems - units), len(earlier.stems - units), 3) - 1
    return bool(shared) and not same and len(shared) >= least


def _of_another_kind(later: Statement, earlier: Statement) -> bool:
    """Whether the later one turns to another kind of the earlier one's thing: dark mode, then light mode."""
    if not later.turns or any(clause.event for clause in earlier.clauses):
        return False
    if later.target and any(
        _closeness([later.target], [word]) >= _ALIKE for one in earlier.clauses for word in one.words
    ):
        return not any(clause.many for clause in earlier.clauses)
    return any(
        noun == other and kind != old and _closeness([kind], [old]) >= _CLOSE
        for kind, noun in later.pairs
        for old, other in earlier.pairs
    )


def _denied(new: Clause, old: Clause) -> bool:
    """Whether one denies the other's value of the same subject."""
    if new.negated == old.negated or not _same_person(new.person, old.person):
        return False
    shared = new.content & old.content
    affirmed = old if new.negated else new
    return (
        len(shared) >= 2 or (new.cued and bool(new.person) and bool(shared))
    ) and affirmed.content <= shared | _TIMES


# ── reading a text ───────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=8192)
def read(content: str) -> Statement | None:
    """A text as a statement; None for a question, and for a text that is too long to be about one thing."""
    text = content.strip()
    if len(text) > LONGEST or text.endswith(("?", "？")):
        return None
    speaker = _SPEAKER.match(text)
    parts = [part for part in _CLAUSE_END.split(text[speaker.end() :] if speaker else text) if part.strip()]
    if len(parts) > _CLAUSES:
        return None
    plains = [_plain(part) for part in parts]
    plain = _plain(text[speaker.end() :] if speaker else text)
    if _MAYBE.search(plain) or _PAST.search(plain):
        return None
    cued = bool(_STRONG.search(plain))
    clauses = tuple(_clause(part, bare, cued) for part, bare in zip(parts, plains, strict=True))
    person = next((clause.person for clause in clauses if clause.person), "")
    if speaker and person in ("self", ""):
        person = terms.fold(speaker[1])
    return Statement(
        clauses,
        person,
        frozenset(_stems(label[1].split())) if (label := _LABEL.match(plain)) else frozenset(),
        frozenset(stem for clause in clauses for stem in clause.content if not stem.isdigit()),
        frozenset(over for part in plains for over in _over(part)),
        frozenset(what for part in plains for what in _changed(part)),
        tuple(bool(states.search(plain)) for states, _ in _STATES),
        tuple(bool(becomes.search(plain)) for _, becomes in _STATES),
        cued,
        _measures(plain),
        bool(_TURNS.search(plain)),
        target[1] if (target := _TARGET.search(plain)) else "",
        frozenset(pair for clause in clauses for pair in pairwise(clause.words) if _is_pair(*pair)),
    )


def _is_pair(kind: str, noun: str) -> bool:
    return kind not in _SMALL and noun not in _SMALL and kind.isalpha() and noun.isalpha()


def _plain(text: str) -> str:
    return " ".join(terms.fold(text).replace("’", "'").split())


def _clause(part: str, plain: str, cued: bool) -> Clause:
    bare = _LEAD.sub("", " ".join(_CUE.sub(" ", plain).split()))
    marked = _SHORT_IS.sub(r"\1 is", bare) if "'" in bare else bare
    marked = _SCHEDULED.sub(_IS, _BECOMES.sub(_IS, marked, count=1), count=1)
    words = tuple(_NUMBERS.get(word) or word for word in (w.removesuffix("'s") for w in _WORDS.findall(marked)))
    words = tuple(word for word in words if word not in ("not", "never"))
    at = words.index(_IS) if _IS in words else -1
    subject = frozenset(_stems(words[:at])) if at > 0 else frozenset[str]()
    person = _person(plain, part)
    if not subject and at > 0 and person == "self":
        subject = frozenset({"self"})
    return Clause(
        words,
        subject,
        tuple(word for word in words[at + 1 :] if word not in _SMALL or word == "may") if at >= 0 else (),
        person,
        cued,
        bool(_NEGATED.search(plain)),
        bool(_MANY.search(plain)),
        bool(_EVENT.search(" ".join(words)) or _DID.search(marked)),
        bool(_TURNED.search(bare)),
        frozenset(terms.stem(word) for word in words if word not in _SMALL and word != _IS),
    )


def _stems(words: Sequence[str]) -> Iterator[str]:
    return (terms.stem(word) for word in words if word not in _SMALL)


def _person(plain: str, part: str) -> str:
    """Who a clause is about, by its first words."""
    words = plain.split()
    start = 1 if words[0] in ("my", "our", "the") else 0
    if start < len(words) and words[start] in _KIN:
        return words[start]
    first = next((word for word in words[:4] if word in _SELF and word not in ("my", "our")), "")
    if first:
        return "self"
    name = _NAMED.match(part)
    if not name or terms.fold(name[1]) in _NOT_NAMES or name[1].lower() in terms.STOPWORDS:
        return ""
    plural = name[1].endswith("s") and not (name[2] or name[3].endswith("s"))
    return "" if plural else terms.fold(name[1])


_NAMED = re.compile(r"\s*([A-Z][a-z]+)('s)? ([a-z]+)")
_NOT_NAMES = _words(
    "please use answer write rent minimum invoices deploys tickets hosting changed renamed decided launch "
    "submission indent send give never always version moved switched blood skipped graphite payments data "
    "passwords paces offline beta rollout prices weights thesis field chapter paper style wholesale glaze "
    "legal tile error shell card emails new actually remember note keep hosting weekly daily monthly mein "
    "meine mi il la le el het les mon ma unser die der das que todo no yes hier jetzt"
)


def _over(part: str) -> Iterator[frozenset[str]]:
    if not _OVER_HINT.search(part):
        return
    for pattern in _OVER:
        for found in pattern.finditer(part):
            named = [[*_stems(_WORD.findall(old))] for old in found.groupdict().values() if old]
            # By its first word, and the number behind that: "iOS 16", "the band in spring".
            over = frozenset(
                stem for stems in named for at, stem in enumerate(stems[:2]) if not at or stem[0].isdigit()
            )
            if any(not stem[0].isdigit() or ":" in stem for stem in over) and all(named) and not over <= _NO_THING:
                yield over


def _changed(part: str) -> Iterator[frozenset[str]]:
    for found in _OF.finditer(part):
        if what := frozenset(_stems([word for word in _WORD.findall(found["what"]) if word not in ("mind", "minds")])):
            yield what
    for found in _NEW.finditer(part):
        yield frozenset(_stems([found["what"]]))


def _measures(plain: str) -> frozenset[tuple[str, str]]:
    return frozenset(
        (_NUMBERS.get(number) or number, terms.stem(unit))
        for number, unit in _MEASURE.findall(plain)
        if unit not in _SMALL
    )


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _kinds(value: Sequence[str]) -> set[str]:
    """Which kinds of number or time a value holds."""
    found: set[str] = set()
    for word in (part for one in value for part in re.split(r"[+/&]", one) if part):
        if word in _DAYS or word in _SHORT_DAYS or word.rstrip("s") in _DAYS:
            found.add("day")
        elif word in _MONTHS and (len(value) > 1 or word != "may"):
            found.add("date")
        elif re.fullmatch(r"\d{1,2}[:.]\d\d|noon|midnight", word):
            found.add("time")
        elif word[0].isdigit() or word in _NUMBERS.values():
            found.add("number")
        elif word in _COLOURS:
            found.add("colour")
    return found


def _only_values(words: Sequence[str]) -> bool:
    return all(word in _SMALL or _kinds((word, "on")) for word in words) and not _ordinal(words)


def _same_unit(one: Sequence[str], other: Sequence[str]) -> bool:
    units = [{word for word in value if not word[0].isdigit()} for value in (one, other)]
    return not any(units) or (bool(units[0] & units[1]) and not (units[0] - units[1] and units[1] - units[0]))


def _ordinal(words: Sequence[str]) -> bool:
    return any(_ORDINAL.match(word) for word in words)


def _is_name(value: Sequence[str]) -> bool:
    """A value with words of no dictionary: a name."""
    return bool(value) and all(not word_vectors.vector(word) for word in value)


def _closeness(one: Sequence[str], other: Sequence[str]) -> float:
    vectors = [word_vectors.vector(" ".join(words)) for words in (one, other)]
    return word_vectors.Comparison(vectors[0]).closeness(vectors[1:])[0] if all(vectors) else 0.0
