"""What a transaction of the PostgreSQL store can read. Values travel as bound parameters only."""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from kronmem.engine.embedding import cosine
from kronmem.engine.postgres_pool import Session, Value
from kronmem.engine.store import Filter, Found, Page, Posting, Receipt, Row, Space, StateValue, labels_of, spread

BITS = 32
"""A memory's key is `space << BITS | number`."""

_SPACE = "SELECT id, name, description, metadata, created, count, words, last FROM kronmem.space WHERE owner = %s"
COLUMNS = "number, id::text, content, type, session, tags, metadata, created, expires, pinned, accessed"
_ROW = f"SELECT {COLUMNS} FROM kronmem.memory WHERE"
_LIVE = "(expires IS NULL OR expires > %s)"
_ORDER = {"recent": "number DESC", "oldest": "number", "access_count": "accessed DESC, number DESC"}
_BEYOND = {"recent": "number < %s", "oldest": "number > %s", "access_count": "(accessed, number) < (%s, %s)"}
_POSTINGS = """SELECT asked.term, found.number, found.times, found.length
    FROM unnest(%s::text[], %s::bigint[]) AS asked(term, bound) CROSS JOIN LATERAL (
        SELECT number, times, length FROM kronmem.posting
        WHERE space = %s AND term = asked.term COLLATE "C" ORDER BY number DESC LIMIT asked.bound) AS found"""
_POSTINGS_AT = """SELECT term, number, times, length FROM kronmem.posting
    WHERE space = %s AND term = ANY(%s::text[]) AND number = ANY(%s::bigint[]) ORDER BY number DESC"""
_NUMBERS = "SELECT number FROM kronmem.posting WHERE space = %s AND term = %s"
# One seek a term: DISTINCT would walk through all postings of each.
_TERMS_LIKE = """WITH RECURSIVE alike(term) AS (
        (SELECT term FROM kronmem.posting WHERE space = %s AND term >= %s AND term < %s ORDER BY term LIMIT 1)
        UNION ALL SELECT (SELECT next.term FROM kronmem.posting AS next WHERE next.space = %s
            AND next.term > alike.term AND next.term < %s ORDER BY next.term LIMIT 1)
        FROM alike WHERE alike.term IS NOT NULL)
    SELECT term FROM alike WHERE term IS NOT NULL LIMIT %s"""
