"""The translated contracts answer exactly the fields that they declare."""

from __future__ import annotations

from typing import Any

import anyio
import httpx
import pytest

from kronmem.api.paths import fill
from kronmem.api.routes import AnyRoute
from kronmem.server.app import create_app
from kronmem.server.contracts.botwire import BOTWIRE
from kronmem.server.contracts.contract import Contract
from kronmem.server.contracts.memstore import MEMSTORE
from kronmem.transport.local import sqlite_service
from tests.api.declared import check_reply

# Each contract's writes first, its deletes last; the second write expires.
ORDER = ["POST", "PUT", "GET", "DELETE"]
BODIES: dict[str, list[Any]] = {
    "POST": [{"content": "Ada drinks green tea", "tags": ["drink"]}, {"content": "Bob drinks milk", "ttl": 600}],
    "PUT": [{"value": "tea"}],
}
QUERY = {"/v1/memory/recall": {"q": "green tea"}}


async def answers(contract: Contract) -> list[tuple[AnyRoute, httpx.Response]]:
    service = sqlite_service(":memory:")
    found: list[tuple[AnyRoute, httpx.Response]] = []
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(create_app(service)), base_url="http://127.0.0.1"
    ) as client:
        for route in sorted(contract.routes, key=lambda one: ORDER.index(one.method)):
            path = fill(route.path, namespace="ns", key="k", memory="m")
            for body in BODIES.get(route.method, [None]):
                found.append((route, await client.request(route.method, path, json=body, params=QUERY.get(route.path))))
    service.close()
    return found


@pytest.mark.parametrize(("contract", "names"), [(BOTWIRE, "Botwire"), (MEMSTORE, "Memstore")])
def test_a_translated_contract_answers_exactly_the_declared_fields(contract: Contract, names: str) -> None:
    seen: set[str] = set()
    for route, reply in anyio.run(answers, contract):
        assert reply.status_code == route.status, (route, reply.text)
        seen |= check_reply(route.reply, reply.json(), f"{route.method} {route.path}")
    module = vars(__import__(f"kronmem.server.contracts.{names.lower()}", fromlist=["*"]))
    assert seen == {name for name in module if name.startswith(names) and name.endswith("Reply")}
