"""The OpenAPI document, made of the same tables that answer. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, cast

from pydantic import BaseModel, JsonValue
from pydantic.json_schema import models_json_schema

from kronmem.server.contracts.contract import Contract, Row
from kronmem.server.replies import REPLIES

Json = dict[str, JsonValue]
_Used = tuple[type[BaseModel], Literal["validation", "serialization"]]

_REF = "#/components/schemas/{model}"
_OUT = r"\x00-\x1f\x7f-\x9f/\\?#%"
_ID: Json = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": rf"^(?!\.{{1,2}}$)[^\s{_OUT}]([^{_OUT}]*[^\s{_OUT}])?$",
}
_IDS = frozenset({"session_id", "session", "after", "id", "name"})
_NARROW: dict[str, str] = {
    "BotWire namespace": "^[A-Za-z0-9_-]{1,64}$",
    "BotWire key": r"^(?!\.{1,2}$)[A-Za-z0-9_.-]{1,128}$",
}
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
    "503": "The store cannot be used at the moment",
}


def document(contracts: Iterable[Contract], version: str) -> Json:
    """The whole document."""
    rows = [(contract, row) for contract in contracts for row in contract.rows]
    schemas = _Schemas([row for _, row in rows])
    paths: dict[str, JsonValue] = {}
    for contract, row in rows:
        operations = cast("Json", paths.setdefault(row.path, {}))
        operations[row.method.lower()] = _operation(contract, row, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "kronmem", "version": version, "description": "Durable memory for agents."},
        "paths": paths,
        "components": {"schemas": schemas.all, "securitySchemes": _SCHEMES},
    }


class _Schemas:
    """The schemas of all models, each under a name of its own."""

    def __init__(self, rows: list[Row]) -> None:
        models: list[_Used] = [(row.reads, "validation") for row in rows]
        models.extend((model, "serialization") for model in REPLIES.values())
        self._refs, found = models_json_schema(models, ref_template=_REF)
        self.all = cast("Json", found.get("$defs", {}))
        for row in rows:
            self._tighten(row.reads)
            if row.method == "PATCH":  # an agent's name is its id: it may be repeated, but not changed
                self.fields(row.reads)[0].pop("name", None)
            if {"query", "message"} <= row.reads.model_fields.keys():
                self._schema(row.reads)["anyOf"] = [_given("query"), _given("message")]

    def _tighten(self, model: type[BaseModel]) -> None:
        """Say what the models check in Python: which texts are ids, and that none is blank or holds a NUL."""
        for name, schema in self.fields(model)[0].items():
            for one in _strings(cast("Json", schema)):
                one.update(_ID if name in _IDS else {"pattern": r"^[^\x00]*[^\s\x00][^\x00]*$"})

    def read(self, model: type[BaseModel]) -> Json:
        return cast("Json", self._refs[model, "validation"])

    def given(self, model: type[BaseModel]) -> Json:
        return cast("Json", self._refs[model, "serialization"])

    def _schema(self, model: type[BaseModel]) -> Json:
        return cast("Json", self.all[cast("str", self.read(model)["$ref"]).rsplit("/", 1)[1]])

    def fields(self, model: type[BaseModel]) -> tuple[Json, list[str]]:
        """The fields of a model, and which of them are required."""
        schema = self._schema(model)
        return cast("Json", schema.get("properties", {})), cast("list[str]", schema.get("required", []))


def _given(name: str) -> Json:
    return {"required": [name], "properties": {name: {"type": "string"}}}


def _strings(schema: Json) -> Iterator[Json]:
    """The schemas for text within a schema, as it is, as a choice or as an item."""
    if schema.get("type") == "string" and "enum" not in schema and "pattern" not in schema:
        yield schema
    for inner in [*cast("list[Json]", schema.get("anyOf", [])), schema.get("items")]:
        if isinstance(inner, dict):
            yield from _strings(inner)


def _operation(contract: Contract, row: Row, schemas: _Schemas) -> Json:
    found: Json = {
        "operationId": _name(row),
        "tags": [contract.name],
        "summary": _summary(row),
        "parameters": [*_path_parameters(contract, row), *_query_parameters(row, schemas)],
        "responses": _responses(row, schemas),
        "security": [] if row.path == "/health" else [{}, {contract.name: []}],
    }
    if row.method != "GET" and row.reads.model_fields:
        found["requestBody"] = {"required": True, "content": _json(schemas.read(row.reads))}
    return found


def _name(row: Row) -> str:
    return "_".join([row.method.lower(), *re.findall(r"[A-Za-z0-9]+", row.path)])


def _summary(row: Row) -> str:
    return (row.reads.__doc__ or "").split("\n")[0]


def _path_parameters(contract: Contract, row: Row) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _id(contract.name, name)}
        for name in re.findall(r"{(\w+)}", row.path)
    ]


def _id(contract: str, name: str) -> Json:
    narrow = _NARROW.get(f"{contract} {name}")
    return {"type": "string", "pattern": narrow} if narrow else _ID


def _query_parameters(row: Row, schemas: _Schemas) -> list[Json]:
    if row.method != "GET":
        return []
    properties, required = schemas.fields(row.reads)
    return [
        {"name": name, "in": "query", "required": name in required, "schema": schema}
        for name, schema in properties.items()
    ]


def _responses(row: Row, schemas: _Schemas) -> Json:
    model = REPLIES.get((row.method, row.path))
    done: Json = {"description": "Done"}
    if row.status != 204:
        done["content"] = _json(schemas.given(model) if model else {})
    refused: Json = {status: {"description": words, "content": _json({})} for status, words in _REFUSALS.items()}
    return {str(row.status): done, **refused}


def _json(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}
