from __future__ import annotations

import pytest

from kronmem.engine import ranking
from kronmem.engine.ranking import Weights, confidence
from kronmem.engine.store import Found

NOWHERE = Found([], 0, cut=False)


def score(question: str, found: dict[str, list[tuple[int, int, int]]], count: int = 1000) -> dict[int, float]:
    asked = ranking.ask(question)
    where = {t: Found(found.get(t, []), len(found.get(t, [])), cut=False) for t in asked.terms()}
    return ranking.score(asked, where, Weights(count, 5.0))


def test_a_memory_that_says_what_was_asked_scores_one() -> None:
    assert score("blue car", {"blue": [(7, 1, 2)], "car": [(7, 1, 2)]}) == {7: pytest.approx(1.0)}


def test_a_rare_term_counts_more_than_a_common_one() -> None:
    scores = score("blue car", {"blue": [(1, 1, 5)], "car": [(n, 1, 5) for n in range(2, 500)]})
    assert scores[1] > 5 * scores[2]


def test_a_related_term_counts_less_than_the_term_itself() -> None:
    scores = score("trouble", {"troubl": [(1, 1, 5)], "problem": [(2, 1, 5)]})
    assert scores[1] > scores[2] > 0


def test_a_group_counts_once_however_many_of_its_terms_occur() -> None:
    both = score("trouble", {"problem": [(1, 1, 5)], "issu": [(1, 1, 5)]})
    one = score("trouble", {"problem": [(1, 1, 5)]})
    assert both == one


def test_a_name_nobody_mentioned_weighs_double() -> None:
    found = {"car": [(1, 1, 5)]}
    assert score("the car of Bob", found)[1] < score("the car of bob", found)[1]
    known = {"car": [(1, 1, 5)], "bob": [(2, 1, 5)]}
    assert score("the car of Bob", known)[1] == score("the car of bob", known)[1]


def test_neighbours_lift_a_memory_and_strangers_do_not() -> None:
    near, far = ranking.COMPANY
    lifted = ranking.in_company({1: 0.2, 2: 0.8, 3: 0.2, 9: 0.2})
    assert lifted[1] > lifted[9] == 0.2
    assert lifted[1] == pytest.approx(0.2 + 0.8 * (near * 0.8 + far * 0.2))


def test_a_perfect_answer_is_not_overtaken_by_its_neighbours() -> None:
    assert ranking.by_relevance(ranking.in_company({1: 0.9, 2: 1.0, 3: 0.9, 4: 1.0, 5: 0.99}))[:2] == [4, 2]


def test_among_equals_the_newer_comes_first() -> None:
    assert ranking.by_relevance({1: 0.1 + 0.2, 5: 0.3, 3: 0.3, 2: 0.9}) == [2, 5, 3, 1]


def test_rarity_never_vanishes_in_a_tiny_space() -> None:
    tiny = Weights(1, 3.0)
    assert tiny.rarity(0) > tiny.rarity(1) > 0.6 * tiny.rarity(0)


def test_a_term_in_every_memory_still_counts_something() -> None:
    assert 0 < Weights(10_000, 5.0).rarity(10_000) < 0.01


def test_a_small_space_has_a_lower_gate() -> None:
    assert ranking.gate(1) < ranking.gate(100) < ranking.gate(1000) == ranking.gate(1_000_000)


def test_a_long_question_is_bounded_and_keeps_its_end() -> None:
    asked = ranking.ask(" ".join(f"word{n}" for n in range(1000)))
    assert len(asked.groups) == ranking.MAX_TERMS
    assert asked.groups[-1].term == "word999"
    assert sum(bool(group.soft) for group in asked.groups) <= ranking.MAX_SOFTENED


@pytest.mark.parametrize(
    ("memory_type", "age", "accessed", "expected"),
    [
        ("fact", 180, 10, 0.6 * 0.5 + 0.2 * 0.5 + 0.2),
        ("context", 3, 0, 0.6 * 0.5 + 0.2 * 0.5),
        ("preference", 60, 1000, 0.6 * 0.5 + 0.2 * 0.5 + 0.2),
        ("my own type", 30, 0, 0.6 * 0.5 + 0.2 * 0.5),
        ("episodic", 1e9, 0, 0.6 * 0.5),
    ],
)
def test_confidence_is_the_vendors_formula(memory_type: str, age: float, accessed: int, expected: float) -> None:
    assert confidence(0.5, age, memory_type, accessed) == pytest.approx(expected)
