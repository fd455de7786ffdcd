"""What a recall leaves out and puts around its hits: excluded memories, standing notes and the profile."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.engine.calling import Caller

IDENTITY = "My name is Ada Moss and I live in Oslo"


def asked(call: Caller, query: str, limit: int = 5, **reserved: object) -> list[Any]:
    return call.hits(query, kronmem={"limit": limit, **reserved})


def texts(hits: list[Any]) -> list[str]:
    return [hit["memory"]["content"] for hit in hits]


def test_what_the_caller_has_takes_no_place(call: Caller) -> None:
    known = [call.remember(f"The budget of team {name} is large")["id"] for name in ("red", "blue", "green")]
    call.remember("The budget of the kitchen is small")
    assert texts(asked(call, "budget of the team", 1, exclude=known)) == ["The budget of the kitchen is small"]


def test_near_duplicates_of_what_the_caller_has_are_left_out_too(call: Caller) -> None:
    known = call.remember("I live in Paris", session_id="one")["id"]
    call.remember("So I really live in Paris!", session_id="two")
    assert asked(call, "Where do I live?", exclude=[known]) == []


def test_what_the_caller_has_decides_nothing_about_silence(call: Caller) -> None:
    known = call.remember("The staging password rotates every Monday")["id"]
    for n in range(30):
        call.remember(f"Lunch menu {n} has soup")
    assert texts(asked(call, "When does the staging password rotate?")) != []
    assert asked(call, "When does the staging password rotate?", exclude=[known]) == []


def test_unknown_ids_are_ignored_and_malformed_ones_refused(call: Caller) -> None:
    call.remember("I live in Paris")
    assert texts(asked(call, "Where do I live?", exclude=[str(uuid.uuid4())])) == ["I live in Paris"]
    for wrong in (["Paris"], ["x" * 36], [1], [str(uuid.uuid4())] * 1001):
        assert call("POST", "recall", {"query": "Paris", "kronmem": {"exclude": wrong}})[0] == 422


def test_an_id_is_known_in_any_case_and_after_it_was_stored_again(call: Caller) -> None:
    memory_id = str(uuid.uuid4())
    assert asked(call, "Where do I live?", exclude=[memory_id.upper()]) == []
    call.remember("I live in Paris", metadata={"kronmem": {"id": memory_id}})
    assert asked(call, "Where do I live?", exclude=[memory_id.upper()]) == []
    assert texts(asked(call, "Where do I live?")) == ["I live in Paris"]


def test_standing_notes_are_pinned_memories_and_then_preferences_newest_first(call: Caller) -> None:
    call.remember("Answer in short sentences", memory_type="preference")
    call.remember("Prefers tea", memory_type="preference")
    call.remember(IDENTITY, pinned=True)
    call.remember("The launch is on Friday")
    hits = asked(call, "When is the launch?", fill="profile")
    assert texts(hits) == [IDENTITY, "Prefers tea", "Answer in short sentences", "The launch is on Friday"]
    assert [hit["standing"] for hit in hits] == [True, True, True, False]


def test_standing_notes_have_bounds_and_leave_room_for_answers(call: Caller) -> None:
    for n in range(8):
        call.remember(f"Preference {n} is about something else", memory_type="preference")
    call.remember("x" * 601, pinned=True)
    hits = asked(call, "zebra", 20, fill="profile")
    assert texts(hits) == [f"Preference {n} is about something else" for n in (7, 6, 5, 4, 3)]
    for n in range(4):
        call.remember(f"The zebra number {n} came at {n} o'clock to drink")
    assert [hit["standing"] for hit in asked(call, "When did the zebra come?", 4, fill="profile")].count(True) == 2


def test_standing_notes_pass_the_filter_and_are_left_out_when_they_are_known(call: Caller) -> None:
    known = call.remember("Prefers tea", memory_type="preference", session_id="one")["id"]
    call.remember("Prefers black ink", memory_type="preference", session_id="two")
    assert texts(asked(call, "zebra", fill="profile", exclude=[known])) == ["Prefers black ink"]
    inside = call.hits("zebra", session_id="one", kronmem={"fill": "profile"})
    assert texts(inside) == ["Prefers tea"]


def test_a_standing_note_gives_way_to_a_later_one_that_replaces_it(call: Caller) -> None:
    call.remember("The editor uses dark mode.", memory_type="preference")
    call.remember("I switched to light mode in the editor.")
    assert texts(asked(call, "zebra", fill="profile")) == ["I switched to light mode in the editor."]


WHO = (
    *("Who am I?", "What do you know about me?", "Do you remember me?", "Tell me about myself", "about the user"),
    *("Do you know who I am?", "hi, what have you learned about me so far?", "Who is the user?", "Have we met before?"),
    *("Wer bin ich?", "Was weißt du über mich?", "Erinnern Sie sich an mich?", "Kennst du mich noch?"),
    *("Qui suis-je ?", "Que sais-tu de moi ?", "Tu te souviens de moi ?", "¿Quién soy?", "¿Qué sabes de mí?"),
    *(
        "¿Te acuerdas de mí?",
        "Guten Morgen, wer bin ich und was wissen Sie von mir?",
        "what can you tell me about myself?",
    ),
)
OTHERS = (
    *("Who am I meeting on Friday?", "What do you know about Ada?", "Do you remember me mentioning the budget?"),
    *(
        "Who am I supposed to call?",
        "Tell me about the launch",
        "What did I tell you about Tom?",
        "Where am I?",
        "Hello!",
    ),
)


def test_questions_about_the_asker_are_answered_by_the_profile(call: Caller) -> None:
    facts = ("I'm allergic to penicillin", "I work as a vet", IDENTITY)
    for fact in facts:
        call.remember(fact, role="user")
    for n in range(60):
        call.remember(f"Ticket {n} was closed", role="user")
    call.remember("Prefers tea", memory_type="preference")
    call.remember("As an assistant I suggest more sleep", role="assistant")
    for question in WHO:
        hits = asked(call, question)
        assert set(texts(hits[:4])) == {"Prefers tea", *facts}, question
        assert all(hit["standing"] and hit["similarity"] == 0.0 for hit in hits)
    for question in OTHERS:
        assert not any(hit["standing"] for hit in asked(call, question)), question


def test_who_knows_nothing_of_the_user_says_so_by_silence(call: Caller) -> None:
    call.remember("The API runs on port 80")
    call.remember("As an assistant I suggest more sleep", role="assistant")
    assert [asked(call, question) for question in WHO] == [[]] * len(WHO)


@pytest.mark.parametrize("notes", ["User lives in Oslo", "I live in Oslo"])
def test_whoever_asks_is_the_user(call: Caller, notes: str) -> None:
    call.remember("Tom lives in Rome")
    call.remember(notes)
    for question in ("Where do I live?", "Where does the user live?"):
        assert texts(asked(call, question))[0] == notes


def test_a_context_fills_up_with_what_the_caller_has_not(call: Caller) -> None:
    known = [call.remember(f"Preference {n}", memory_type="preference")["id"] for n in range(30)]
    call.remember("The roof is red")
    body = {"query": "general context", "kronmem": {"fill": True, "limit": 8, "exclude": known}}
    assert texts(call("POST", "inject-context", body)[1]["memories"]) == ["The roof is red"]


def test_lists_of_topics_find_something_for_each(call: Caller) -> None:
    notes = ("My daughter starts school in September", "I'm allergic to penicillin", "I take the 7:40 train to Basel")
    for note in (*notes, "The dishwasher leaks", "Copper conducts heat"):
        call.remember(note)
    assert set(texts(asked(call, "family, medical information and commute", 3))) == set(notes)
