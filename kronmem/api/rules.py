"""The rules that client, service and OpenAPI document share: ids, the largest sizes and lifetimes, the API's version.

Pure. Beside them the models of bodies and replies, which pydantic builds when they are first needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from pydantic import BaseModel, ConfigDict, TypeAdapter

from kronmem import fork_safety

ROLES = ("user", "assistant", "tool")
"""The speakers of a memory: the roles of the chat protocols whose words are remembered."""

MEMORY_TYPES = (
    *("fact", "preference", "decision", "context", "temporary", "interaction", "episodic", "semantic", "procedural"),
)
"""The types of memories that have a meaning; any other name is kept as it is."""

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


# The largest sizes and lifetimes, held by the client before it sends, by the service when it reads, and by the OpenAPI
# document. Pure.

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
MAX_DESCRIPTION = 10_000
"""Our own bound: a page of text about an agent."""
MAX_BATCH = 1000
"""Memories in one request: they are stored in one transaction, which others wait for."""
MAX_PAGE = 1000
"""Memories of one page of a listing."""
PAGE_BYTES = 4 * 1024 * 1024
"""In bytes of JSON, of a page or of memories sent together: half of what a client reads, a quarter of what a server
does, and more than the largest memory."""
MAX_HITS = 100
"""Hits of one recall: Kronvex has 20; more than a hundred fit into no prompt and are a listing."""
MAX_EXCLUDED = 1000
"""Ids that a recall leaves out: the memories of a long prompt, ten times over."""
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


# The version of the API, in a header of every reply of `kronmem serve`.

VERSION_HEADER = "x-kronmem-version"
API_VERSION = "0.3"
VERSION_NUMBER = tuple(map(int, API_VERSION.split(".")))
"""The same, comparable."""


# Validators of the API's types, built at the first value: a process that remembers and recalls needs four of forty.
#
# The models' own are not built (`defer_build`): before 2.12, pydantic does not expect two threads to build one model.
# Threads that come first at once build an adapter each, one after the other; a fork waits for them.

T = TypeVar("T")


class DeferredModel(BaseModel):
    """The base of models that are read by a `Validator`."""

    model_config = ConfigDict(defer_build=True)


class Validator(Generic[T]):
    """Reads values of one type; raises pydantic's `ValidationError`."""

    @overload
    def __init__(self, model: type[T]) -> None: ...
    @overload
    def __init__(self, model: Any) -> None: ...  # a union is no type to type checkers

    def __init__(self, model: Any) -> None:
        self._model = model
        self._adapter: TypeAdapter[T] | None = None

    def json(self, body: bytes) -> T:
        """Read JSON."""
        return self._adapter.validate_json(body) if self._adapter else self._first(lambda new: new.validate_json(body))

    def python(self, value: object) -> T:
        """Read a value."""
        if self._adapter:
            return self._adapter.validate_python(value)
        return self._first(lambda new: new.validate_python(value))

    def _first(self, read: Callable[[TypeAdapter[T]], T]) -> T:
        # pydantic-core has locks of its own: a child forked while another thread builds would wait for one for ever.
        with fork_safety.first_use.lock:
            adapter: TypeAdapter[T] = TypeAdapter(self._model)
            try:
                return read(adapter)
            finally:
                self._adapter = adapter
