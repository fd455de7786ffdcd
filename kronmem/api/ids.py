"""One rule for ids and one table of sizes, held by the client before it sends, by the service when it reads, and by
the OpenAPI document. Pure, and without pydantic: every client imports it."""

from __future__ import annotations

import re

MAX_ID = 255
"""Kronvex keeps names and sessions in columns of 255 characters and answers 500 to longer ones."""
MAX_TYPE = 50
"""The width of Kronvex's column for a memory's type."""
MAX_TTL_DAYS = 3650
MIN_TTL_SECONDS = 60
MAX_TTL_SECONDS = MAX_TTL_DAYS * 86_400
"""The bounds that Kronvex documents for ttl_days and ttl_seconds."""
MAX_KEY = 255
"""Of the key that a memory is about: as long as an id may be."""
ROLES = ("user", "assistant", "tool")
"""Who can have said a memory: the roles of the chat protocols whose words are remembered."""
MAX_TAGS = 100
"""Our own bound: every tag of a memory is one row of the index."""

# The client sends at most the first number of each pair, so that the same text can be stored at every service. Our own
# service takes the second: redaction may lengthen a text after the client has checked it, the client counts characters
# where the service counts bytes of JSON, and callers without our client are bound by the machine, not by Kronvex.
MAX_CONTENT = 32_000
"""Kronvex embeds at most 8,192 tokens of a text, which are about 32,000 Latin letters."""
MAX_SERVED_CONTENT = 100_000
"""Three times the client's, for redactions that lengthen a text."""
MAX_TAG = 100
"""Our own bound: a tag is a word or two, and each is a row of the index."""
MAX_SERVED_TAG = 255
"""As long as an id may be."""
MAX_METADATA = 64_000
"""In characters, twice the longest content; each is at most six bytes of JSON."""
MAX_SERVED_METADATA = 1_000_000
"""In bytes of JSON: more than the client's bound with every character escaped."""
MAX_STATE = 8_000_000
"""In characters, below the served bound for text that is mostly ASCII."""
MAX_SERVED_STATE = 8 * 1024 * 1024
"""In bytes of JSON: half of the largest body that a server reads."""

RESERVED = "kronmem"
"""The one metadata key kept for data that a service has no field for: the client's id, our types, tags."""
GENERAL_QUERY = "general context"
"""The query of the vendor's tutorials when there is no question."""

# Separators, query and fragment marks and the percent sign could make one id address another resource; control
# characters and the two line separators would split a header or a line of a log.
_EXCLUDED = r"\x00-\x1f\x7f-\x9f/\\?#%\u2028\u2029"
_BAD_ID = re.compile(rf"[{_EXCLUDED}\ud800-\udfff]")
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")

# In ECMA 262, for the document. No JSON text in UTF-8 holds a lone surrogate, and validators refuse a pattern with one.
ID_PATTERN = rf"^(?!\.{{1,2}}$)[^\s{_EXCLUDED}]([^{_EXCLUDED}]*[^\s{_EXCLUDED}])?$"
TEXT_PATTERN = r"^[^\x00]*[^\s\x00][^\x00]*$"
"""Not blank and without NUL."""


def id_problem(value: str) -> str | None:
    """Return the reason why this id cannot stand in a path, a header and a database alike, or None."""
    if not value.strip() or value != value.strip() or value in {".", ".."}:
        return "must not be empty, '.', '..' or padded with spaces"
    if len(value) > MAX_ID:
        return f"is {len(value)} characters long; at most {MAX_ID} are allowed"
    if _BAD_ID.search(value):
        return "must not contain / \\ ? # % or control characters"
    return None


def text_problem(value: str) -> str | None:
    """Return the reason why a store cannot keep this text, or None."""
    return "must not contain NUL or lone surrogates" if _UNSTORABLE.search(value) else None


def has_surrogate(value: str) -> bool:
    """Whether half of a surrogate pair stands alone in the text, so that UTF-8 cannot encode it."""
    return _SURROGATE.search(value) is not None
