from __future__ import annotations

import pytest

from tests.engine.calling import Caller, calling

NASTY = [
    'hello "world', "c++", "AND", "-x", "(", "*", "NOT", "' OR 1=1 --", "🎉", "NEAR(a b)", "a:b", "%", "_", "\\", "?",
    "x" * 50_000, " ", "\t\n", "\u202e", "'; DROP TABLE memory; --",
]  # fmt: skip


@pytest.mark.parametrize(
    "question",
    ["how should I answer the user?", "preferred answer style", "What does the user prefer?", "concise", "user"],
)
@pytest.mark.parametrize("others", [0, 1, 4])
def test_a_tiny_space_answers(call: Caller, question: str, others: int) -> None:
    call.remember("User prefers concise answers")
    for other in ["The database is PostgreSQL 16", "Deploys happen on Monday", "Bob owns billing", "Tea at 5"][:others]:
        call.remember(other)
    assert call.recall(question)[0] == "User prefers concise answers"


def test_a_tiny_space_is_silent_about_what_it_never_heard(call: Caller) -> None:
    call.remember("User prefers concise answers")
    call.remember("The database is PostgreSQL 16")
    assert call.recall("What is the capital of France?") == []
    assert call.recall("which color was the bicycle of my uncle") == []


@pytest.mark.parametrize("question", ["anything tagged travel?", "which decisions are there?"])
def test_a_tag_and_a_type_are_found_by_a_question_that_names_them(call: Caller, question: str) -> None:
    call.remember("The hotel is booked for May", tags=["travel"], memory_type="decision")
    call.remember("Ines plays the cello")
    assert call.recall(question) == ["The hotel is booked for May"]


def test_the_question_itself_is_found_with_full_similarity(call: Caller) -> None:
    for text in ["The API port of billing is 8080", "The API port of search is 9090", "Lunch is at noon"]:
        call.remember(text)
    best = call.hits("The API port of billing is 8080")[0]
    assert best["memory"]["content"] == "The API port of billing is 8080"
    assert best["similarity"] == pytest.approx(1.0, abs=0.01)
    assert best["confidence"] == pytest.approx(0.6 + 0.2 * 0.9999 + 0.2 * 0.2891, abs=0.01)


@pytest.mark.parametrize(
    ("memory", "question"),
    [
        ("私は猫を飼っています", "猫"),
        ("ユーザーは東京に住んでいます", "東京のどこ?"),
        ("사용자는 고양이를 좋아한다", "고양이"),
        ("المستخدم يفضل القهوة", "القهوة"),
        ("משתמש אוהב קפה", "קפה"),
        ("Пользователь любит кофе", "кофе"),
        ("El usuario vive en Bogotá", "bogota"),
        ("Der Nutzer heißt Jörg Müßig", "JORG"),
        ("ผู้ใช้ชอบแมว", "แมว"),
        ("Party 🎉 on Friday", "🎉"),
        ("We write C++ here", "c++"),
        ("The Who", "the who"),
    ],
)
def test_other_scripts_and_odd_words_are_found(call: Caller, memory: str, question: str) -> None:
    call.remember(memory)
    call.remember("something else entirely")
    assert call.recall(question) == [memory]


@pytest.mark.parametrize("text", NASTY)
def test_user_text_is_never_syntax(call: Caller, text: str) -> None:
    call.remember("an ordinary memory")
    assert call("POST", "recall", {"query": text})[0] == 200
    assert call("GET", "memories", query=[("search", text[:1000])])[0] == 200
    if text.strip():
        assert call.remember(text)["content"] == text
        assert text in call.contents()


def test_nothing_asked_finds_nothing(call: Caller) -> None:
    call.remember("something")
    assert call.recall("") == []
    assert call.recall("", threshold=0) == []


def test_an_unknown_agent_has_no_memories(call: Caller) -> None:
    assert call("POST", "recall", {"query": "anything"}) == (
        200,
        {"query": "anything", "results": [], "memories": [], "total_found": 0},
    )


def test_a_threshold_replaces_the_gate(call: Caller) -> None:
    for n in range(300):
        call.remember(f"note {n} about gardening tools")
    weak = "the quarterly revenue forecast spreadsheet mentions one tool"
    assert call.recall(weak) == []
    assert len(call.recall(weak, threshold=0)) == 5
    assert call.recall(weak, threshold=0.9) == []


def test_a_small_session_inside_a_big_agent_is_found(call: Caller) -> None:
    call.remember("the meeting is about the budget", session_id="small", tags=["a", "b"], memory_type="decision")
    for n in range(300):
        call.remember(f"the meeting number {n} is about the budget", session_id="big", tags=["a"])
    for fields in ({"session_id": "small"}, {"memory_type": "decision"}, {"tags": ["b"]}, {"tags": ["b", "a"]}):
        assert call.recall("budget meeting", **fields) == ["the meeting is about the budget"]
    assert call.recall("budget meeting", session_id="small", memory_type="fact") == []
    assert call.recall("budget meeting", tags=["a", "c"]) == []


