"""The contract: what every shell answers at every service."""

from __future__ import annotations

from typing import Any

import pytest

from kronmem import ConfigError, InvalidInputError, Memory, NotFoundError

AGENT = "autogen-assistant-user123"


def test_what_was_remembered_is_recalled(client: Any) -> None:
    stored = client.remember(AGENT, "User prefers concise answers", "preference")
    (hit,) = client.recall(AGENT, "User prefers concise answers")
    assert hit.content == stored.content == "User prefers concise answers"
    assert (hit.memory.id, hit.memory.agent_id, hit.memory.memory_type) == (stored.id, AGENT, "preference")
    assert 0.5 <= hit.similarity <= 1.0


def test_the_tutorials_call_shapes_work(client: Any) -> None:
    client.remember(AGENT, "We decided to use PostgreSQL", "decision")
    assert client.recall(AGENT, "We decided to use PostgreSQL", 5)[0].memory.memory_type == "decision"
    assert isinstance(client.inject_context(AGENT), str)


@pytest.mark.parametrize("name", ["decision", "temporary", "interaction", "episodic", "recipe", "fact", "procedural"])
def test_every_type_comes_back_under_its_own_name(client: Any, name: str) -> None:
    assert client.remember(AGENT, "alpha bravo charlie", name).memory_type == name
    assert client.recall(AGENT, "alpha bravo charlie")[0].memory.memory_type == name
    assert [memory.memory_type for memory in client.memories(AGENT)] == [name]


def test_types_tags_and_sessions_filter(client: Any) -> None:
    client.remember(AGENT, "alpha bravo one", "decision", tags=["red", "blue"], session_id="s1")
    client.remember(AGENT, "alpha bravo two", "fact", tags=["red"], session_id="s2")
    client.remember(AGENT, "alpha bravo three", "decision")

    def found(**scope: Any) -> set[str]:
        return {hit.content.split()[-1] for hit in client.recall(AGENT, "alpha bravo", **scope)}

    assert found() == {"one", "two", "three"}
    assert found(memory_type="decision") == {"one", "three"}
    assert found(memory_type="fact") == {"two"}
    assert found(tags=["red"]) == {"one", "two"}
    assert found(tags=["red", "blue"]) == {"one"}
    assert found(session_id="s2") == {"two"}
    assert found(session_id="s1", memory_type="fact") == set()
    listed = {memory.content.split()[-1] for memory in client.memories(AGENT, tags=["red"], session_id="s1")}
    assert listed == {"one"}


def test_metadata_comes_back_as_it_was_given(client: Any) -> None:
    given = {"k": "v", "nested": {"a": [1, None, True, 1.5]}, "ü": "日本語 🍵"}
    kept = {**given}
    assert client.remember(AGENT, "alpha bravo charlie", metadata=given).metadata == given
    assert given == kept
    assert client.recall(AGENT, "alpha bravo charlie")[0].memory.metadata == given


def test_identical_text_is_one_memory(client: Any) -> None:
    first = client.remember(AGENT, "alpha bravo charlie")
    again = client.remember(AGENT, "alpha bravo charlie")
    assert (first.deduplicated, again.deduplicated, again.id) == (False, True, first.id)
    assert len(client.memories(AGENT)) == 1


def test_a_lifetime_sets_the_expiry_and_a_pin_beats_it(client: Any) -> None:
    day = client.remember(AGENT, "alpha bravo", ttl_days=1)
    minute = client.remember(AGENT, "charlie delta", ttl_days=1, ttl_seconds=60)
    pinned = client.remember(AGENT, "echo foxtrot", ttl_days=1, pinned=True)
    assert round((day.expires_at - day.created_at).total_seconds()) == 86_400
    assert round((minute.expires_at - minute.created_at).total_seconds()) == 60
    assert (pinned.pinned, pinned.expires_at) == (True, None)


def test_reading_an_unknown_agent_is_empty_and_creates_nothing(client: Any) -> None:
    assert client.recall("nobody", "anything at all") == []
    assert client.memories("nobody") == []
    assert client.sessions("nobody") == []
    assert client.inject_context("nobody") == ""
    assert client.clear("nobody") == 0
    assert client.agents() == []


