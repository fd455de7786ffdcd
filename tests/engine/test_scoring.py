from __future__ import annotations

import random

import pytest

from kronmem.engine import ranking
from kronmem.engine.index import REPLY, place
from kronmem.engine.ranking import MODEL, TABLE, Score, combine, is_tail, similarity, to_compare


def at(number: int, passage: int = 0, kind: int = 0) -> int:
    return place(number, passage, kind)


def test_a_memory_is_as_good_as_its_best_passage() -> None:
    answers = combine({at(1, 0): 0.2, at(1, 3): 0.5, at(9): 0.4}, {at(1, 1): 0.1})
    first, second = answers.best(5)
    assert (first.number, first.place, first.words) == (1, at(1, 3), 0.5)
    assert second.number == 9


def test_meaning_finds_what_words_do_not() -> None:
    (hit,) = combine({}, {at(4, 2): 0.6}).best(5)
    assert (hit.number, hit.place, hit.words) == (4, at(4, 2), 0)
    assert hit.similarity == round(TABLE.weight * 0.6, 4)


def test_meaning_counts_less_where_words_fit_well() -> None:
    weak, strong = (combine({at(1): best}, {at(9): 0.5}).score(9).meaning for best in (0.1, 0.9))
    assert weak > strong > 0
    assert combine({at(1): 1.0}, {at(9): 0.5}).best(5)[-1].number == 1, "similarity 0 is no hit"


def test_words_take_less_from_a_model_than_from_the_table() -> None:
    of_table, of_model = (combine({at(1): 1.0}, {at(9): 0.5}, sense).weight for sense in (TABLE, MODEL))
    assert of_table == 0 < of_model


def test_an_assistants_words_count_for_less_and_a_bare_question_too() -> None:
    found = combine({at(n, 0, kind): 0.5 for n, kind in ((10, 0), (20, 1), (30, 2), (40, 3))}, {})
    assert [hit.number for hit in found.best(5)] == [10, 30, 20, 40]


def test_of_many_questions_the_best_counts_most_and_the_others_leave_the_answer_its_place() -> None:
    found = combine({**{at(n, 0, 1): 0.9 for n in range(20, 120, 10)}, at(10): 0.4}, {}).best(5)
    assert [hit.number for hit in found] == [110, 10, 100, 90, 80]
    assert [hit.speaker for hit in found] == [0.7, 1.0, 0.35, 0.2333, 0.175]
    assert [hit.similarity for hit in found] == [similarity(hit.words, 0.0, hit.speaker) for hit in found]


def test_among_equals_the_newer_comes_first() -> None:
    assert [hit.number for hit in combine({at(n): 0.5 for n in (10, 20, 30)}, {}).best(5)] == [30, 20, 10]


def test_the_parts_of_a_hundred_hits_recompute_to_their_similarity() -> None:
    chance = random.Random(5)
    places = [at(n, chance.randrange(3), chance.randrange(4)) for n in range(1, 400)]
    words = {one: chance.random() for one in chance.sample(places, 200)}
    close = {one: chance.random() for one in chance.sample(places, 200)}
    hits = combine(words, close).best(100)
    assert len(hits) == 100
    assert [hit.similarity for hit in hits] == sorted((hit.similarity for hit in hits), reverse=True)
    for hit in hits:
        assert hit.similarity == similarity(hit.words, hit.meaning, hit.speaker)
        assert hit.similarity == round(min((hit.words + hit.meaning) * hit.speaker, 1.0), 4)


def test_nothing_at_all_is_silence() -> None:
    answers = combine({}, {})
    assert answers.best(5) == []
    assert answers.silent(100)


def test_either_good_words_or_a_close_meaning_break_the_silence() -> None:
    assert combine({at(1): 0.1}, {at(1): 0.1}).silent(100)
    assert not combine({at(1): 0.6}, {}).silent(100)
    assert not combine({}, {at(1): 0.6}).silent(100)


def test_where_no_word_is_known_to_the_table_words_alone_decide() -> None:
    assert not combine({at(1): 0.2}, {}).silent(100)
    assert combine({at(1): 0.2}, {at(1): 0.01}).silent(100)
    assert combine({at(1): 0.1}, {}).silent(100)


def test_the_more_memories_the_more_is_asked_of_the_best() -> None:
    answers = combine({at(1): 0.24}, {at(1): 0.2})
    assert [answers.silent(passages) for passages in (1, 25, 1000, 4096, 10**6)] == [False, False, True, True, True]


def test_the_tail_is_cut_after_a_clear_winner_only() -> None:
    def kept(*words: float) -> int:
        scores = [Score(number, number, score, 0.0, 1.0) for number, score in enumerate(words)]
        return sum(not is_tail(score, scores[0]) for score in scores)

    assert kept(0.9, 0.5, 0.26, 0.1) == 2
    assert kept(0.5, 0.14, 0.01) == 2


def test_what_is_closer_in_meaning_than_the_best_is_no_tail_unless_that_one_is_clearly_meant() -> None:
    best, closer, other = Score(1, 1, 0.5, 0.03, 1.0), Score(2, 2, 0.0, 0.04, 1.0), Score(3, 3, 0.0, 0.02, 1.0)
    assert [is_tail(score, best) for score in (best, closer, other)] == [False, False, True]
    assert is_tail(closer, Score(1, 1, 0.8, 0.03, 1.0))


def test_the_best_by_words_are_compared_as_well_as_those_that_the_scan_named() -> None:
    words = {at(n): n / 1000 for n in range(1, 300)}
    chosen = to_compare(words, [at(3), at(299)])
    assert chosen[:2] == [at(3), at(299)]
    assert set(chosen) == {at(3), *(at(n) for n in range(200, 300))}
    assert len(chosen) == ranking.BY_WORDS + 1


def test_a_reply_that_means_the_same_is_below_the_statement() -> None:
    hits = combine({}, {at(1, 0, REPLY): 0.5, at(2): 0.45}).best(2)
    assert [hit.number for hit in hits] == [2, 1]


@pytest.mark.parametrize("count", [0, 1])
def test_no_more_than_asked_for_are_given(count: int) -> None:
    assert len(combine({at(1): 0.4, at(5): 0.3}, {}).best(count)) == count
