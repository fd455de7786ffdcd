"""Fault 20 over HTTP: whatever two owners do, neither reads or changes what is the other's."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.server.conftest import ADA, BARE, BOB, OWNERS
from tests.services.kronmem import ServedKronmem

KEYS = st.sampled_from([ADA, BOB, BARE])
AGENTS = st.sampled_from(["one", "two", "memstore"])
TOPICS = st.sampled_from(["tea", "trains", "taxes"])


class Owners(RuleBasedStateMachine):
    """Three keys at one server; every text says whose it is."""

    http: httpx.Client

    @initialize()
    def begin(self) -> None:
        self.ids: list[str] = ["00000000-0000-4000-8000-000000000000"]
        self.kept: dict[tuple[str, str], dict[str, str]] = {}
        for key in (ADA, BOB, BARE):
            for agent in ("one", "two", "memstore"):
                self.ask(key, "DELETE", f"/api/v1/agents/{agent}", ok=(204, 404))

    def ask(
        self, key: str, method: str, path: str, ok: tuple[int, ...] = (200, 201, 204), **body: object
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key}"} if path.startswith("/v1/") else {"X-API-Key": key}
        reply = self.http.request(method, path, headers=headers, json=body or None)
        assert reply.status_code in ok, reply.text
        return reply

    @rule(key=KEYS, agent=AGENTS, topic=TOPICS)
    def remember(self, key: str, agent: str, topic: str) -> None:
        text = f"{key} likes {topic}"
        path = "/v1/memory/remember" if agent == "memstore" else f"/api/v1/agents/{agent}/remember"
        memory = self.ask(key, "POST", path, content=text).json()
        self.ids.append(memory["id"])
        self.kept.setdefault((key, agent), {})[memory["id"]] = text

    @rule(key=KEYS, agent=AGENTS, topic=TOPICS)
    def recall(self, key: str, agent: str, topic: str) -> None:
        found = self.ask(key, "POST", f"/api/v1/agents/{agent}/recall", query=topic, threshold=0, limit=20).json()
        own = self.kept.get((key, agent), {})
        assert {hit["memory"]["id"] for hit in found["results"]} <= set(own)
        context = self.ask(key, "POST", f"/api/v1/agents/{agent}/inject-context", message=topic).text
        assert not any(other in context for other in {ADA, BOB, BARE} - {key})

    @rule(key=KEYS, agent=AGENTS, data=st.data())
    def forget(self, key: str, agent: str, data: st.DataObject) -> None:
        memory = data.draw(st.sampled_from(self.ids))
        mine = self.kept.get((key, agent), {}).pop(memory, None)
        self.ask(key, "DELETE", f"/api/v1/agents/{agent}/memories/{memory}", ok=(204,) if mine else (404,))

    @rule(key=KEYS, agent=AGENTS, data=st.data())
    def pin(self, key: str, agent: str, data: st.DataObject) -> None:
        memory = data.draw(st.sampled_from(self.ids))
        mine = memory in self.kept.get((key, agent), {})
        path = f"/api/v1/agents/{agent}/memories/{memory}"
        self.ask(key, "PATCH", path, ok=(200,) if mine else (404,), pinned=True)
        self.ask(key, "GET", path, ok=(200,) if mine else (404,))

    @rule(key=KEYS, agent=AGENTS)
    def clear(self, key: str, agent: str) -> None:
        gone = self.ask(key, "DELETE", f"/api/v1/agents/{agent}/memories").json()
        assert gone == {"deleted": len(self.kept.pop((key, agent), {}))}

    @rule(key=KEYS, agent=AGENTS, word=TOPICS)
    def write_state(self, key: str, agent: str, word: str) -> None:
        self.ask(key, "PUT", f"/memory/{agent}/{word}", value=key)

    @rule(key=KEYS, agent=AGENTS, word=TOPICS)
    def read_state(self, key: str, agent: str, word: str) -> None:
        reply = self.ask(key, "GET", f"/memory/{agent}/{word}", ok=(200, 404))
        assert reply.status_code == 404 or reply.json()["value"] == key

    @invariant()
    def everybody_has_exactly_their_own(self) -> None:
        for key in (ADA, BOB, BARE):
            for agent in ("one", "two", "memstore"):
                listed = self.ask(key, "GET", f"/api/v1/agents/{agent}/memories?per_page=100").json()["memories"]
                own = self.kept.get((key, agent), {}) if hasattr(self, "kept") else {}
                assert {memory["id"]: memory["content"] for memory in listed} == own


@pytest.mark.parametrize("examples", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_no_owner_ever_sees_or_changes_what_is_anothers(http: httpx.Client, examples: int) -> None:
    keep_apart(http, examples)


def test_nor_on_postgresql(postgres: str) -> None:
    with ServedKronmem(postgres, key=BARE, owners=OWNERS) as service:
        with httpx.Client(base_url=service.url, trust_env=False, timeout=30) as client:
            keep_apart(client, 30)


def keep_apart(http: httpx.Client, examples: int) -> None:
    machine = type("Served", (Owners,), {"http": http})
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=12, deadline=None, suppress_health_check=quiet, database=None
        ),
    )
