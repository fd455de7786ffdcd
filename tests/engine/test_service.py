from __future__ import annotations

import json
from typing import Any

import pytest

from kronmem.api.routes import ROUTES
from tests.engine.calling import Caller

BAD_IDS = [
    "..", ".", "%2e%2e", "%2E", "a%2Fb", "..%2f..%2fx", "a%3Fx", "a%23f", "a%5cb", "a%00", "a%0Ab", "%20a", "a%20", "%25",
    "x" * 256, "%ff", "%ed%a0%80",
]  # fmt: skip


def test_it_says_that_it_is_well(call: Caller) -> None:
    status, reply = call("GET", "/health")
    assert status == 200
    assert reply["status"] == "ok"
    assert reply["service"] == "kronmem"


def test_unknown_paths_and_methods_are_refused_as_usual(call: Caller) -> None:
    assert call("GET", "/api/v1/nope") == (404, {"detail": "Not Found"})
    assert call("PUT", "/api/v1/agents") == (405, {"detail": "Method Not Allowed"})
    assert call("DELETE", "/api/v1/agents/bot/") == (404, {"detail": "Not Found"})


@pytest.mark.parametrize("bad", BAD_IDS)
def test_a_bad_id_is_refused_on_every_path_that_takes_one(call: Caller, bad: str) -> None:
    call.remember("something to lose")
    for route in ROUTES:
        for name in ("agent", "memory", "session", "key"):
            if f"{{{name}}}" in route.path:
                path = route.path.replace(f"{{{name}}}", bad)
                path = path.replace("{agent}", "bot").replace("{memory}", "m").replace("{session}", "s")
                status, reply = call(
                    route.method, path.replace("{key}", "k"), {"content": "x", "value": 1, "query": "x"}
                )
                assert status in (404, 422), (route, reply)
    assert call.contents() == ["something to lose"]


def test_an_empty_id_is_no_path(call: Caller) -> None:
    call.remember("something to lose")
    assert call("DELETE", "/api/v1/agents/")[0] == 404
    assert call("DELETE", "memories/")[0] == 404
    assert call.contents() == ["something to lose"]


@pytest.mark.parametrize(
    "name", ["team 7", "naïve-agent", "用户", "a.b", "user@example.com", "a+b&c=d", "x" * 255, "…"]
)
def test_any_reasonable_string_names_an_agent(call: Caller, name: str) -> None:
    from urllib.parse import quote

    there = call.as_(agent=quote(name, safe=""))
    assert there.remember("tea")["agent_id"] == name
    assert call("GET", "/api/v1/agents")[1][0]["name"] == name


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("remember", {}, ["body", "content"]),
        ("remember", {"content": ""}, ["body", "content"]),
        ("remember", {"content": "   "}, ["body", "content"]),
        ("remember", {"content": "a\x00b"}, ["body", "content"]),
        ("remember", {"content": "x" * 100_001}, ["body", "content"]),
        ("remember", {"content": 5}, ["body", "content"]),
        ("remember", {"content": "x", "memory_type": ""}, ["body", "memory_type"]),
        ("remember", {"content": "x", "memory_type": "x" * 51}, ["body", "memory_type"]),
        ("remember", {"content": "x", "session_id": "x" * 256}, ["body", "session_id"]),
        ("remember", {"content": "x", "session_id": "../x"}, ["body", "session_id"]),
        ("remember", {"content": "x", "ttl_days": 0}, ["body", "ttl_days"]),
        ("remember", {"content": "x", "ttl_days": 3651}, ["body", "ttl_days"]),
        ("remember", {"content": "x", "ttl_seconds": 59}, ["body", "ttl_seconds"]),
        ("remember", {"content": "x", "tags": [""]}, ["body", "tags", 0]),
        ("remember", {"content": "x", "metadata": []}, ["body", "metadata"]),
        ("remember", {"content": "x", "metadata": {"kronmem": {"id": "a/b"}}}, ["body", "id"]),
        ("recall", {}, ["body"]),
        ("recall", {"query": "x", "limit": 0}, ["body", "limit"]),
        ("recall", {"query": "x", "top_k": 101}, ["body", "top_k"]),
        ("recall", {"query": "x", "threshold": 1.5}, ["body", "threshold"]),
        ("recall", {"query": "x", "kronmem": {"limit": 101}}, ["body", "kronmem", "limit"]),
        ("memories/batch", {"memories": []}, ["body", "memories"]),
        ("memories/batch", {"memories": [{"content": "x"}, {}]}, ["body", "memories", 1, "content"]),
        ("remember", [1], ["body"]),
    ],
)
def test_bad_input_is_refused_with_its_place_and_not_echoed(call: Caller, path: str, body: Any, where: Any) -> None:
    status, reply = call("POST", path, body)
    assert status == 422
    assert reply["detail"][0]["loc"] == where
    assert set(reply["detail"][0]) == {"type", "loc", "msg"}
    assert call("GET", "/api/v1/agents")[1] == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"content": "a\\ud800b"}',
        b"<html>",
        b"[" * 200_000,
        b'{"content": NaN}',
        b"1" * 10_000,
        b'{"content": "a',
        b"null",
    ],
)
def test_a_body_that_is_no_json_object_is_refused(call: Caller, body: bytes) -> None:
    assert call("POST", "remember", body)[0] == 422
    assert call("PUT", "state/k", body)[0] == 422


