"""The largest sizes and lifetimes, held by the client before it sends, by the service when it reads, and by the OpenAPI
document. Pure."""

from __future__ import annotations

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
