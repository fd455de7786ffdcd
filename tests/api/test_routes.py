"""The table is the API: every route has a handler and a reply, and the service answers exactly the declared fields."""

from __future__ import annotations

import re
from types import NoneType
from typing import Any

import pytest
from typing_extensions import is_typeddict

from kronmem.api import paths, replies, routes, rules
from kronmem.api.routes import ROUTES, AnyRoute, Router
from kronmem.engine.handlers import HANDLERS
from kronmem.server.app import CONTRACTS
from kronmem.server.openapi import document
from tests.api.declared import check_reply
from tests.engine.calling import calling

MEMORY = "0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d"
TEA = {"content": "Ada drinks green tea", "session_id": "s", "metadata": {"kronmem": {"id": MEMORY, "tags": ["drink"]}}}
BODIES: dict[AnyRoute, Any] = {
    routes.CREATE_AGENT: {"name": "bot"},
    routes.UPDATE_AGENT: {"description": "d"},
    routes.REMEMBER: TEA,
    routes.RECALL: {"query": "green tea"},
    routes.INJECT_CONTEXT: {"query": "green tea"},
    routes.BATCH: {"memories": [{"content": "one"}, {"content": "two", "ttl_days": 1}]},
    routes.BULK_IMPORT: {"memories": [{"content": "three"}]},
    routes.UPDATE_MEMORY: {"pinned": True},
    routes.SET_STATE: {"value": {"any": ["json"]}},
    routes.RESTORE: {"memories": [{"id": f"1{MEMORY[1:]}", "content": "four", "created_at": "2026-11-16T12:00:00Z"}]},
    routes.UPSERT: {"content": "five", "key": "number"},
    routes.UPDATE: {"content": "Ada drinks black tea"},
    routes.CLEAR_SOME: {"before": "2001-01-01T00:00:00Z"},
    routes.ERASE: {"wait": 1.5},
}
IDS = {"agent": "bot", "memory": MEMORY, "session": "nobody", "key": "k"}
# Whatever a later request reads is written first, and the agent goes last; what is left of it is erased then.
ORDER = ["POST", "PUT", "PATCH", "GET", "DELETE"]


def in_order() -> list[AnyRoute]:
    def key(route: AnyRoute) -> tuple[bool, int, bool, int]:
        last = route is routes.ERASE
        return last, ORDER.index(route.method), route is not routes.REMEMBER, -ROUTES.index(route)

    return sorted(ROUTES, key=key)


def test_every_route_has_one_handler() -> None:
    assert set(HANDLERS) == set(ROUTES)
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)
    assert {route.path for route in ROUTES} == {
        path for name, path in vars(paths).items() if name.isupper() and not name.startswith("BOTWIRE")
    }


def test_every_route_that_takes_json_is_tried_here() -> None:
    assert {route for route in ROUTES if route.has_body} == set(BODIES)


def test_the_service_answers_exactly_the_declared_fields() -> None:
    seen: set[str] = set()
    with calling() as call:
        for route in in_order():
            status, reply = call(route.method, paths.fill(route.path, **IDS), BODIES.get(route))
            assert status == route.status, (route.method, route.path, reply)
            assert (reply is None) == (route.reply is NoneType) == (route.status == 204)
            seen |= check_reply(route.reply, reply, f"{route.method} {route.path}")
        assert call("GET", paths.AGENTS)[1] == []
    declared = {name: kind for name, kind in vars(replies).items() if is_typeddict(kind)}
    parts = {base.__name__ for kind in declared.values() for base in getattr(kind, "__orig_bases__", ())}
    assert declared.keys() - parts <= seen <= declared.keys()


def test_our_own_client_is_not_sent_every_hit_twice() -> None:
    with calling() as call:
        call.remember("Ada drinks green tea")
        _, reply = call("POST", "recall", {"query": "tea", "kronmem": {"limit": 5}})
    assert len(reply["results"]) == 1
    assert "memories" not in reply


def test_every_route_of_every_contract_declares_its_reply_in_the_document() -> None:
    operations: Any = document(CONTRACTS, "0")["paths"]
    for route in (route for contract in CONTRACTS for route in contract.routes):
        done = operations[route.path][route.method.lower()]["responses"][str(route.status)]
        if route.status == 204:
            assert "content" not in done
        else:
            schema = done["content"]["application/json"]["schema"]
            assert "$ref" in schema or "$ref" in schema["items"], (route.method, route.path)


def test_the_rules_for_text_hold_inside_nested_objects_too() -> None:
    schemas: Any = document(CONTRACTS, "0")["components"]
    nested = schemas["schemas"]["ReservedSearch"]["properties"]
    assert nested["memory_type"]["anyOf"][0]["pattern"] == rules.TEXT_PATTERN
    assert nested["tags"]["anyOf"][0]["items"]["pattern"] == rules.TEXT_PATTERN
    assert schemas["schemas"]["RememberRequest"]["properties"]["session_id"]["anyOf"][0]["pattern"] == rules.ID_PATTERN


def test_schemas_are_named_as_their_classes_so_that_no_two_share_a_name() -> None:
    schemas: Any = document(CONTRACTS, "0")["components"]
    declared = {kind for contract in CONTRACTS for route in contract.routes for kind in (route.request, route.reply)}
    named = {kind.__name__ for kind in declared if getattr(kind, "__origin__", None) is None} - {"NoneType"}
    assert named <= schemas["schemas"].keys()
    assert not [name for name in schemas["schemas"] if re.search(r"__|-Input|-Output", name)]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_route_is_found_by_its_path_as_sent(route: AnyRoute) -> None:
    match = Router(ROUTES).find(route.method, paths.fill(route.path, **{name: f"%20{name}" for name in IDS}))
    assert match is not None
    assert match.route is route
    assert match.segments == {name: f"%20{name}" for name in re.findall(r"{(\w+)}", route.path)}


@pytest.mark.parametrize(
    "path",
    ["", "/", "//", "/health/", "//health", "/api/v1/agents/", "/api/v1/agents//recall", "/api/v1/%61gents", "/api/v1/agents/a%2Frecall",
     "/api/v1/agents/a%2frecall", "/api/v1/agents/a/memories/", "/API/v1/agents", "api/v1/agents"],
)  # fmt: skip
def test_nothing_is_found_at_another_spelling_of_a_path(path: str) -> None:
    router = Router(ROUTES)
    assert [router.find(method, path) for method in ORDER] == [None] * len(ORDER)
    assert [router.allowed(method, path) for method in ORDER] == [[]] * len(ORDER)


def test_fixed_words_stand_before_ids() -> None:
    router = Router(ROUTES)
    found = router.find("GET", "/api/v1/agents/a/memories/export")
    assert found is not None
    assert found.route is routes.EXPORT
    other = router.find("DELETE", "/api/v1/agents/a/memories/export")
    assert other is not None
    assert other.route is routes.FORGET
    assert router.allowed("PUT", "/api/v1/agents/a/memories") == ["GET", "DELETE"]
    assert router.allowed("PUT", "/api/v1/agents/a/memories/export") == ["GET"]
