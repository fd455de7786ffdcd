"""The OpenAPI document, derived from the routes that answer. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, cast

from pydantic import BaseModel, JsonValue, TypeAdapter

from kronmem.api import paths, rules
from kronmem.api.routes import AnyRoute
from kronmem.server.contracts.contract import Contract

Json = dict[str, JsonValue]
_Input = tuple[str, Literal["validation", "serialization"], TypeAdapter[object]]

_REF = "#/components/schemas/{model}"
_ID: Json = {"type": "string", "minLength": 1, "maxLength": rules.MAX_ID, "pattern": rules.ID_PATTERN}
_IDS = frozenset({"session_id", "session", "after", "id", "name", "supersedes", "superseded_by"})
_SCHEMES: Json = {
    "Kronvex": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "BotWire": {"type": "http", "scheme": "basic", "description": "The key is the password."},
    "Memstore": {"type": "http", "scheme": "bearer"},
}
_REFUSALS = {
    "400": "The request cannot be understood",
    "401": "No key, or a wrong one",
    "403": "From a page of another site",
    "404": "No such agent, memory or key",
    "409": "The id was used for another memory",
    "413": "The body is too large",
    "421": "The Host is not served here",
    "422": "The request does not fit",
    "429": "Too many wrong keys from this address",
    "503": "The store cannot be used at the moment",
    "504": "The store was lost while it stored: it may have carried out the request",
}


def document(contracts: Iterable[Contract], version: str) -> Json:
    """The whole document."""
    routes = [(contract, route) for contract in contracts for route in contract.routes]
    schemas = _Schemas([route for _, route in routes])
    paths: dict[str, JsonValue] = {}
    for contract, route in routes:
        operations = cast("Json", paths.setdefault(route.path, {}))
        operations[route.method.lower()] = _operation(contract, route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "kronmem", "version": version, "description": "Durable memory for agents."},
        "paths": paths,
        "components": {"schemas": schemas.all, "securitySchemes": _SCHEMES},
    }


class _Schemas:
    """The schemas of all requests and replies, each under its own name."""

    def __init__(self, routes: list[AnyRoute]) -> None:
        # Each once and in the order of the table, so that two documents of one version are the same text.
        requests = list(dict.fromkeys(route.request for route in routes))
        replies = list(dict.fromkeys(route.reply for route in routes))
        inputs: list[_Input] = [(str(model), "validation", TypeAdapter(model)) for model in requests]
        inputs.extend((str(reply), "serialization", TypeAdapter(reply)) for reply in replies)
        self._refs, schemas = TypeAdapter.json_schemas(inputs, ref_template=_REF)
        self.all = cast("Json", schemas.get("$defs", {}))
        for model in requests:
            self._tighten(self._schema(model))
            if {"query", "message"} <= model.model_fields.keys():
                self._schema(model)["anyOf"] = [_given("query"), _given("message")]
        for route in routes:
            if route.method == "PATCH":  # an agent's name is its id: it may be repeated, but not changed
                self.fields(route.request)[0].pop("name", None)

    def _tighten(self, schema: Json) -> None:
        """Add the rules that the models check in Python: which texts are ids, and that none is blank or holds a NUL."""
        for name, field in cast("dict[str, Json]", schema.get("properties", {})).items():
            for part in _parts(field):
                if "$ref" in part:
                    self._tighten(cast("Json", self.all[_named(part)]))
                elif part.get("type") == "string" and not {"enum", "pattern"} & part.keys():
                    part.update(_ID if name in _IDS else {"pattern": rules.TEXT_PATTERN})

    def request(self, route: AnyRoute) -> Json:
        return cast("Json", self._refs[str(route.request), "validation"])

    def reply(self, route: AnyRoute) -> Json:
        return cast("Json", self._refs[str(route.reply), "serialization"])

    def _schema(self, model: type[BaseModel]) -> Json:
        return cast("Json", self.all[model.__name__])

    def fields(self, model: type[BaseModel]) -> tuple[Json, list[str]]:
        """The fields of a model, and which of them are required."""
        schema = self._schema(model)
        return cast("Json", schema.get("properties", {})), cast("list[str]", schema.get("required", []))


def _given(name: str) -> Json:
    return {"required": [name], "properties": {name: {"type": "string"}}}


def _parts(schema: Json) -> Iterator[Json]:
    """The schema itself, its choices and its items."""
    yield schema
    for inner in [*cast("list[Json]", schema.get("anyOf", [])), schema.get("items")]:
        if isinstance(inner, dict):
            yield from _parts(inner)


def _named(reference: Json) -> str:
    return cast("str", reference["$ref"]).rsplit("/", 1)[1]


def _operation(contract: Contract, route: AnyRoute, schemas: _Schemas) -> Json:
    operation: Json = {
        "operationId": _name(route),
        "tags": [contract.name],
        "summary": (route.request.__doc__ or "").split("\n")[0],
        "parameters": [*_path_parameters(contract, route), *_query_parameters(route, schemas)],
        "responses": _responses(route, schemas),
        "security": [] if route.path == paths.HEALTH else [{}, {contract.name: []}],
    }
    if route.has_body:
        operation["requestBody"] = {"required": not route.body_optional, "content": _json(schemas.request(route))}
    return operation


def _name(route: AnyRoute) -> str:
    return "_".join([route.method.lower(), *re.findall(r"[A-Za-z0-9]+", route.path)])


def _path_parameters(contract: Contract, route: AnyRoute) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _id(contract, name)}
        for name in re.findall(r"{(\w+)}", route.path)
    ]


def _id(contract: Contract, name: str) -> Json:
    narrow = contract.patterns.get(name)
    return {"type": "string", "pattern": narrow} if narrow else _ID


def _query_parameters(route: AnyRoute, schemas: _Schemas) -> list[Json]:
    if route.method != "GET":
        return []
    properties, required = schemas.fields(route.request)
    return [
        {"name": name, "in": "query", "required": name in required, "schema": schema}
        for name, schema in properties.items()
    ]


def _responses(route: AnyRoute, schemas: _Schemas) -> Json:
    done: Json = {"description": "Done"}
    if route.status != 204:
        done["content"] = _json(schemas.reply(route))
    refused: Json = {status: {"description": words, "content": _json({})} for status, words in _REFUSALS.items()}
    return {str(route.status): done, **refused}


def _json(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}