def test_writing_makes_the_agent_known_under_its_name(client: Any) -> None:
    client.remember("alice", "alpha bravo")
    client.remember("bob", "charlie delta")
    client.remember("alice", "echo foxtrot")
    assert sorted((agent.name, agent.memory_count) for agent in client.agents()) == [("alice", 2), ("bob", 1)]


def test_an_agent_sees_only_its_own_memories(client: Any) -> None:
    client.remember("alice", "alpha bravo charlie")
    stored = client.remember("bob", "alpha bravo delta")
    assert [hit.content for hit in client.recall("alice", "alpha bravo")] == ["alpha bravo charlie"]
    with pytest.raises(NotFoundError):
        client.forget("alice", stored.id)
    assert client.clear("alice") == 1
    assert [memory.content for memory in client.memories("bob")] == ["alpha bravo delta"]


def test_many_are_remembered_in_order(client: Any) -> None:
    texts = [f"note number {word}" for word in ("alpha", "bravo", "charlie", "delta")]
    stored = client.remember_many(AGENT, texts, "decision", tags=["bulk"])
    assert [memory.content for memory in stored] == texts
    assert {memory.memory_type for memory in stored} == {"decision"}
    assert {memory.content for memory in client.memories(AGENT, tags=["bulk"])} == set(texts)


def test_a_listing_pages_by_itself_and_survives_deletion_meanwhile(client: Any) -> None:
    words = [f"w{number}a w{number}b w{number}c" for number in range(230)]
    client.remember_many(AGENT, words)
    assert sorted(memory.content for memory in client.memories(AGENT)) == sorted(words)
    assert len({memory.id for memory in client.memories(AGENT)}) == 230


def test_forgetting_removes_one_and_a_second_time_is_an_error(client: Any) -> None:
    stored = client.remember(AGENT, "alpha bravo")
    client.remember(AGENT, "charlie delta")
    assert client.forget(AGENT, stored.id) is None
    assert [memory.content for memory in client.memories(AGENT)] == ["charlie delta"]
    with pytest.raises(NotFoundError):
        client.forget(AGENT, stored.id)
    with pytest.raises(NotFoundError):
        client.forget("nobody", stored.id)


def test_clearing_a_session_leaves_the_others(client: Any) -> None:
    client.remember(AGENT, "alpha bravo", session_id="s1")
    client.remember(AGENT, "charlie delta", session_id="s1")
    client.remember(AGENT, "echo foxtrot", session_id="s2")
    client.remember(AGENT, "golf hotel")
    assert client.clear(AGENT, session_id="s1") == 2
    assert {memory.content for memory in client.memories(AGENT)} == {"echo foxtrot", "golf hotel"}
    assert client.clear(AGENT, session_id="s1") == 0
    assert client.clear(AGENT) == 2
    assert client.memories(AGENT) == []


def test_sessions_are_listed_with_their_counts(client: Any) -> None:
    client.remember(AGENT, "alpha bravo", session_id="s1")
    client.remember(AGENT, "charlie delta", session_id="s1")
    client.remember(AGENT, "echo foxtrot", session_id="s2")
    client.remember(AGENT, "golf hotel")
    assert sorted((one.session_id, one.count) for one in client.sessions(AGENT)) == [("s1", 2), ("s2", 1)]


def test_a_scope_is_the_client_without_the_agent_id(client: Any) -> None:
    memory = client.agent(AGENT)
    stored = memory.remember("alpha bravo charlie", tags=["t"])
    assert isinstance(stored, Memory)
    assert memory.recall("alpha bravo charlie")[0].memory.id == stored.id
    assert [one.id for one in memory.memories()] == [stored.id]
    assert [len(hits) for hits in memory.recall_many(["alpha bravo charlie", "alpha charlie"])] == [1, 1]
    memory.remember_many(["delta echo"], session_id="s9")
    assert [one.session_id for one in memory.sessions()] == ["s9"]
    memory.forget(stored.id)
    assert memory.clear() == 1


