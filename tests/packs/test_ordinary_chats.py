"""An ordinary chat in all four packs: what it keeps, and what its model is shown of what was kept before."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kronmem import Client, extract_facts
from kronmem.packs.block import is_block
from kronmem.packs.no_echo import Prompt, _statement
from tests.packs.chats import CHATS
from tests.packs.frameworks import missing
from tests.packs.test_frameworks import SLOW, no_litter  # noqa: F401 -- a fixture

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

NOTES = (
    *("Ada is allergic to peanuts", "Ada hikes in the Tatra mountains every June", "The car of Ada is a red Skoda"),
    *("Ada works as a nurse in Brno", "The cat of Ada is called Mila", "Ada plays the cello in an orchestra"),
    *("Ada prefers trains to planes", "The flat of Ada is on the fourth floor", "Ada reads Polish novels"),
    *("Ada learns Finnish on Tuesdays", "The brother of Ada lives in Gdansk"),
)
SNACKS = [
    ("Which snacks are good for a long hike?", "Dried fruit and bread keep well."),
    ("We hike for three days with two friends.", "Then plan three meals a day."),
    ("Are peanut butter sandwiches a good idea?", "They are dense in energy."),
    ("How much water does each of us need?", "About three litres a day."),
    ("Would peanuts as a snack keep in the heat?", "Most of them keep for weeks."),
    ("Can we cook on the huts?", "Most huts have a stove."),
    ("What about a bag of salted peanuts for the top?", "It weighs little."),
    ("What should I pack first?", "The heavy things."),
]
CHATTER = [
    ("Hello! How are you?", "Hello! I'm doing great, thank you for asking."),
    ("I'm vegan.", "Understood, no meat and no dairy for you."),
    ("My name is Ada.", "Nice to meet you, Ada!"),
    ("No bullet lists!", "Of course."),
    ("What if I moved to Berlin?", "Then you would live in Germany."),
    ("Could you suggest a soup?", "I suggest a lentil soup with lemon. Would you like the recipe?"),
    ("yes please", "Agreed: the soup for Friday is lentil soup with lemon. Shall I write a shopping list?"),
    ("Keiko: no nuts", "Noted."),
    ("moved to NixOS", "You told me that you moved to NixOS."),
    ("Thanks, bye!", "Goodbye, Ada! Let me know if you need anything else."),
]
KEPT = {"I'm vegan.", "My name is Ada.", "No bullet lists!", "Keiko: no nuts", "moved to NixOS"}
AGREED = "Agreed: the soup for Friday is lentil soup with lemon."


@pytest.fixture(params=[pytest.param(one, marks=pytest.mark.slow) if one in SLOW else one for one in CHATS])
def chat(request: pytest.FixtureRequest) -> Any:
    if gone := missing(request.param):
        pytest.skip(f"{gone} not installed")
    return CHATS[request.param]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/memory.db"


def rows(url: str) -> dict[str, str]:
    with Client(url) as client:
        return {one.content: one.memory_type for one in client.memories("ada")}


def lines(prompt: list[str]) -> list[str]:
    """The memories in the block of a prompt."""
    return [line for text in prompt if is_block(text) for line in re.findall(r"^\d+\. \([^()]*\) (.+)", text, re.M)]


async def test_what_matters_is_shown_and_what_stands_in_the_prompt_is_not(chat: Any, url: str) -> None:
    with Client(url) as client:
        client.remember_many("ada", NOTES)
    prompts = await chat(url, "ada", SNACKS)
    for (words, _), prompt in zip(SNACKS, prompts, strict=True):
        said = Prompt(text for text in prompt if not is_block(text))
        assert not [line for line in lines(prompt) if said.holds(_statement(line))]
        assert "Ada is allergic to peanuts" in lines(prompt) or "peanut" not in words
    assert "We hike for three days with two friends." in rows(url)
    await chat(url, "ada", [("Who hikes with me for three days?", "Two friends.")])
    (prompt,) = await chat(url, "ada", [("With how many friends do we hike for three days?", "Two.")])
    assert "We hike for three days with two friends." in lines(prompt), "what is out of the prompt is found again"


async def test_what_is_stated_is_kept_and_small_talk_is_not(chat: Any, url: str) -> None:
    prompts = await chat(url, "ada", CHATTER)
    assert len(prompts) == len(CHATTER)
    kept = rows(url)
    assert set(kept) == KEPT | {AGREED}
    assert (kept["No bullet lists!"], kept["I'm vegan."], kept[AGREED]) == ("preference", "fact", "decision")


async def test_capture_may_be_of_the_user_alone_of_everything_or_by_a_function(chat: Any, url: str) -> None:
    def loud(text: str, role: str) -> list[str]:
        return [f"{role} {text.upper()}"] if role == "user" else []

    turns = [("I'm vegan.", "Agreed: lentil soup on Friday."), ("Good, thank you for all the help.", "Bye.")]
    await chat(url, "ada", turns, capture="user")
    assert set(rows(url)) == {"I'm vegan."}
    await chat(url, "ada", turns, capture=loud)
    assert "user GOOD, THANK YOU FOR ALL THE HELP." in rows(url)
    await chat(url, "ada", turns, capture=extract_facts)
    assert "Good, thank you for all the help." not in rows(url)
    await chat(url, "ada", turns, capture="all")
    assert {"Good, thank you for all the help.", "Agreed: lentil soup on Friday."} <= set(rows(url))


async def test_a_sentence_that_three_agents_hear_is_stored_once(chat: Any, url: str) -> None:
    for _ in range(3):
        await chat(url, "ada", [("Keiko: no nuts", "Noted.")])
    assert list(rows(url)) == ["Keiko: no nuts"]


@pytest.mark.slow
async def test_an_assistant_that_is_attached_alone_keeps_what_it_is_told(url: str) -> None:
    if missing("classic"):
        pytest.skip("classic AutoGen not installed")
    await CHATS["classic"](url, "ada", CHATTER, alone=True)
    assert set(rows(url)) == KEPT | {AGREED}