OUTSIDE = ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"]
"""Times that have no date in UTC: they lie after the year 9999 and before the year 1."""


@pytest.mark.parametrize("time", OUTSIDE)
def test_a_time_without_a_date_in_utc_is_refused_and_nothing_is_stored(call: Caller, time: str) -> None:
    restored = {"id": "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d", "content": "tea", "created_at": "2026-01-01T00:00:00Z"}
    for path, body in (
        ("remember", {"content": "tea", "metadata": {"kronmem": {"said_at": time}}}),
        ("memories/restore", {"memories": [{**restored, "created_at": time}]}),
        ("memories/restore", {"memories": [{**restored, "expires_at": time}]}),
        ("recall", {"query": "tea", "kronmem": {"until": time}}),
    ):
        assert call("POST", path, body)[0] == 422, body
    assert [call("GET", "memories", query=[(name, time)])[0] for name in ("since", "until")] == [422, 422]
    assert call("GET", "/api/v1/agents")[1] == []


def test_the_first_and_the_last_moment_can_be_stored_and_asked_for(call: Caller) -> None:
    first, last = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"
    times = {"created_at": first, "said_at": first, "expires_at": last}
    kept = {"id": "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d", "content": "tea", **times}
    assert call("POST", "memories/restore", {"memories": [kept]}) == (200, {"restored": 1, "present": 0})
    _, listed = call("GET", "memories", query=[("since", first), ("until", last)])
    assert [memory["expires_at"][:19] for memory in listed["memories"]] == [last[:19]]


def test_unknown_fields_are_ignored(call: Caller) -> None:
    assert call.remember("tea", importance=7, user_id=None)["content"] == "tea"


def test_agents_exist_once_written_to_and_can_be_described(call: Caller) -> None:
    call.remember("tea")
    assert call("POST", "/api/v1/agents", {"name": "bot", "description": "d", "metadata": {"n": 1}})[0] == 201
    status, agent = call("PATCH", "/api/v1/agents/bot", {"metadata": {"n": 2}})
    assert status == 200
    assert agent == {
        "id": "bot",
        "name": "bot",
        "description": "d",
        "metadata": {"n": 2},
        "created_at": "2027-01-15T08:00:00.000000Z",
        "memory_count": 1,
    }
    assert call("GET", "/api/v1/agents/bot") == (200, agent)
    assert call("PATCH", "/api/v1/agents/bot", {"name": "other"})[0] == 422
    for method in ("GET", "PATCH", "DELETE"):
        assert call(method, "/api/v1/agents/nobody", {}) == (404, {"detail": "Agent not found"})


def test_deleting_an_agent_drops_its_memories_and_state_and_nothing_else(call: Caller) -> None:
    other = call.as_(agent="other")
    for one in (call, other):
        one.remember("tea")
        one("PUT", "state/k", {"value": 1})
    assert call("DELETE", "/api/v1/agents/bot") == (204, None)
    assert call.contents() == []
    assert call("GET", "state")[1] == {"keys": []}
    assert other.contents() == ["tea"]
    assert other("GET", "state")[1] == {"keys": ["k"]}
    call.remember("tea")
    assert call.recall("tea") == ["tea"]


