"""Which statements of a chat are worth keeping: those of the user, and the assistant's decisions and commitments. Pure.

When in doubt a user's statement is kept and an assistant's is not: the use of an answer is there again when it is
asked for, and a model's supposition must not come back as a fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kronmem.text import extract_rules
from kronmem.text import statement_rules as rules
from kronmem.text.extract import MAX_SENTENCE_CHARS, MAX_TEXT_CHARS, Fact, extract_facts, find_fact, paragraphs, plain
from kronmem.text.fence import without_fences

MAX_MESSAGE_CHARS = 1500
"""A longer message of a user is a pasted document: of it only durable facts are kept."""
MAX_STATEMENT_CHARS = 300
"""Sentences that follow each other are one statement up to here: "The old NAS died. New target is a TrueNAS.\""""
MAX_LINE_CHARS = 1000
"""Of a line that are looked at, to tell code and logs."""
NEW_SHARE = 0.67
"""Of the words of a commitment that must be new in the chat; with fewer it only repeats what it answers."""
_WORD = re.compile(r"[^\W_]+(?:['’.,:/-][^\W_]+)*")
_WIDE = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def statements(text: str, role: str = "user", before: Sequence[str] = ()) -> list[Fact]:
    """Find the statements of a message that are worth keeping, as written, each with the type that the rules know.

    `role` is that of the speaker, "user" or "assistant"; other roles state nothing. `before` are earlier messages of
    the others in the chat: an assistant that only repeats them has stated nothing. The type is "interaction" where no
    rule knows it.
    """
    words = without_fences(text)
    if role == "assistant":
        return _once(_commitments(words, " ".join(before)))
    if role != "user":
        return []
    if len(words) > MAX_MESSAGE_CHARS:
        return list(extract_facts(words))
    return _once(one for sentences in paragraphs(_prose(words)) for one in _of_user(sentences))


def _once(facts: Iterator[Fact]) -> list[Fact]:
    return list({fact.casefold().rstrip(" .!;,"): fact for fact in facts}.values())


def _prose(text: str) -> str:
    """The text without lines of code and logs, and without long quotes."""
    lines = rules.QUOTED.sub(" ", text[:MAX_TEXT_CHARS]).splitlines()
    return "\n".join("" if rules.MACHINE.match(line.strip()[:MAX_LINE_CHARS]) else line for line in lines)


def words_of(text: str) -> list[str]:
    """The words of a text, without case and punctuation."""
    return [word.casefold() for word in _WORD.findall(plain(text))]


# ── the user ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_user(sentences: list[str]) -> Iterator[Fact]:
    """The statements of one paragraph: sentences that follow each other are one, a preference stands for itself."""
    speaker, sentences = _speaker(sentences)
    held: list[Fact] = []
    for kept in [*map(_stated, sentences), None]:
        if held and (kept is None or not _goes_on(held, kept)):
            yield _joined(speaker, held)
            held = []
        if kept is not None:
            held.append(kept)


def _speaker(sentences: list[str]) -> tuple[str, list[str]]:
    """The name in front of the words of a team ("Noor: …"), and the sentences without it; a role is dropped."""
    first = extract_rules.ROLE.sub("", sentences[0])
    match = rules.SPEAKER.match(first)
    if match is None:
        return "", [first, *sentences[1:]]
    return match.group(), [first[match.end() :], *sentences[1:]]


def _goes_on(held: list[Fact], kept: Fact) -> bool:
    if extract_rules.LEANING.match(kept):
        return True
    alone = "preference" in (held[-1].memory_type, kept.memory_type)
    return not alone and sum(map(len, held)) + len(kept) <= MAX_STATEMENT_CHARS


def _joined(speaker: str, held: list[Fact]) -> Fact:
    known = next((fact.memory_type for fact in held if fact.memory_type != "interaction"), "interaction")
    return Fact(speaker + " ".join(held), known)


