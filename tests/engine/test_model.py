"""The engine against a plain-Python model: whatever is done, nothing leaks and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL as NAMESPACE
from uuid import uuid5

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.engine.calling import Caller, Clock, opened
from tests.services.postgres import emptied

OWNERS = st.sampled_from(["", "someone"])
AGENTS = st.sampled_from(["bot", "other"])
SESSIONS = st.sampled_from([None, "s1", "s2"])
ALL = ["tea", "piano", "glacier", "bicycle", "猫", "🎉"]
WORDS = st.sampled_from(ALL)
TEXTS = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
TTLS = st.sampled_from([None, None, 60, 3600])
KEYS = st.sampled_from([None, None, "home", "work"])
Former = tuple[tuple[str, float | None], ...]
"""Former texts, newest first, and when each of them expires."""


@dataclass(frozen=True)
class Known:
    """A memory as the model knows it."""

    id: str
    owner: str
    agent: str
    session: str | None
    content: str
    tags: tuple[str, ...]
    expires: float | None
    pinned: bool
    key: str | None = None
    former: Former = ()

    def told(self, now: float) -> list[str]:
        """Its history as the service tells it."""
        return [self.content, *(text for text, expires in self.former if expires is None or expires > now)]

    def become_history(self) -> Former:
        return ((self.content, self.expires), *self.former)

    def alive(self, now: float) -> bool:
        return self.expires is None or self.expires > now


class Engine(RuleBasedStateMachine):
    """Two owners with two agents each. `new_place` says where a database with nothing in it is."""

    new_place: Callable[[], str]

    @initialize()
    def begin(self) -> None:
        self.place = type(self).new_place()
        self.clock = Clock()
        self.service = opened(self.place, self.clock)
        self.start()

    def start(self) -> None:
        self.known: list[Known] = []
        self.used: dict[tuple[str, str, int], tuple[str, str]] = {}
        self.state: dict[tuple[str, str, str], tuple[object]] = {}
        self.snapshots: list[list[Any]] = []

    def teardown(self) -> None:
        if hasattr(self, "service"):
            self.service.close()

    def caller(self, owner: str, agent: str) -> Caller:
        return Caller(self.service, self.clock, owner, agent)

    def living(self, owner: str, agent: str) -> list[Known]:
        return [k for k in self.known if (k.owner, k.agent) == (owner, agent) and k.alive(self.clock.time)]

    @rule(owner=OWNERS, agent=AGENTS, session=SESSIONS, text=TEXTS, ttl=TTLS, pinned=st.booleans(), tag=WORDS, key=KEYS)
    def remember(
        self,
        owner: str,
        agent: str,
        session: str | None,
        text: str,
        ttl: int | None,
        pinned: bool,
        tag: str,
        key: str | None,
    ) -> None:
        fields = {"session_id": session, "ttl_seconds": ttl, "pinned": pinned, "tags": [tag], "key": key}
        memory = self.caller(owner, agent).remember(text, **fields)
        expires = None if pinned or ttl is None else self.clock.time + ttl
        there = [k for k in self.living(owner, agent) if (k.session, k.key) == (session, key)]
        same = [k for k in there if k.content == text]
        assert memory["deduplicated"] == bool(same)
        if not same:
            former = self.take_the_place_of(there) if key else ()
            new = Known(memory["id"], owner, agent, session, text, (tag,), expires, pinned, key, former)
            self.known.append(new)
            return
        old = same[0]
        later = None if old.expires is None or expires is None else max(old.expires, expires)
        tags = tuple(dict.fromkeys((*old.tags, tag)))
        self.known[self.known.index(old)] = replace(old, tags=tags, expires=later, pinned=old.pinned or pinned)
        assert memory["id"] == old.id

    def take_the_place_of(self, old: list[Known]) -> Former:
        self.known = [k for k in self.known if k not in old]
        return old[0].become_history() if old else ()

    @rule(owner=OWNERS, agent=AGENTS, pick=st.integers(0, 100), text=TEXTS)
    def supersede(self, owner: str, agent: str, pick: int, text: str) -> None:
        living = self.living(owner, agent)
        if not living:
            return
        old = living[pick % len(living)]
        new = self.caller(owner, agent).remember(text, session_id=old.session, supersedes=old.id)
        same = [k for k in living if (k.session, k.key, k.content) == (old.session, old.key, text)]
        if same and same[0] is not old:
            former = (*same[0].former, *old.become_history())
            self.known = [k for k in self.known if k is not old]
            at = self.known.index(same[0])
            self.known[at] = replace(same[0], former=former, expires=None)
        elif not same:
            former = self.take_the_place_of([old])
            self.known.append(Known(new["id"], owner, agent, old.session, text, (), None, False, old.key, former))
        else:
            self.known[self.known.index(old)] = replace(old, expires=None)

    @rule(owner=OWNERS, agent=AGENTS, pick=st.integers(0, 100), text=TEXTS)
    def update(self, owner: str, agent: str, pick: int, text: str) -> None:
        living = self.living(owner, agent)
        if not living:
            return
        old = living[pick % len(living)]
        taken = [k for k in living if (k.session, k.key, k.content) == (old.session, old.key, text) and k is not old]
        status, _ = self.caller(owner, agent)("PATCH", f"memories/{old.id}", {"content": text})
        assert status == (409 if taken else 200)
        if not taken and text != old.content:
            new = replace(old, content=text, former=old.become_history())
            self.known[self.known.index(old)] = new

    @rule(owner=OWNERS, agent=AGENTS, text=TEXTS, number=st.integers(1, 3))
    def remember_under_an_own_id(self, owner: str, agent: str, text: str, number: int) -> None:
        own = (owner, agent, number)
        name = str(uuid5(NAMESPACE, self.name(owner, agent) + str(number)))
        there = {k.id: k for k in self.living(owner, agent)}
        same = [k for k in there.values() if (k.session, k.key, k.content) == (None, None, text)]
        status, memory = self.remembered(owner, agent, text, name)
        said, kept = self.used.get(own, (text, ""))
        if own in self.used and (said != text or kept not in there):
            assert status == 409 or (status == 201 and kept in self.superseded(owner, agent))
        elif own in self.used:
            assert (status, memory["id"]) == (201, kept)
        else:
            assert status == 201
            self.used[own] = (text, memory["id"])
            assert memory["id"] == (same[0].id if same else name)
            if same:
                self.known[self.known.index(same[0])] = replace(same[0], expires=None)
            else:
                self.known.append(Known(name, owner, agent, None, text, (), None, False))

    def remembered(self, owner: str, agent: str, text: str, name: str) -> tuple[int, Any]:
        body = {"content": text, "metadata": {"kronmem": {"id": name}}}
        return self.caller(owner, agent)("POST", "remember", body)

    def name(self, owner: str, agent: str) -> str:
        return f"{owner}-{agent}"

    def listed(self, owner: str, agent: str) -> list[Any]:
        """Everything of an agent with its history."""
        asked = [("per_page", "100"), ("history", "true")]
        return list(self.caller(owner, agent)("GET", "memories", query=asked)[1]["memories"])

    def superseded(self, owner: str, agent: str) -> set[str]:
        return {one["id"] for one in self.listed(owner, agent) if one["superseded_by"]}

    @rule(owner=OWNERS, agent=AGENTS)
    def take_a_snapshot(self, owner: str, agent: str) -> None:
        self.snapshots.append(self.listed(owner, agent))

    @rule(owner=OWNERS, agent=AGENTS, pick=st.integers(0, 100))
    def restore(self, owner: str, agent: str, pick: int) -> None:
        """A snapshot of any moment and any agent: all of it is there afterwards, and nothing that was there is gone."""
        if not self.snapshots or not (snapshot := self.snapshots[pick % len(self.snapshots)]):
            return
        before, empty = self.listed(owner, agent), not self.living(owner, agent)
        assert self.caller(owner, agent)("POST", "memories/restore", {"memories": snapshot})[0] == 200
        after = self.listed(owner, agent)
        assert {one["id"] for one in before} <= {one["id"] for one in after}
        told = {(one["session_id"], one["key"], one["content"]) for one in after}
        lasting = [one for one in snapshot if not one["expires_at"]]
        assert told >= {(one["session_id"], one["key"], one["content"]) for one in lasting if not one["superseded_by"]}
        if empty and not before:
            assert {one["id"] for one in lasting} <= {one["id"] for one in after}
        assert self.caller(owner, agent)("POST", "memories/restore", {"memories": snapshot})[1]["restored"] == 0
        assert self.listed(owner, agent) == after
        self.read_anew(owner, agent, after)

    def read_anew(self, owner: str, agent: str, listed: list[Any]) -> None:
        """Go on from what is there: which of two said things is the later is not the model's to know."""
        self.known = [k for k in self.known if (k.owner, k.agent) != (owner, agent)]
        for one in listed:
            if not one["superseded_by"]:
                _, history = self.caller(owner, agent)("GET", f"memories/{one['id']}/history")
                former = tuple((old["content"], seconds(old["expires_at"])) for old in history["memories"][1:])
                place = (one["id"], owner, agent, one["session_id"], one["content"], tuple(one["tags"]))
                self.known.append(Known(*place, seconds(one["expires_at"]), one["pinned"], one["key"], former))

    @rule(owner=OWNERS, agent=AGENTS, key=WORDS, value=st.none() | st.integers() | TEXTS)
    def set_and_delete_state(self, owner: str, agent: str, key: str, value: object) -> None:
        caller, kept = self.caller(owner, agent), self.state
        if value is None:
            assert caller("DELETE", f"state/{quote(key)}")[0] == (200 if kept.pop((owner, agent, key), None) else 404)
        else:
            assert caller("PUT", f"state/{quote(key)}", {"value": value})[0] == 200
            kept[owner, agent, key] = (value,)
        status, found = caller("GET", f"state/{quote(key)}")
        assert ((found["value"],) if status == 200 else None) == kept.get((owner, agent, key))

    @rule(owner=OWNERS, agent=AGENTS)
    def erase(self, owner: str, agent: str) -> None:
        status, gone = self.caller(owner, agent)("POST", "erase")
        assert (status, gone["complete"]) == (200, True)
        assert gone["memories"] == len(self.living(owner, agent))
        self.known = [k for k in self.known if (k.owner, k.agent) != (owner, agent)]
        self.state = {place: value for place, value in self.state.items() if place[:2] != (owner, agent)}

    @rule(
        owner=OWNERS,
        agent=AGENTS,
        session=SESSIONS,
        word=WORDS,
        tag=st.none() | WORDS,
        picks=st.sets(st.integers(0, 30)),
    )
    def recall(self, owner: str, agent: str, session: str | None, word: str, tag: str | None, picks: set[int]) -> None:
        # Of any agent: ids of others are unknown here, and ignored.
        known = [self.known[pick] for pick in picks if pick < len(self.known)]
        fields = {"session_id": session, "tags": [tag] if tag else [], "limit": 100, "threshold": 0}
        fields["exclude"] = [one.id for one in known]
        hits = self.caller(owner, agent).hits(word, **fields)
        found = {h["memory"]["id"] for h in hits}
        asked = [
            k
            for k in self.living(owner, agent)
            if (session is None or k.session == session) and (tag is None or tag in k.tags)
        ]
        assert found <= {k.id for k in asked}, "a leak"
        shown = {statement(h["memory"]["content"]) for h in hits}
        had = {statement(one.content) for one in known if one in self.living(owner, agent)}
        assert not shown & had, "shown, and yet excluded"
        assert shown >= {statement(k.content) for k in asked if word in k.content.split()} - had, "a loss"

    @rule(owner=OWNERS, agent=AGENTS, pick=st.integers(0, 100))
    def forget(self, owner: str, agent: str, pick: int) -> None:
        if not self.known:
            return
        one = self.known[pick % len(self.known)]
        mine = (one.owner, one.agent) == (owner, agent) and one.alive(self.clock.time)
        status, _ = self.caller(owner, agent)("DELETE", f"memories/{one.id}")
        assert status == (204 if mine else 404)
        if mine:
            self.known.remove(one)

    @rule(owner=OWNERS, agent=AGENTS, session=SESSIONS)
    def clear(self, owner: str, agent: str, session: str | None) -> None:
        path = "memories" if session is None else f"sessions/{session}"
        gone = [k for k in self.living(owner, agent) if session is None or k.session == session]
        assert self.caller(owner, agent)("DELETE", path) == (200, {"deleted": len(gone)})
        self.known = [k for k in self.known if k not in gone]

    @rule(seconds=st.sampled_from([1, 59, 61, 4000]))
    def expire(self, seconds: int) -> None:
        self.clock.time += seconds

    @rule(seconds=st.sampled_from([1, 90, 100_000]))
    def set_the_clock_back(self, seconds: int) -> None:
        """Not past a lifetime that has ended: whether such a memory was swept already is not to be seen."""
        ends = [k.expires for k in self.known] + [expires for k in self.known for _, expires in k.former]
        if not any(end is not None for end in ends):
            self.clock.time -= seconds

    @rule()
    def reopen(self) -> None:
        self.service.close()
        self.service = opened(self.place, self.clock)

    @invariant()
    def every_list_and_recall_is_right(self) -> None:
        if not hasattr(self, "service"):
            return
        for owner in ("", "someone"):
            for agent in ("bot", "other"):
                _, page = self.caller(owner, agent)("GET", "memories", query=[("per_page", "100")])
                expected = {(k.id, k.content, k.session, k.tags, k.pinned) for k in self.living(owner, agent)}
                seen = page["memories"]
                found = {(m["id"], m["content"], m["session_id"], tuple(m["tags"]), m["pinned"]) for m in seen}
                assert found == expected
                assert page["total"] == len(expected)
                for one in self.living(owner, agent):
                    _, told = self.caller(owner, agent)("GET", f"memories/{one.id}/history")
                    assert sorted(m["content"] for m in told["memories"]) == sorted(one.told(self.clock.time))
                    assert told["memories"][0]["id"] == one.id
                hits = self.caller(owner, agent).hits(" ".join(ALL), limit=100, threshold=0)
                living = self.living(owner, agent)
                assert {h["memory"]["id"] for h in hits} <= {k.id for k in living}
                assert {statement(h["memory"]["content"]) for h in hits} == {statement(k.content) for k in living}


def statement(content: str) -> tuple[str, ...]:
    """Of memories that say the same, one is a hit."""
    return tuple(sorted(content.split()))


def seconds(time: Any) -> float | None:
    """A time of the API, as the model counts it."""
    when = datetime.fromisoformat(time) if isinstance(time, str) else time
    return None if when is None else when.timestamp()


def compare(new_place: Callable[[], str], examples: int) -> None:
    machine = type("Placed", (Engine,), {"new_place": staticmethod(new_place)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


@pytest.mark.timeout(1800)  # on a busy machine
@pytest.mark.parametrize("examples", [12, pytest.param(500, marks=pytest.mark.slow)])
def test_sqlite_does_what_the_model_does(examples: int, tmp_path: Path) -> None:
    numbers = count()
    compare(lambda: str(tmp_path / f"{next(numbers)}.db"), examples)


@pytest.mark.timeout(1800)  # on a busy machine
@pytest.mark.parametrize("examples", [3, pytest.param(500, marks=pytest.mark.slow)])
def test_postgres_does_what_the_model_does(postgres: str, examples: int) -> None:
    compare(lambda: emptied(postgres), examples)