def test_owners_do_not_see_each_other(call: Caller) -> None:
    mine, yours = call.as_(owner="me"), call.as_(owner="you")
    memory = mine.remember("tea at five")
    mine("PUT", "state/k", {"value": 1})
    assert yours.recall("tea", threshold=0) == yours.contents() == []
    assert yours("GET", "/api/v1/agents")[1] == []
    assert yours("GET", f"memories/{memory['id']}")[0] == yours("DELETE", f"memories/{memory['id']}")[0] == 404
    assert yours("DELETE", "memories")[1] == {"deleted": 0}
    assert yours("GET", "state/k")[0] == yours("DELETE", "/api/v1/agents/bot")[0] == 404
    assert mine.contents() == ["tea at five"]


def test_memories_are_pinned_and_retyped(call: Caller) -> None:
    memory = call.remember("tea", ttl_days=1)
    status, updated = call("PATCH", f"memories/{memory['id']}", {"pinned": True, "memory_type": "decision"})
    assert (status, updated["pinned"], updated["memory_type"], updated["expires_at"]) == (200, True, "decision", None)
    assert call.recall("tea", memory_type="decision") == ["tea"]
    assert call.recall("tea", memory_type="fact") == []
    assert call("PATCH", "memories/none", {"pinned": True}) == (404, {"detail": "Memory not found"})


def test_clearing_counts_and_keeps_state(call: Caller) -> None:
    for n in range(3):
        call.remember(f"tea {n}", session_id="s" if n else None)
    call("PUT", "state/k", {"value": 1})
    assert call("GET", "sessions")[1] == {"sessions": [{"session_id": "s", "count": 2}]}
    assert call("DELETE", "sessions/s") == (200, {"deleted": 2})
    assert call.recall("tea", threshold=0) == ["tea 0"]
    assert call("DELETE", "memories") == (200, {"deleted": 1})
    assert call("DELETE", "memories") == (200, {"deleted": 0})
    assert call("GET", "state")[1] == {"keys": ["k"]}


def test_lists_are_paged_by_number_or_by_mark(call: Caller) -> None:
    for n in range(25):
        call.remember(f"tea {n}")
    newest_first = [f"tea {n}" for n in reversed(range(25))]
    _, page = call("GET", "memories", query=[("page", "2"), ("per_page", "10")])
    assert [m["content"] for m in page["memories"]] == newest_first[10:20]
    assert (page["total"], page["page"], page["per_page"], page["pages"]) == (25, 2, 10, 3)
    _, last = call("GET", "memories", query=[("page", "1"), ("per_page", "25")])
    assert last["next"] is None
    for sort, order in (("recent", newest_first), ("oldest", newest_first[::-1])):
        assert list(_walk(call, sort)) == order


def _walk(call: Caller, sort: str, *, forget: bool = False) -> Any:
    mark = None
    while True:
        query = [("per_page", "10"), ("sort", sort), *([("after", mark)] if mark else [])]
        _, page = call("GET", "memories", query=query)
        yield from (m["content"] for m in page["memories"])
        for memory in page["memories"] if forget else ():
            call("DELETE", f"memories/{memory['id']}")
        if (mark := page["next"]) is None:
            return


def test_a_list_can_be_walked_while_it_is_forgotten(call: Caller) -> None:
    for n in range(25):
        call.remember(f"tea {n}")
    assert len(list(_walk(call, "recent", forget=True))) == 25
    assert call.contents() == []


def test_a_page_can_begin_after_a_memorys_id(call: Caller) -> None:
    ids = [call.remember(f"tea {n}")["id"] for n in range(3)]
    _, page = call("GET", "memories", query=[("after", ids[1])])
    assert [m["content"] for m in page["memories"]] == ["tea 0"]
    assert call("GET", "memories", query=[("after", "unknown")])[0] == 404
    assert call("GET", "memories", query=[("after", "a/b")])[0] == 422


def test_lists_are_sorted_by_access(call: Caller) -> None:
    for text in ("tea", "bicycle", "piano", "glacier"):
        call.remember(text, session_id=text)
    for _ in range(2):
        call.recall("bicycle")
    call.recall("glacier")
    assert call.contents(sort="access_count") == ["bicycle", "glacier", "piano", "tea"]
    assert [*_walk(call, "access_count")] == ["bicycle", "glacier", "piano", "tea"]


