"""The sentences of a message: prose only, paragraph by paragraph. Code, logs, quotes and tracebacks are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kronmem.text import extract_rules as rules

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
