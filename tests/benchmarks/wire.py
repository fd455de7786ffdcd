"""What the stub is asked, written out for those who have no SDK."""

from __future__ import annotations

from pydantic import BaseModel

from kronmem import Hit

HEADERS = {"X-API-Key": "kv-test"}
AGENT = "7d3f078b-61fc-4ea9-9806-5ba38fab8e52"
PATH = f"/api/v1/agents/{AGENT}"
RECALL = {"query": "which database", "top_k": 5, "threshold": 0.5}
REMEMBER = {
    "content": "The database is PostgreSQL 16",
    "memory_type": "fact",
    "session_id": "s",
    "metadata": {"k": "v"},
}


class Found(BaseModel):
    """What a careful user would parse a recall into."""

    results: list[Hit]
