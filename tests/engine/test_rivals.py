"""Later statements before the earlier ones that they replace."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kronmem import Client
from tests.benchmarks.rivals import PAIRS, right
from tests.engine.calling import Caller

OTHERS = ("Copper conducts heat", "The choir sings on Thursday", "A fox was seen at night", "The lift is old")


def shown(hits: list[Any]) -> list[tuple[str, bool]]:
    return [(hit["memory"]["content"], hit["earlier"]) for hit in hits]


def told(call: Caller, *texts: str, **fields: object) -> list[Any]:
    made = []
    for text in texts:
        call.clock.pass_days(1)
        made.append(call.remember(text, **fields))
    return made


@pytest.mark.parametrize(("kind", "least"), [(True, 0.9), (False, 0.97)])
def test_rivals_are_in_order_and_traps_are_left_alone(kind: bool, least: float) -> None:
    pairs = [one for one in json.loads(PAIRS.read_text("utf-8")) if one["rivals"] == kind]
    with Client("sqlite://") as client:
        done = [right(client, f"pair-{at}", pair) for at, pair in enumerate(pairs)]
    assert sum(done) / len(done) >= least


def test_a_later_rival_is_drawn_in_and_takes_the_place_of_the_earlier(call: Caller) -> None:
    told(call, "I live in Paris", *OTHERS, "I moved to Berlin")
    hits = call.hits("Where do I live?")
    assert shown(hits)[:2] == [("I moved to Berlin", False), ("I live in Paris", True)]
    assert hits[0]["similarity"] == hits[1]["similarity"]
    assert shown(call.hits("Where do I live?", limit=1)) == [("I moved to Berlin", False)]


def test_a_chain_of_changes_stands_from_the_latest_to_the_first(call: Caller) -> None:
    told(call, "I live in Paris", "I moved to Berlin", *OTHERS, "I moved to Rome")
    found = shown(call.hits("Where do I live?"))
    assert found[0] == ("I moved to Rome", False)
    assert [text for text, earlier in found if earlier] == [text for text, _ in found[1 : 1 + sum(e for _, e in found)]]


def test_rivals_pass_the_filter_and_the_time_that_was_asked_for(call: Caller) -> None:
    told(call, "I live in Paris", session_id="one")
    (news,) = told(call, "I moved to Berlin", session_id="two")
    assert shown(call.hits("Where do I live?", session_id="one")) == [("I live in Paris", False)]
    until = {"until": news["created_at"]}
    assert shown(call.hits("Where do I live?", kronmem=until)) == [("I live in Paris", False)]


def test_what_the_caller_knows_to_be_replaced_is_not_shown(call: Caller) -> None:
    _, news = told(call, "I live in Paris", "I moved to Berlin")
    assert call.hits("Where do I live?", kronmem={"exclude": [news["id"]]}) == []


def test_statements_under_two_keys_are_no_rivals(call: Caller) -> None:
    told(call, "The office is on Lindenstrasse 12", key="first")
    told(call, "The office is on Hafenweg 3", key="second")
    assert not any(earlier for _, earlier in shown(call.hits("Where is the office?")))


def test_a_forgotten_change_changes_nothing(call: Caller) -> None:
    _, news = told(call, "I live in Paris", "I moved to Berlin")
    call.recall("Where do I live?")
    assert call("DELETE", f"memories/{news['id']}")[0] == 204
    assert shown(call.hits("Where do I live?")) == [("I live in Paris", False)]


def test_remember_names_what_it_may_replace_when_it_is_asked(call: Caller) -> None:
    told(call, "I live in Paris", "The launch is on 3 March", *OTHERS)
    assert "may_replace" not in call.remember("I moved to Berlin")
    (news,) = told(call, "The launch moved to 17 March", may_replace=True)
    assert [one["content"] for one in news["may_replace"]] == ["The launch is on 3 March"]