def test_the_reserved_object_wins_and_saves_the_copy(call: Caller) -> None:
    for n in range(5):
        call.remember(f"tea number {n}", memory_type="own" if n else "fact")
    body = {"query": "tea", "top_k": 1, "memory_type": "context", "kronmem": {"limit": 3, "memory_type": "own"}}
    _, reply = call("POST", "recall", body)
    assert len(reply["results"]) == reply["total_found"] == 3
    assert "memories" not in reply


def test_both_dialects_ask_and_are_answered(call: Caller) -> None:
    call.remember("tea is served at five")
    for body in ({"query": "tea", "limit": 1}, {"message": "tea", "top_k": 1}):
        _, reply = call("POST", "recall", body)
        assert reply["memories"][0]["content"] == reply["results"][0]["memory"]["content"] == "tea is served at five"
        assert reply["memories"][0]["score"] == reply["results"][0]["similarity"]


def test_newer_wins_among_equals(call: Caller) -> None:
    for n in ("qqxa", "qqxb", "qqxc"):  # words without a meaning: nothing but their age tells them apart
        call.remember(f"tea {n}", session_id=n)
    assert call.recall("tea") == ["tea qqxc", "tea qqxb", "tea qqxa"]


def test_the_very_text_stands_before_others_much_like_it(call: Caller) -> None:
    texts = [f"tea {n} of worker one" for n in range(12)]
    for text in texts:
        call.remember(text)
    assert [call.recall(text)[0] for text in texts] == texts


def test_what_was_said_next_to_the_answer_is_lifted(call: Caller) -> None:
    call.remember("The trip took nine days")
    call.remember("We hiked the Dolomites for a week")
    call.remember("The trip to the office was long", session_id="elsewhere")
    assert call.recall("How was the trip to the Dolomites?", threshold=0)[:2] == [
        "We hiked the Dolomites for a week",
        "The trip took nine days",
    ]


def test_after_a_pause_memories_are_no_neighbours() -> None:
    with calling() as call:
        call.remember("alpha bravo")
        first = call.hits("alpha bravo", threshold=0)[0]["similarity"]
        call.clock.pass_days(1)
        call.remember("alpha charlie")
        call.clock.pass_days(1)
        call.remember("alpha delta")
        assert call.hits("delta", threshold=0)[0]["similarity"] <= first
        scores = {h["memory"]["content"]: h["similarity"] for h in call.hits("alpha delta", threshold=0)}
        assert scores["alpha bravo"] == pytest.approx(scores["alpha charlie"], abs=1e-3)


def test_an_access_is_counted_and_shown_at_once(call: Caller) -> None:
    call.remember("tea is served at five")
    assert [call.hits("tea")[0]["memory"]["access_count"] for _ in range(3)] == [1, 2, 3]
    assert call("GET", "memories")[1]["memories"][0]["access_count"] == 3


def test_common_terms_of_a_large_space_are_cut_but_not_lost(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kronmem.engine.recall.BOUND", 20)
    call.remember("the user keeps a zebra")
    for n in range(100):
        call.remember(f"the user likes thing{n}")
    assert call.recall("user zebra")[0] == "the user keeps a zebra"
    assert call.hits("user zebra")[0]["similarity"] > 0.9
    assert call.recall("user thing5", session_id="none") == []
    assert call.recall("the user likes thing5")[0] == "the user likes thing5"


def test_context_is_one_line_a_memory(call: Caller) -> None:
    call.remember("tea is\nserved at five")
    _, reply = call("POST", "inject-context", {"query": "when is tea?", "limit": 8})
    assert reply["context"] == reply["context_block"]
    header, line = reply["context"].split("\n")
    assert header == "[KRONMEM CONTEXT]"
    assert line.startswith("- tea is served at five (confidence: 0.")
    assert reply["memories_used"] == 1
    assert reply["memories"][0]["memory"]["content"] == "tea is\nserved at five"


def test_no_context_is_empty(call: Caller) -> None:
    _, reply = call("POST", "inject-context", {"message": "anything"})
    assert reply == {"context_block": "", "context": "", "memories_used": 0, "memories": []}


def test_general_context_is_the_pinned_then_the_newest(call: Caller) -> None:
    call.remember("pinned long ago", pinned=True, session_id="a")
    for n in range(5):
        call.remember(f"later {n}", session_id="b")
    _, reply = call("POST", "inject-context", {"query": "general context", "limit": 3})
    assert [m["memory"]["content"] for m in reply["memories"]] == ["pinned long ago", "later 4", "later 3"]
    _, reply = call("POST", "inject-context", {"query": "general context", "session_id": "b", "limit": 1})
    assert [m["memory"]["content"] for m in reply["memories"]] == ["later 4"]


@pytest.mark.parametrize(
    ("said", "asked"),
    [("Alice is allergic to peanuts", "any food allergies?"), ("The project runs on PostgreSQL", "postgres")],
)
def test_a_word_in_another_form_is_found(call: Caller, said: str, asked: str) -> None:
    call.remember(said)
    call.remember("Lunch is at noon")
    assert call.recall(asked)[0] == said


def test_words_that_only_begin_alike_do_not_answer_for_a_word_that_was_used(call: Caller) -> None:
    call.remember("The university opens in May")
    call.remember("The universe is large")
    assert call.recall("universe")[0] == "The universe is large"
    assert call.hits("universe")[0]["similarity"] > 0.8
