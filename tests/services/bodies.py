"""What the recorded server wants in a request: one check per body and query."""

from __future__ import annotations

from tests.services import validate as v

TYPES = v.one_of("episodic", "semantic", "procedural", "fact", "preference", "context")
TTL_DAYS = (v.optional(v.whole(1, 3650)), None)
METADATA = (v.mapping, {})
TOP_K = (v.whole(1, 20), 5)
THRESHOLD = (v.number(0.0, 1.0), 0.5)

AGENT = v.model(
    {
        "name": (v.text(1, 255), v.REQUIRED),
        "description": (v.optional(v.text()), None),
        "metadata": METADATA,
    }
)
REMEMBER = v.model(
    {
        "content": (v.text(1), v.REQUIRED),
        "memory_type": (TYPES, "episodic"),
        "session_id": (v.optional(v.text()), None),
        "metadata": METADATA,
        "ttl_days": TTL_DAYS,
        "ttl_seconds": (v.optional(v.whole(60)), None),
        "pinned": (v.flag, False),
    }
)
RECALL = v.model(
    {
        "query": (v.text(1), v.REQUIRED),
        "top_k": TOP_K,
        "memory_type": (v.optional(TYPES), None),
        "session_id": (v.optional(v.text()), None),
        "threshold": THRESHOLD,
        "context_messages": (v.optional(v.items(v.mapping)), None),
    }
)
INJECT = v.model({"message": (v.text(1), v.REQUIRED), "top_k": TOP_K, "threshold": THRESHOLD})
IMPORT_ITEM = v.model(
    {
        "content": (v.text(1), v.REQUIRED),
        "memory_type": (TYPES, "episodic"),
        "metadata": METADATA,
        "ttl_days": TTL_DAYS,
    }
)
IMPORT = v.model({"memories": (v.items(IMPORT_ITEM, 1, 100), v.REQUIRED)})
LIST = v.model(
    {
        "page": (v.whole(1), 1),
        "per_page": (v.whole(1, 100), 20),
        "memory_type": (v.text(), None),
        "search": (v.text(), None),
        "sort": (v.pattern("^(recent|oldest|access_count)$"), "recent"),
    }
)
