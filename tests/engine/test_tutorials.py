"""The questions that tutorials ask, about the memories that they store: none is answered with nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kronmem import Client

CONCISE, DARK = "User prefers concise answers.", "User prefers dark mode"
STORED = {
    CONCISE: "preference",
    DARK: "preference",
    "We decided to use PostgreSQL for the billing service.": "decision",
    "Project deadline is Friday.": "fact",
    "The user works as a software engineer in Berlin.": "fact",
}
ASKED = {
    "What tone should you use with me?": CONCISE,
    "How should I answer the user?": CONCISE,
    "what are the user's preferences?": CONCISE,
    "Which colour theme?": DARK,
    "which color theme does the user want?": DARK,
    "Which database did we decide on?": "We decided to use PostgreSQL for the billing service.",
    "what decisions did we make?": "We decided to use PostgreSQL for the billing service.",
    "When is it due?": "Project deadline is Friday.",
    "What is my job?": "The user works as a software engineer in Berlin.",
    "software engineering task context": "The user works as a software engineer in Berlin.",
}
GENERAL = ["What do you know about me?", "general context", "tell me everything you remember", "", "?"]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client.local(":memory:") as client:
        for text, memory_type in STORED.items():
            client.remember("all", text, memory_type)
            client.remember(text.split()[-1].strip("."), text, memory_type)
        yield client


@pytest.mark.parametrize(("question", "answer"), ASKED.items())
def test_a_tutorials_question_finds_its_answer(client: Client, question: str, answer: str) -> None:
    assert answer in [hit.content for hit in client.recall("all", question)]
    alone = answer.split()[-1].strip(".")
    assert [hit.content for hit in client.recall(alone, question)] == [answer]
    assert answer in client.inject_context("all", question)


def test_the_only_memory_of_an_agent_answers_a_question_in_other_words() -> None:
    with Client.local(":memory:") as client:
        client.remember("alex", "User prefers concise technical answers.")
        assert len(client.recall("alex", "What tone should you use with me?")) == 1
        assert client.recall("alex", "What is the capital of France?") == []
        assert client.recall("alex", "Tell me a joke") == []


def test_an_answer_in_other_words_is_shown_behind_a_hit_that_shares_a_common_word() -> None:
    with Client.local(":memory:") as client:
        notes = (
            "The user is called Alex and writes Python",
            "The user is allergic to peanuts",
            "Decision: use FastAPI",
        )
        for text in (*notes, DARK, CONCISE):
            client.remember("alex", text)
        assert CONCISE in [hit.content for hit in client.recall("alex", "What tone should you use with me?")]


@pytest.mark.parametrize("question", GENERAL)
def test_a_general_question_is_given_the_profile(client: Client, question: str) -> None:
    context = client.inject_context("all", question, limit=4)
    assert CONCISE in context
    assert DARK in context


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of France?",
        "Who won the match?",
        "How old is my dog?",
        "Which airline do I fly with?",
        "When does Alice fly?",
    ],
)
def test_a_question_about_something_else_is_answered_with_nothing(client: Client, question: str) -> None:
    assert client.recall("all", question) == []