def test_a_scope_with_a_session_stays_within_it(client: Any) -> None:
    client.remember(AGENT, "alpha bravo outside")
    inside, other = client.agent(AGENT, session_id="s1"), client.agent(AGENT, session_id="s2")
    inside.remember("alpha bravo inside")
    other.remember("alpha bravo other")
    assert [hit.content for hit in inside.recall("alpha bravo")] == ["alpha bravo inside"]
    assert [one.content for one in inside.memories()] == ["alpha bravo inside"]
    assert "bravo other" not in inside.inject_context("alpha bravo")
    assert [one.session_id for one in inside.sessions()] == ["s1"]
    with pytest.raises(InvalidInputError):
        inside.recall("alpha bravo", session_id="s2")
    assert inside.clear() == 1
    assert {one.content for one in client.memories(AGENT)} == {"alpha bravo outside", "alpha bravo other"}


def test_context_is_fenced_and_within_its_bounds(client: Any) -> None:
    client.remember(AGENT, "alpha bravo charlie", session_id="s1")
    for block in (
        client.inject_context(AGENT, "alpha bravo"),
        client.inject_context(AGENT, "alpha bravo", session_id="s1"),
    ):
        assert block.startswith(f'<memory source="{AGENT}">')
        assert block.endswith("</memory>")
        assert "alpha bravo charlie" in block
    assert len(client.inject_context(AGENT, "alpha bravo", max_chars=150)) <= 150
    assert client.inject_context(AGENT, "alpha bravo", session_id="s2") == ""


def test_fan_outs_keep_the_order_and_the_names(client: Any) -> None:
    for name in ("alice", "bob"):
        client.remember(name, f"alpha bravo {name}")
    many = client.recall_many("alice", ["alpha bravo", "alpha alice", "bravo alice"] * 5, concurrency=4)
    assert [len(hits) for hits in many] == [1] * 15
    across = client.recall_across(["bob", "nobody", "alice"], "alpha bravo")
    assert list(across) == ["bob", "nobody", "alice"]
    assert {name: [hit.content for hit in hits] for name, hits in across.items()} == {
        "bob": ["alpha bravo bob"],
        "nobody": [],
        "alice": ["alpha bravo alice"],
    }
    assert client.recall_many("alice", []) == []
    assert client.recall_across([], "alpha") == {}


def test_a_limit_cuts_and_a_threshold_drops(client: Any) -> None:
    client.remember_many(AGENT, [f"alpha bravo {word}" for word in ("one", "two", "three", "four")])
    assert len(client.recall(AGENT, "alpha bravo", 2)) == 2
    assert len(client.recall(AGENT, "alpha bravo", 20)) == 4
    assert client.recall(AGENT, "alpha bravo", threshold=1.0) == []
    assert all(hit.similarity >= 0.6 for hit in client.recall(AGENT, "alpha bravo one", threshold=0.6))


def test_the_service_is_well(client: Any) -> None:
    health = client.health()
    assert (health.ok, health.status, health.breaker, health.error) == (True, "ok", "closed", None)


@pytest.mark.parametrize(
    "text", ["naïve café", "日本語のテキスト 東京", "مرحبا بالعالم", "tea 🍵 please", 'quote " and \\ and %_']
)
def test_any_script_goes_through(client: Any, text: str) -> None:
    assert client.remember(AGENT, text).content == text
    assert [memory.content for memory in client.memories(AGENT)] == [text]
    assert isinstance(client.recall(AGENT, text), list)


def test_odd_but_harmless_ids_work(client: Any) -> None:
    for name in ("user@example.com", "team 7", "équipe:ü", "a.b~c+d=e&f;g"):
        stored = client.remember(name, "alpha bravo", session_id="s & p")
        assert client.recall(name, "alpha bravo", session_id="s & p")[0].memory.id == stored.id
        assert client.clear(name, session_id="s & p") == 1


def test_a_closed_client_says_so(client: Any) -> None:
    client.remember(AGENT, "alpha bravo")
    client.close()
    with pytest.raises(ConfigError, match="closed"):
        client.recall(AGENT, "alpha bravo")
