"""Which sentences of a message are worth keeping: rules for English, no model, no clock.

A sentence is kept for what it states about its writer, their team or a decision; what it asks for, what will be over
tomorrow and what is only supposed are left out. Rules are anchored at the start of a clause and see bounded text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kronmem.text import extract_rules as rules
from kronmem.text.fence import without_fences

MAX_TEXT_CHARS = 100_000
"""A longer message is a document: only its beginning is read, in a time that a turn does not notice."""
MAX_SENTENCE_CHARS = 400
"""A longer sentence is a list or code, not a fact."""
_MAX_CLAUSES = 8
"""Of one sentence: bounds the work, and nobody states more at once."""


def extract_facts(text: str) -> list[str]:
    """Find the durable facts of a chat message: preferences, identity, project context, decisions, "remember that …".

    Sentences come back as written, in order and once each, with blanks collapsed and apostrophes made plain; of
    "remember that X" only X comes back. Questions, small talk, requests, code, logs, quotes and recalled memory
    blocks yield nothing. Only the first 100,000 characters are read.
    """
    facts: dict[str, str] = {}
    for sentence in _sentences(without_fences(text)[:MAX_TEXT_CHARS]):
        fact = _fact(sentence)
        if fact:
            facts.setdefault(fact.casefold().rstrip(" .!;,"), fact)
    return list(facts.values())


def _sentences(text: str) -> Iterator[str]:
    for paragraph in _unwrapped(_prose_lines(text)):
        yield from _split(paragraph.split())


def _prose_lines(text: str) -> Iterator[str]:
    """Lines that somebody wrote, with the bullets still on; code, logs, quotes and tracebacks leave an empty line."""
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
    if not bare.endswith((".", "!", "?", "…")):
        return False
    if not bare.endswith("."):
        return not (bare.endswith("!") and following in rules.LOWER_GOES_ON)
    stem = bare.rstrip(".").lstrip("(\"'“").casefold()
    if stem in rules.NEVER_LAST:
        return False
    if rules.INITIALS.fullmatch(stem):  # D.C., p.m., an initial: the sentence ends only where a new one clearly begins
        return following.casefold() in rules.STARTERS and not following.islower()
    return True


def _fact(sentence: str) -> str | None:
    """The part of the sentence to keep, if any."""
    if len(sentence) > MAX_SENTENCE_CHARS:
        return None
    said = _without_lead_in(rules.ROLE.sub("", sentence.replace("’", "'")))
    told = rules.REMEMBER.match(said)
    if told:
        return _worth_telling(said[told.end() :].rstrip("? "))
    mentioned = rules.MENTION.match(said)
    if mentioned:
        rest = said[mentioned.end() :]
        return None if _is_vague(rest) else _worth_telling(rest)
    return _statement(said)


def _without_lead_in(said: str) -> str:
    for _ in range(4):
        lead = rules.LEAD_IN.match(said)
        if lead is None or lead.end() == len(said):
            break
        said = said[lead.end() :]
    return said


def _worth_telling(rest: str) -> str | None:
    return rest if " " in rest else None


def _is_vague(rest: str) -> bool:
    return rest.endswith("?") or bool(
        re.match(r"(?:this|it|that|to)\b", rest, re.IGNORECASE) or rules.PASSING.search(rest)
    )


def _statement(said: str) -> str | None:
    if rules.SUPPOSED.match(said) or rules.REQUEST.match(said) or rules.QUESTION_START.match(said):
        return None
    if rules.HEDGED.search(said) or rules.EXPLAINED.search(said):
        return None
    asking = rules.ASKING_TAIL.search(said)
    if asking:
        said = said[: asking.start()]
    return said if not said.endswith("?") and _states(said) else None


def _states(said: str) -> bool:
    """Whether the sentence, or a clause of it that stands on its own, says something durable."""
    speaker = rules.SPEAKER.match(said)
    clauses = _clauses(said[speaker.end() :] if speaker and not rules.TEAM.match(said) else said)
    if any(rules.DECISION.match(clause) for clause in clauses):
        return True
    return not rules.PASSING.search(said) and any(_describes(clause) for clause in clauses)


def _clauses(said: str) -> list[str]:
    said = rules.OPENING.sub("", said, count=1)
    if rules.SCENE.match(said):
        return [said]
    starts = [0, *(gap.end() for gap in rules.CLAUSE_BREAK.finditer(said))]
    return [said[start:] for start in starts[:_MAX_CLAUSES]]


def _describes(clause: str) -> bool:
    return any(rule.match(clause) for rule in (rules.PREFERENCE, rules.IDENTITY, rules.TEAM))
