"""State: any JSON value comes back exactly, wherever it lives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kronmem import Client, ConfigError, InvalidInputError
from tests.services import KronvexServer
from tests.services.botwire import BotWireServer
from tests.services.kronmem import ServedKronmem
from tests.shells import shell

VALUES: list[Any] = [
    True,
    0,
    -7,
    2**100,
    0.1,
    1e300,
    -0.0,
    "",
    'naïve 日本 🍵 " \\ \n',
    "true",
    "kronmem-parts:00000000:1",
    [],
    [1, [2, [3, [None]]]],
    {},
    {"a": {"b": [1.5, "x", False]}, "ü": None},
]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@pytest.fixture(params=["embedded", "a file beside Kronvex", "BotWire beside Kronvex"])
def client(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> Iterator[Any]:
    if request.param == "embedded":
        with shell(kind, "sqlite://") as client:
            yield client
        return
    with KronvexServer() as kronvex, BotWireServer() as botwire:
        beside = botwire.url if "BotWire" in request.param else f"sqlite:///{tmp_path / 'state.db'}"
        with shell(kind, kronvex.url, api_key=kronvex.key, state_url=beside) as client:
            yield client
        assert not any("state" in one.path for one in kronvex.requests)


def test_any_json_value_comes_back_exactly(client: Any) -> None:
    state = client.state("alice")
    for number, value in enumerate(VALUES):
        state.set(f"key{number}", value)
    for number, value in enumerate(VALUES):
        found = state.get(f"key{number}", "missing")
        assert (repr(found), type(found)) == (repr(value), type(value))
    assert state.keys() == sorted(f"key{number}" for number in range(len(VALUES)))


def test_a_value_is_replaced_deleted_and_missed(client: Any) -> None:
    state = client.state("alice")
    assert state.get("k") is None
    assert state.get("k", 3) == 3
    state.set("k", 1)
    state.set("k", {"two": 2})
    assert state.get("k") == {"two": 2}
    assert state.delete("k") is None
    assert state.delete("k") is None
    assert state.get("k", "gone") == "gone"
    assert state.keys() == []


def test_setting_none_deletes_the_key(client: Any) -> None:
    state = client.state("ada")
    state.set("k", {"a": None})
    assert state.set("k", None) is None
    assert state.get("k", "nothing") == "nothing"
    assert state.keys() == []
    assert state.set("k", None) is None


def test_agents_do_not_share_state_and_memories_are_apart(client: Any) -> None:
    client.state("alice").set("k", "a")
    client.state("bob").set("k", "b")
    client.state("équipe:ü").set("k", "e")
    assert [client.state(name).get("k") for name in ("alice", "bob", "équipe:ü")] == ["a", "b", "e"]
    client.remember("alice", "alpha bravo")
    client.clear("alice")
    assert client.agent("alice").state().get("k") == "a"


def test_odd_keys_and_long_values_work(client: Any) -> None:
    state = client.state("alice")
    long = {"messages": ["wörd " * 20_000] * 4}
    for key in ("chat:42", "naïve key", "k64-x", "a.part-00000000-1", "x" * 60):
        state.set(key, key)
    state.set("long", long)
    assert state.get("long") == long
    state.set("long", [long, long])
    assert state.get("long") == [long, long]
    assert state.keys() == sorted(["chat:42", "naïve key", "k64-x", "a.part-00000000-1", "x" * 60, "long"])
    state.set("long", "short again")
    assert state.get("long") == "short again"
    state.delete("long")
    assert state.get("long", "gone") == "gone"


def test_parts_of_a_long_value_leave_nothing_behind() -> None:
    with BotWireServer() as server, Client(server.url, outbox=False) as client:
        state = client.state("alice")
        for size in (300_000, 500_000, 10):
            state.set("k", "x" * size)
            assert state.get("k") == "x" * size
        assert len(server.rows) == 1
        state.set("k", "y" * 250_000)
        state.delete("k")
        assert server.rows == {}


@pytest.mark.parametrize(
    "bad", [float("nan"), object(), {1: "x"}, "\ud800", "a\0b", b"bytes", {"x": {1, 2}}, "x" * 9_000_000]
)
def test_what_json_cannot_carry_is_refused(client: Any, bad: Any) -> None:
    with pytest.raises(InvalidInputError):
        client.state("alice").set("k", bad)


@pytest.mark.parametrize("bad", ["", "..", "a/b", "a?b", "%2e", "a\nb", "x" * 300])
def test_a_bad_key_is_refused(client: Any, bad: str) -> None:
    for ask in (lambda s: s.get(bad), lambda s: s.set(bad, 1), lambda s: s.delete(bad)):
        with pytest.raises(InvalidInputError):
            ask(client.state("alice"))
    with pytest.raises(InvalidInputError):
        client.state("../x")


def test_a_service_without_state_says_where_it_could_live(kind: str) -> None:
    with KronvexServer() as server, shell(kind, server.url, api_key=server.key) as client:
        with pytest.raises(ConfigError, match="state_url"):
            client.state("alice").set("k", 1)
        with pytest.raises(ConfigError, match="state_url"):
            client.state("alice").get("k")
    with shell(kind, "https://api.kronvex.io", api_key="kv-x") as client, pytest.raises(ConfigError, match="state_url"):
        client.state("alice")


@pytest.mark.slow
def test_state_is_kept_by_a_served_engine_too(kind: str, tmp_path: Path) -> None:
    with ServedKronmem(tmp_path / "m.db", key="kv-1") as server:
        with shell(kind, server.url, api_key="kv-1") as client:
            client.state("alice").set("k", VALUES)
            assert repr(client.state("alice").get("k")) == repr(VALUES)
        with Client.local(tmp_path / "m.db") as local:
            assert local.state("alice").keys() == ["k"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=JSON)
def test_every_json_value_comes_back_exactly(value: Any) -> None:
    with Client("sqlite://") as client:
        client.state("alice").set("k", value)
        assert repr(client.state("alice").get("k")) == repr(value)
