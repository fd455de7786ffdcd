"""A `kronmem serve` of version 0.1, as far as its replies tell it: recorded from that version, by route.

It ignores fields that it does not know and has none of the routes that came later.
"""

from __future__ import annotations

from tests.services.loopback import Connection, Loopback, Recorded
from tests.services.raw import respond

HEADERS = {
    "x-request-id": "f099fb09471146298b7582485162f343",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
}
MEMORY = {
    "id": "b8ac67eb-1eb1-41e8-9347-5b60e6c517b5",
    "agent_id": "ada",
    "content": "tea at five",
    "session_id": None,
    "memory_type": "fact",
    "metadata": {},
    "tags": [],
    "created_at": "2026-11-18T02:30:00.000000Z",
    "access_count": 0,
    "expires_at": None,
    "pinned": False,
    "agent_memory_count": 1,
    "deduplicated": False,
    "superseded": False,
    "superseded_by": None,
    "conflict_detected": False,
    "conflicts_resolved": 0,
}
HIT = {"memory": MEMORY, "similarity": 0.7, "confidence": 0.7, "score": 0.7}
REPLIES: dict[tuple[str, str], tuple[int, object]] = {
    ("POST", "remember"): (201, MEMORY),
    ("POST", "batch"): (201, {"memories": [MEMORY]}),
    ("POST", "recall"): (200, {"query": "tea", "results": [HIT], "total_found": 1}),
    ("POST", "inject-context"): (200, {"context": "", "context_block": "", "memories_used": 0, "memories": []}),
    ("GET", "memories"): (
        200,
        {"memories": [MEMORY], "total": 1, "page": 1, "per_page": 100, "pages": 1, "next": None},
    ),
    ("GET", "n"): (404, {"detail": "State not found"}),
    ("PUT", "n"): (200, {"key": "n", "stored": True, "updated_at": "2026-11-18T02:30:00.000000Z"}),
}


class OutdatedKronmem(Loopback):
    """Answers each route as kronmem 0.1 did."""

    def serve(self, connection: Connection, request: Recorded) -> None:
        """Answer one request."""
        last = request.path.partition("?")[0].rsplit("/", 1)[1]
        missing = (405, {"detail": "Method Not Allowed"}) if last == "upsert" else (404, {"detail": "Not Found"})
        status, body = REPLIES.get((request.method, last), missing)
        respond(status, HEADERS, body)(self, connection, request)  # type: ignore[arg-type] # reads only the connection
