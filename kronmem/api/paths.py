"""Every path of the API, once. Parameters stand in braces and are quoted in a request."""

from __future__ import annotations

HEALTH = "/health"
AGENTS = "/api/v1/agents"
AGENT = AGENTS + "/{agent}"
REMEMBER = AGENT + "/remember"
RECALL = AGENT + "/recall"
INJECT_CONTEXT = AGENT + "/inject-context"
MEMORIES = AGENT + "/memories"
BATCH = MEMORIES + "/batch"
BULK_IMPORT = MEMORIES + "/bulk-import"
EXPORT = MEMORIES + "/export"
UPSERT = MEMORIES + "/upsert"
RESTORE = MEMORIES + "/restore"
CLEAR_SOME = MEMORIES + "/clear"
MEMORY = MEMORIES + "/{memory}"
HISTORY = MEMORY + "/history"
UPDATE = MEMORY + "/update"
SUMMARY = AGENT + "/summary"
ERASE = AGENT + "/erase"
SESSIONS = AGENT + "/sessions"
SESSION = SESSIONS + "/{session}"
STATE = AGENT + "/state"
STATE_KEY = STATE + "/{key}"

# Of BotWire, which our client can use for state and our server can stand in for.
BOTWIRE_NAMESPACE = "/memory/{namespace}"
BOTWIRE_KEY = BOTWIRE_NAMESPACE + "/{key}"


def fill(path: str, **segments: str) -> str:
    """Put checked and quoted segments in place of their parameters; other parameters stay."""
    for name, segment in segments.items():
        path = path.replace(f"{{{name}}}", segment)
    return path
