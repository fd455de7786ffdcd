"""The document says what the tables do."""

from __future__ import annotations

import httpx

from kronmem.server.app import CONTRACTS


def test_every_row_of_every_table_is_in_the_document_once(open_http: httpx.Client) -> None:
    document = open_http.get("/openapi.json").json()
    said = {(method.upper(), path) for path, operations in document["paths"].items() for method in operations}
    rows = [(route.method, route.path) for contract in CONTRACTS for route in contract.routes]
    assert said == set(rows)
    assert len(rows) == len(said)
    assert document["openapi"] == "3.1.0"
    names = [operation["operationId"] for operations in document["paths"].values() for operation in operations.values()]
    assert len(names) == len(set(names))


def test_fields_are_those_of_the_models(open_http: httpx.Client) -> None:
    document = open_http.get("/openapi.json").json()
    listing = document["paths"]["/api/v1/agents/{agent}/memories"]["get"]
    assert {"page", "per_page", "session_id", "tag", "after"} <= {one["name"] for one in listing["parameters"]}
    body = document["paths"]["/api/v1/agents/{agent}/remember"]["post"]["requestBody"]
    name = body["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
    assert document["components"]["schemas"][name]["required"] == ["content"]
