"""One rule for ids, held by the client before it sends, by the service when it reads, and by the OpenAPI document.

Pure, and without pydantic: every client imports it."""

from __future__ import annotations

import re

from kronmem.api.limits import MAX_ID

ROLES = ("user", "assistant", "tool")
"""Who can have said a memory: the roles of the chat protocols whose words are remembered."""

RESERVED = "kronmem"
"""The one metadata key kept for data that a service has no field for: the client's id, our types, tags."""
FORGOTTEN = "The memory of this id was forgotten, cleared or has expired: choose another id to store it again"
"""The message of a 409 that a late delivery takes for its end."""
GENERAL_QUERY = "general context"
"""The query of the vendor's tutorials when there is no question."""

# Separators, query and fragment marks and the percent sign could make one id address another resource; control
# characters and the two line separators would split a header or a line of a log.
_EXCLUDED = r"\x00-\x1f\x7f-\x9f/\\?#%\u2028\u2029"
_BAD_ID = re.compile(rf"[{_EXCLUDED}\ud800-\udfff]")
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")

# In ECMA 262, for the document. No JSON text in UTF-8 holds a lone surrogate, and validators refuse a pattern with one.
ID_PATTERN = rf"^(?!\.{{1,2}}$)[^\s{_EXCLUDED}]([^{_EXCLUDED}]*[^\s{_EXCLUDED}])?$"
UUID_PATTERN = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
"""The id of a stored memory."""
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
