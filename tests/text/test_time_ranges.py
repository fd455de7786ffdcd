"""Words of time in a question."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kronmem.text.time_ranges import find

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC).replace(tzinfo=None)  # a Friday
RANGES = {
    "What happened today?": "11-20 00 11-21 00",
    "What happened yesterday?": "11-19 00 11-20 00",
    "the day before yesterday": "11-18 00 11-19 00",
    "What did I tell you this morning?": "11-20 00 11-20 12",
    "What happened last night?": "11-19 18 11-20 06",
    "What did I say last week?": "11-09 00 11-16 00",
    "What did I say about the budget this week?": "11-16 00 11-23 00",
    "What did we discuss on Monday": "11-16 00 11-17 00",
    "What did I do on Friday?": "11-13 00 11-14 00",
    "What happened in March?": "03-01 00 04-01 00",
    "last month": "10-01 00 11-01 00",
    "3 November": "11-03 00 11-04 00",
    "What did I say on November 3rd?": "11-03 00 11-04 00",
    "What happened on 2026-11-03?": "11-03 00 11-04 00",
    "What did we decide two weeks ago?": "11-03 00 11-10 00",
    "10 days ago": "11-10 00 11-11 00",
    "an hour ago": "11-20 14 11-20 15",
    "in the last three days": "11-17 00 11-21 15",
    "What did I eat last weekend?": "11-14 00 11-16 00",
    "since Friday": "11-13 00 11-21 15",
    "Was ist gestern passiert?": "11-19 00 11-20 00",
    "Was haben wir letzte Woche beschlossen?": "11-09 00 11-16 00",
    "Was habe ich am Montag gesagt?": "11-16 00 11-17 00",
    "Was habe ich vor zwei Wochen erzählt?": "11-03 00 11-10 00",
    "Was war im März?": "03-01 00 04-01 00",
}
NO_RANGE = (
    *("What did we talk about before the launch meeting?", "What's the Monday meeting about?", "every Monday standup"),
    *("What is planned for next week?", "What did we plan for tomorrow?", "May I ask something?", "in 2024", "31 June"),
    *("Is it on Monday's agenda?", "the last week of the course", "9999 years ago", "", "Which day suits you?"),
)


@pytest.mark.parametrize(("question", "expected"), RANGES.items())
def test_words_of_time_are_a_range(question: str, expected: str) -> None:
    found = find(question, NOW)
    assert found is not None
    assert f"{found.since:%m-%d %H} {found.until:%m-%d %H}" == expected


@pytest.mark.parametrize("question", NO_RANGE)
def test_what_names_no_range_is_none(question: str) -> None:
    assert find(question, NOW) is None


def test_a_question_with_nothing_else_asks_for_the_whole_range() -> None:
    alone = [question for question in RANGES if (found := find(question, NOW)) and found.alone]
    greeted = (
        "Morning! What did we do yesterday?",
        "Hi, where were we?",
        "Ada here. What did we decide? I mean yesterday.",
    )
    ranges = [find(question, NOW) for question in greeted]
    assert [found is not None and found.alone for found in ranges] == [True, True, False]
    assert find("Where are we going for lunch?", NOW) is None
    assert {*RANGES} - {*alone} == {"What did I say about the budget this week?", "What did I eat last weekend?"}