def test_lists_are_filtered(call: Caller) -> None:
    call.remember("100% sure_thing", tags=["a", 'q"uote'], session_id="s")
    call.remember("1000 SURE things", tags=["a"], memory_type="decision")
    call.remember("ÜBER", tags=['a"'])
    assert call.contents(search="0%") == ["100% sure_thing"]
    assert call.contents(search="e_t") == ["100% sure_thing"]
    assert call.contents(search="sure") == ["1000 SURE things", "100% sure_thing"]
    assert call.contents(search="über") == ["ÜBER"]
    assert call.contents(session_id="s") == call.contents(tag='q"uote') == ["100% sure_thing"]
    assert call.contents(memory_type="decision") == ["1000 SURE things"]
    both = [("tag", "a"), ("tag", 'q"uote')]
    assert [m["content"] for m in call("GET", "memories", query=both)[1]["memories"]] == ["100% sure_thing"]
    assert call("GET", "memories", query=both)[1]["total"] == 1


@pytest.mark.parametrize("query", [("page", "0"), ("per_page", "101"), ("sort", "newest"), ("page", "x"), ("tag", "")])
def test_a_bad_query_is_refused(call: Caller, query: tuple[str, str]) -> None:
    status, reply = call("GET", "memories", query=[query])
    assert status == 422
    assert reply["detail"][0]["loc"][:2] == ["query", query[0]]


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -0.0, 1.0, 10**60, 0.1 + 0.2, 1e-320, "", "\x00é😀", [], {}, {"": {"a": [1, [2, [3]]]}},
        [None, False, "x" * 100_000], "null",
    ],
)  # fmt: skip
def test_any_json_value_round_trips_exactly(call: Caller, value: object) -> None:
    status, stored = call("PUT", "state/k", {"value": value})
    assert (status, stored["stored"]) == (200, True)
    status, reply = call("GET", "state/k")
    assert status == 200
    assert json.dumps(reply["value"]) == json.dumps(value)


def test_state_is_replaced_listed_and_deleted(call: Caller) -> None:
    call("PUT", "state/b", {"value": 1})
    call.clock.pass_days(1)
    call("PUT", "state/b", {"value": 2})
    call("PUT", "state/a", {"value": 3})
    assert call("GET", "state")[1] == {"keys": ["a", "b"]}
    assert call("GET", "state/b")[1] == {
        "key": "b",
        "value": 2,
        "created_at": "2027-01-15T08:00:00.000000Z",
        "updated_at": "2027-01-16T08:00:00.000000Z",
    }
    assert call("DELETE", "state/b") == (200, {"deleted": True})
    for method in ("GET", "DELETE"):
        assert call(method, "state/b") == (404, {"detail": "State not found"})
    assert call.contents() == []


@pytest.mark.parametrize("body", [{}, {"value": "x" * (8 * 1024 * 1024)}, b'{"value": 1e999}'])
def test_bad_state_is_refused(call: Caller, body: object) -> None:
    assert call("PUT", "state/k", body)[0] == 422
    assert call("GET", "state")[1] == {"keys": []}


def test_import_and_export(call: Caller) -> None:
    status, reply = call("POST", "memories/bulk-import", {"memories": [{"content": "a"}, {"content": "b"}]})
    assert (status, reply) == (200, {"imported": 2, "failed": 0, "errors": []})
    status, reply = call("GET", "memories/export")
    assert (status, reply["agent_id"], reply["total"]) == (200, "bot", 2)
    assert [m["content"] for m in reply["memories"]] == ["b", "a"]


@pytest.mark.parametrize("tag", ['a"y', 'y"', '"', ", ", "\\", 'a\\"y', "Y", "y z", "ý"])
def test_a_list_by_tag_has_those_of_this_tag_alone(call: Caller, tag: str) -> None:
    call.remember("of both", tags=["x, ", tag, "y"])
    call.remember("of one", tags=["x, ", tag, "z"])
    call.remember("of the other", tags=["x, ", "y", "z"])
    assert call.contents(tag="y") == ["of the other", "of both"]
    assert call.contents(tag=tag) == ["of one", "of both"]
