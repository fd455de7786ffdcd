"""One rule for ids and texts: client, service and document agree about every example."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kronmem import InvalidInputError
from kronmem.api import paths, rules
from kronmem.api.requests import valid_id
from kronmem.core import inputs
from tests.engine.calling import Caller

GOOD = [
    "team 7",
    "naïve",
    "用户",
    "a.b",
    "user@example.com",
    "a+b&c=d",
    "…",
    "x" * 255,
    "\U0001f600",
    "a\u00a0b",
    "{agent}",
]
BAD = [
    "", " ", ".", "..", " a", "a ", "a/b", "a\\b", "a?b", "a#b", "a%b", "a\x00b", "a\nb", "a\x7fb", "a\x85b", "a\u2028b",
    "a\u2029b", "\ud800", "a\udfffb", "x" * 256, "a\u3000",
]  # fmt: skip
SURROGATE = '"half \\ud83d"'


def client_takes(value: str) -> bool:
    try:
        inputs.identifier(value, "agent_id")
    except InvalidInputError:
        return False
    return True


def service_takes(value: str) -> bool:
    try:
        valid_id(value)
    except ValueError:
        return False
    return True


def document_takes(value: str) -> bool:
    return 1 <= len(value) <= rules.MAX_ID and re.search(rules.ID_PATTERN, value) is not None


@pytest.mark.parametrize("value", GOOD)
def test_a_good_id_is_taken_by_client_service_and_document(value: str, call: Caller) -> None:
    assert client_takes(value)
    assert service_takes(value)
    assert document_takes(value)
    there = call.as_(agent=quote(value, safe=""))
    assert there.remember("tea", session_id=value)["agent_id"] == value
    assert there("GET", "sessions")[1]["sessions"] == [{"session_id": value, "count": 1}]


@pytest.mark.parametrize("value", BAD, ids=ascii)
def test_a_bad_id_is_refused_by_client_service_and_document(value: str, call: Caller) -> None:
    assert not client_takes(value)
    assert not service_takes(value)
    # No JSON in UTF-8 carries a lone surrogate, so the document need not speak of them.
    assert not document_takes(value) or re.search("[\ud800-\udfff]", value)
    assert call("POST", "remember", {"content": "tea", "session_id": value})[0] == 422
    assert call("GET", paths.AGENTS)[1] == []


@given(st.text(min_size=0, max_size=12))
@example("a\u2028b")
@example("\u2029")
@example("\ufeff")
def test_client_and_service_never_disagree_about_an_id(value: str) -> None:
    assert client_takes(value) == service_takes(value)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "remember", '{"content": %s}'),
        ("POST", "remember", '{"content": "x", "memory_type": %s}'),
        ("POST", "remember", '{"content": "x", "tags": [%s]}'),
        ("POST", "remember", '{"content": "x", "session_id": %s}'),
        ("POST", "remember", '{"content": "x", "metadata": {"deep": [{"in": %s}]}}'),
        ("POST", "remember", '{"content": "x", "metadata": {%s: 1}}'),
        ("POST", "memories/batch", '{"memories": [{"content": %s}]}'),
        ("POST", "recall", '{"query": %s}'),
        ("POST", "recall", '{"message": %s}'),
        ("POST", "inject-context", '{"message": %s}'),
        ("POST", paths.AGENTS, '{"name": %s}'),
        ("POST", paths.AGENTS, '{"name": "a", "description": %s}'),
        ("POST", paths.AGENTS, '{"name": "a", "metadata": {"x": %s}}'),
        ("PUT", "state/k", '{"value": %s}'),
        ("PUT", "state/k", '{"value": {%s: [1]}}'),
    ],
)
def test_a_lone_surrogate_is_refused_wherever_it_stands(method: str, path: str, body: str, call: Caller) -> None:
    assert call(method, path, (body % SURROGATE).encode())[0] == 422
    assert call("GET", paths.AGENTS)[1] == []


def test_both_halves_of_a_character_are_one_character(call: Caller) -> None:
    assert call("PUT", "state/k", b'{"value": "\\ud83d\\ude00"}')[0] == 200
    assert call("GET", "state/k")[1]["value"] == "\U0001f600"


def test_the_service_takes_everything_that_the_client_may_send(call: Caller) -> None:
    """Also at its largest, when every character takes as many bytes of JSON as it can."""
    metadata = {"k": "\x01" * (rules.MAX_METADATA - 10)}
    checked = inputs.metadata(metadata)
    content = inputs.checked_text("\U0001f600" * rules.MAX_CONTENT, "content")
    tags = inputs.checked_tags(
        [f"{number:03}" + "\U0001f600" * (rules.MAX_TAG - 3) for number in range(rules.MAX_TAGS)]
    )
    reserved = {rules.RESERVED: {"id": "x" * rules.MAX_ID, "type": "t" * rules.MAX_TYPE, "tags": tags}}
    ttl = {"ttl_days": rules.MAX_TTL_DAYS, "ttl_seconds": rules.MAX_TTL_SECONDS}
    stored = call.remember(content, metadata={**checked, **reserved}, session_id="s" * rules.MAX_ID, **ttl)
    assert stored["content"] == content
    assert stored["metadata"] == metadata
    assert stored["tags"] == list(tags)
    assert (
        call("PUT", "state/k", {"value": inputs.json_value("x" * (rules.MAX_STATE - 10), "v", [rules.MAX_STATE])})[0]
        == 200
    )
