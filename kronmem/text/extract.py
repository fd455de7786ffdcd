"""Which sentences of a message are worth keeping: rules for English, prose only, no model, no clock.

A sentence is kept for a statement about its writer, their team or a decision; requests, statements that are over
tomorrow and suppositions are left out. Rules are anchored at the start of a clause and see bounded text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kronmem.text import extract_rules as rules
from kronmem.text.fence import without_fences

_MAX_CLAUSES = 8
"""Of one sentence: bounds the work, and more than that is a list."""


class Fact(str):
    """A statement worth keeping, with the memory type that suits it; a plain `str` everywhere else."""

    __slots__ = ("memory_type",)
    memory_type: str
    """"preference", "decision", "fact", "temporary" or, where no rule knows the statement, "interaction"."""

    def __new__(cls, text: str, memory_type: str = "fact") -> Fact:
        """Make a fact; the type is that of the text as it was written, before any redaction."""
        made = super().__new__(cls, text)
        made.memory_type = memory_type
        return made

    def __reduce__(self) -> tuple[type[Fact], tuple[str, str]]:
        return Fact, (str(self), self.memory_type)


def extract_facts(text: str) -> list[Fact]:
    """Find the durable facts of a chat message: preferences, identity, project context, decisions, "remember that …".

    Each is a `str` with a `memory_type`. Sentences come back as written, in order and once each, with blanks collapsed
    and apostrophes made plain; of "remember that X" only X comes back, and a sentence that cannot be understood alone
    ("We're 6 people.") together with the one before it. Questions, small talk, requests, code, logs, quotes and
    recalled memory blocks yield nothing. Only the first 100,000 characters are read.
    """
    facts: dict[str, Fact] = {}
    for sentences in paragraphs(without_fences(text)):
        for fact in _facts(sentences):
            facts.setdefault(fact.casefold().rstrip(" .!;,"), fact)
    return list(facts.values())


def _facts(sentences: list[str]) -> list[Fact]:
    """The facts of one paragraph; one that leans on the sentence before it is joined to it."""
    facts: list[Fact] = []
    before: Fact | None = None
    for at, sentence in enumerate(sentences):
        fact = find_fact(sentence)
        if fact is not None and at and rules.LEANING.match(fact):
            lead = before or _context(sentences[at - 1])
            if lead is not None and len(lead) + len(fact) < MAX_SENTENCE_CHARS:
                if before is not None:
                    facts.pop()
                fact = Fact(f"{lead} {fact}", before.memory_type if before is not None else fact.memory_type)
        if fact is not None:
            facts.append(fact)
        before = fact
    return facts


def _context(sentence: str) -> str | None:
    """A sentence that is no fact by itself and states the subject of the next one."""
    words = _without_lead_in(rules.ROLE.sub("", plain(sentence)))
    left_out = (rules.REQUEST, rules.QUESTION_START, rules.SUPPOSED)
    if words.endswith("?") or " " not in words or any(rule.match(words) for rule in left_out):
        return None
    return words


def find_fact(sentence: str) -> Fact | None:
    """The part of one sentence that is a durable fact, if any."""
    if len(sentence) > MAX_SENTENCE_CHARS:
        return None
    words = _without_lead_in(rules.ROLE.sub("", plain(sentence)))
    asked = rules.REMEMBER.match(words)
    if asked:
        return _asked_for(words[asked.end() :].rstrip("? "))
    mentioned = rules.MENTION.match(words)
    if mentioned:
        rest = words[mentioned.end() :]
        return None if _is_vague(rest) else _asked_for(rest)
    return _statement(words)


def plain(sentence: str) -> str:
    """The sentence with plain apostrophes."""
    return sentence.replace("’", "'")


def _without_lead_in(words: str) -> str:
    for _ in range(4):
        lead = rules.LEAD_IN.match(words)
        if lead is None or lead.end() == len(words):
            break
        words = words[lead.end() :]
    return words


def _asked_for(rest: str) -> Fact | None:
    """The text that the writer asked to remember, of any kind."""
    return Fact(rest, _memory_type(rest) or "fact") if " " in rest else None


def _is_vague(rest: str) -> bool:
    return rest.endswith("?") or bool(
        re.match(r"(?:this|it|that|to)\b", rest, re.IGNORECASE) or rules.PASSING.search(rest)
    )


def _statement(words: str) -> Fact | None:
    if rules.SUPPOSED.match(words) or rules.REQUEST.match(words) or rules.QUESTION_START.match(words):
        return None
    if rules.HEDGED.search(words) or rules.EXPLAINED.search(words):
        return None
    asking = rules.ASKING_TAIL.search(words)
    if asking:
        words = words[: asking.start()]
    kind = None if words.endswith("?") else _memory_type(words)
    return Fact(words, kind) if kind else None


def _memory_type(words: str) -> str | None:
    """The type of the lasting statement in the sentence, or in a clause of it that stands on its own."""
    if rules.ORDER.match(words):
        return "preference"
    speaker = rules.SPEAKER.match(words)
    clauses = _clauses(words[speaker.end() :] if speaker and not rules.TEAM.match(words) else words)
    if any(rules.DECISION.match(clause) for clause in clauses):
        return "decision"
    if rules.PASSING.search(words):
        return None
    kinds = (("preference", rules.PREFERENCE), ("fact", rules.IDENTITY), ("fact", rules.TEAM))
    known = (kind for kind, rule in kinds if any(rule.match(clause) for clause in clauses))
    return next(known, "temporary" if rules.BLOCKED.match(words) else None)


def _clauses(words: str) -> list[str]:
    words = rules.OPENING.sub("", words, count=1)
    if rules.SCENE.match(words):
        return [words]
    starts = [0, *(gap.end() for gap in rules.CLAUSE_BREAK.finditer(words))]
    return [words[start:] for start in starts[:_MAX_CLAUSES]]


# The sentences of a message: prose only, paragraph by paragraph. Code, logs, quotes and tracebacks are left out.

MAX_TEXT_CHARS = 100_000
"""A longer message is a document: only its beginning is read, in a time that a turn does not notice."""
MAX_SENTENCE_CHARS = 400
"""A longer sentence is a list or code, not a fact."""
_ORDINAL = re.compile(r"\d{1,2}\.")
_WIDE_END = re.compile(r"(?<=[。！？])(?=.)")


def paragraphs(text: str) -> Iterator[list[str]]:
    """The sentences of each paragraph, with blanks collapsed."""
    for paragraph in _unwrapped(_prose_lines(text[:MAX_TEXT_CHARS])):
        if sentences := list(_split(_WIDE_END.sub(" ", paragraph).split())):
            yield sentences


def _prose_lines(text: str) -> Iterator[str]:
    """The lines a person wrote, with the bullets still on; code, logs, quotes and tracebacks leave an empty line."""
    in_code = in_traceback = False
    for line in text.splitlines():
        if rules.CODE_FENCE.match(line):
            in_code = not in_code
        elif rules.TRACEBACK.match(line):
            in_traceback = True
        elif in_traceback:
            in_traceback = rules.TRACEBACK_END.match(line) is None
        elif not in_code and not rules.MACHINE_LINE.match(line):
            yield line
            continue
        yield ""


def _unwrapped(lines: Iterator[str]) -> Iterator[str]:
    """Join lines that a mail client broke: the first is long and unfinished, the next goes on in lower case."""
    held = ""
    for line in lines:
        words = line.strip()
        if 50 <= len(held) <= MAX_SENTENCE_CHARS and held[-1] not in ".!?:;" and words[:1].islower():
            held = f"{held} {words}"
            continue
        yield held
        held = rules.BULLET.sub("", words, count=1).replace("**", "")
    yield held


def _split(words: list[str]) -> Iterator[str]:
    start = 0
    for at, word in enumerate(words, start=1):
        if at == len(words) or _ends_sentence(word, words[at]):
            yield " ".join(words[start:at])
            start = at


def _ends_sentence(word: str, following: str) -> bool:
    bare = word.rstrip(rules.CLOSERS)
    if not bare.endswith((".", "!", "?", "…", "。", "！", "？")):
        return False
    if not bare.endswith("."):
        return not (bare.endswith("!") and following in rules.LOWER_GOES_ON)
    stem = bare.rstrip(".").lstrip("(\"'“").casefold()
    if stem in rules.NEVER_LAST:
        return False
    if _ORDINAL.fullmatch(bare) and following.casefold().rstrip(".,;") in rules.MONTHS:
        return False  # "am 3. Dezember"
    if rules.INITIALS.fullmatch(stem):  # D.C., p.m., an initial: the sentence ends only where a new one clearly begins
        return following.casefold() in rules.STARTERS and not following.islower()
    return True
