"""Every recorded exchange of the real server reads: each success into a model, each error into its class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kronmem import AgentInfo, Health, Hit, KronmemError, Memory, StatusError
from kronmem.core import calls, memory_json
from kronmem.core.policy import read, status_error
from kronmem.core.wire import Reply
from kronmem.errors import status_class

SAMPLES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "samples" / "kronvex.json").read_text("utf-8")
)
ANSWERED = [sample for sample in SAMPLES if sample["response"]["status"] is not None]
PARSED = {
    "POST remember": ("remember", Memory),
    "POST recall": ("recall", list),
    "POST inject-context": ("inject_context", str),
    "GET memories": ("page", memory_json.WirePage),
    "DELETE memories": ("clear", int),
    "GET sessions": ("sessions", list),
    "GET agents": ("agents", list),
    "POST agents": ("create_agent", AgentInfo),
    "GET /health": ("health", Health),
    "DELETE one": ("forget", type(None)),
}
CALLS: dict[str, Any] = {
    "remember": calls.remember(calls.Draft("a", "id", "text")),
    "recall": calls.recall("a", "question", 20, calls.MemoryFilter(), None, most=20),
    "inject_context": calls.inject_context("a", "question", 20, calls.MemoryFilter(), None, most=20),
    "page": calls.page("a", calls.MemoryFilter(), 1, None),
    "clear": calls.clear("a"),
    "sessions": calls.sessions("a"),
    "agents": calls.agents(),
    "create_agent": calls.create_agent("a"),
    "health": calls.health(),
    "forget": calls.forget("a", "m"),
}


def reply(sample: dict[str, Any]) -> Reply:
    said = sample["response"]
    body = b"" if said["json"] is None else json.dumps(whole(said["json"])).encode()
    return Reply(said["status"], body, said["headers"], 1_700_000_000.0)


def whole(value: Any) -> Any:
    """Leave out the marks that stand for the rest of a long recorded list."""
    if isinstance(value, list):
        return [whole(item) for item in value if not (isinstance(item, str) and item.startswith("<…"))]
    return {key: whole(item) for key, item in value.items()} if isinstance(value, dict) else value


def asked(sample: dict[str, Any]) -> str:
    """Which of our calls this request is, or the bare path of one that we never send."""
    method, path = sample["request"]["method"], sample["request"]["path"].split("?")[0].split(" ")[0]
    parts = path.removeprefix("/api/v1/agents").strip("/").split("/")
    if path == "/api/v1/agents":
        return f"{method} agents"
    if method == "DELETE" and len(parts) == 3 and parts[1] == "memories":
        return "DELETE one"
    return f"{method} {parts[1]}" if path.startswith("/api/v1/agents/") and len(parts) == 2 else f"{method} {path}"


@pytest.mark.parametrize("sample", ANSWERED, ids=lambda sample: sample["name"])
def test_a_recorded_exchange_reads(sample: dict[str, Any]) -> None:
    said = reply(sample)
    if said.status >= 300:
        error = status_error(said)
        assert type(error) is status_class(said.status)
        assert error.status == said.status
        assert error.message
        assert (error.retry_after is None) == ("retry-after" not in said.headers)
    elif asked(sample) in PARSED and sample["name"] != "race.8_identical_concurrent_remembers":
        name, kind = PARSED[asked(sample)]
        assert isinstance(read(CALLS[name], said), kind)


def test_the_walk_meets_every_call() -> None:
    met = {asked(sample) for sample in ANSWERED if sample["response"]["status"] < 300}
    assert set(PARSED) <= met


def test_what_a_success_says_arrives() -> None:
    by_name = {sample["name"]: sample for sample in SAMPLES}
    memory = read(CALLS["remember"], reply(by_name["remember.all_params"]))
    assert (memory.session_id, memory.memory_type, memory.pinned) == ("sess-1", "fact", False)
    assert memory.metadata == {"k": "v", "nested": {"a": [1, None, True]}}
    assert memory.expires_at is not None
    assert memory.agent_memory_count == 2  # a field this version does not know is kept
    hits: list[Hit] = read(
        CALLS["recall"], reply(by_name["recall.default"] if "recall.default" in by_name else by_name["score.recall_0"])
    )
    assert hits
    assert hits[0].content == hits[0].memory.content


def test_superseded_and_foreign_hits_of_a_recorded_recall_are_left_out() -> None:
    sample = next(one for one in SAMPLES if one["name"] == "supersede.recall_graph_path_returns_superseded")
    within = calls.memory_filter("preference", "bob", ())
    assert read(calls.recall("a", "What about Billing", 1, within, 0.9, most=20), reply(sample)) == []
    (only,) = read(CALLS["recall"], reply(sample))
    assert only.content == "Billing listens on port ninety at Lyon"


def test_an_error_does_not_echo_what_was_sent() -> None:
    secret = "kv-very-secret"
    said = {
        "detail": [{"type": "t", "loc": ["body", "content"], "msg": "too long", "input": secret, "ctx": {"x": secret}}]
    }
    error = status_error(Reply(422, json.dumps(said).encode(), {"x-request-id": "r1"}))
    assert str(error) == "422: body.content: too long"
    assert error.request_id == "r1"


@pytest.mark.parametrize("status", [418, 405, 413, 599, 301])
def test_a_status_nobody_planned_is_still_ours(status: int) -> None:
    error = status_error(Reply(status, b"<html>"))
    assert isinstance(error, StatusError)
    assert isinstance(error, KronmemError)