def _stated(sentence: str) -> Fact | None:
    """The statement in a user's sentence, with its type; None for small talk, questions, requests and suppositions."""
    sentence = _without_lead_in(plain(sentence))
    if rules.TOLD_BEFORE.match(sentence) or len(sentence) > MAX_SENTENCE_CHARS:
        return None
    if fact := find_fact(sentence):
        return fact
    sentence = _without_question(sentence)
    if not sentence or sentence.endswith(":") or _is_small_talk(sentence) or rules.QUESTION.match(sentence):
        return None
    if rules.SUPPOSED.match(sentence) or rules.UNDECIDED.search(sentence) or _is_request(sentence):
        return None
    return Fact(sentence, _type(sentence))


def _type(sentence: str) -> str:
    """The type of a statement that the English rules for durable facts do not know."""
    if rules.DECIDES.search(sentence):
        return "decision"
    return "preference" if rules.STANDING.search(sentence) and rules.REQUEST.match(sentence) else "interaction"


def _without_lead_in(sentence: str) -> str:
    for _ in range(4):
        lead = rules.LEAD.match(sentence)
        if lead is None or lead.end() == len(sentence):
            break
        sentence = sentence[lead.end() :]
    return sentence


def _without_question(sentence: str) -> str:
    """The statement that stands before a question ("It hurts when I sit, what can I do?"); "" if there is none."""
    if not rules.QUESTION_END.search(sentence):
        return sentence
    tail = extract_rules.ASKING_TAIL.search(sentence)
    lead = sentence[: tail.start()] if tail else ""
    return lead if len(words_of(lead)) > 2 and not rules.NO_STATEMENT.search(lead) else ""


def _is_small_talk(sentence: str) -> bool:
    words = words_of(sentence)
    telling = [word for word in words if word not in rules.SMALL_TALK]
    if not any(map(str.isalpha, sentence)):
        return True
    if not telling or (len(telling) < 2 and not _is_terse(words, telling, sentence)):
        return True
    if rules.CHIT_CHAT.match(sentence) or (rules.FAREWELL.match(sentence) and len(telling) < 4):
        return True
    return (
        bool(rules.LAUGHTER.search(sentence))
        and not rules.OWN_SUBJECT.match(sentence)
        and not re.search(r"\d", sentence)
    )


def _is_terse(words: list[str], telling: list[str], sentence: str) -> bool:
    """Whether a sentence with one telling word states something: "I'm vegan.", "no nuts", 「猫を飼っています」."""
    wide = len(_WIDE.findall(sentence)) >= 5
    return wide or (
        len(words) > 1 and (rules.OWN.search(sentence) is not None or words[0] in ("no", "keine", "sin", "pas"))
    )


def _is_request(sentence: str) -> bool:
    if any(rule.search(sentence) for rule in (rules.STANDING, rules.NAMES_A_THING, rules.CHANGES_A_PLAN)):
        return False
    short = len(words_of(sentence)) <= 4 and re.search(
        r"\b(?:please|pls|plz|bitte|por favor)\W*$", sentence, re.IGNORECASE
    )
    return bool(short) or rules.REQUEST.match(sentence) is not None


# ── the assistant ────────────────────────────────────────────────────────────────────────────────────────────────


def _commitments(text: str, before: str) -> Iterator[Fact]:
    known = set(words_of(before))
    for sentences in paragraphs(_prose(text)):
        decided = False
        for sentence in sentences:
            marker = rules.DECIDED.match(plain(sentence))
            rest = plain(sentence)[marker.end() :] if marker else plain(sentence)
            if marker and not rest:
                decided = True  # "Done." is about the sentence after it
                continue
            if (marker or decided or rules.COMMITS.match(rest)) and _is_firm(rest) and _is_new(rest, known):
                yield Fact(rest if decided else plain(sentence), "decision")
            decided = False


def _is_firm(sentence: str) -> bool:
    if len(sentence) > MAX_SENTENCE_CHARS or rules.QUESTION_END.search(sentence):
        return False
    if rules.OF_THE_ANSWER.search(sentence) and not rules.STANDING.search(sentence):
        return False
    return not rules.NOT_COMMITTED.search(sentence)


def _is_new(sentence: str, known: set[str]) -> bool:
    words = dict.fromkeys(word for word in words_of(sentence) if word not in rules.SMALL_TALK)
    new = [word for word in words if word not in known]
    if any(word in known for word in words if any(map(str.isdigit, word))):
        return False  # the same number or date: a repeat in other words
    return len(new) >= 2 and len(new) >= NEW_SHARE * len(words)
