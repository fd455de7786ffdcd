"""The behaviour that every pack promises, asked of all four frameworks with their real agents and a scripted model."""

from __future__ import annotations

import gc
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from kronmem import Client
from kronmem.packs.block import is_block
from kronmem.packs.toolset import UNAVAILABLE
from tests.packs.frameworks import FRAMEWORKS, Classic, Framework, missing
from tests.services import RawServer
from tests.services.raw import close, hang, respond

pytestmark = [
    pytest.mark.anyio,
    # The sockets, event loops and models of the frameworks are not ours.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:autogen.*"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pydantic.*"),
]

TEA = "The favourite tea of the user is sencha from Uji"
ASKED = "Which tea is the favourite of the user?"
FAULTS: dict[str, Any] = {
    "down": close(),
    "hanging": hang(),
    "failing": respond(500),
    "html": respond(200, body="<html>"),
    "lying": respond(200, body={"results": [{"memory": 7, "score": "high"}]}),
    "refusing": respond(401),
}
current_user: ContextVar[str] = ContextVar("current_user")

Make = Callable[..., Framework]


@pytest.fixture(autouse=True, scope="module")
def no_litter() -> Iterator[None]:
    """Both AutoGens leave sockets open: they are swept up here, before they warn in another module's test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


# Importing AG2, and classic AutoGen's making of agents, take longer than all other tests here together.
SLOW = {"ag2", "classic"}


@pytest.fixture(params=[pytest.param(one, marks=pytest.mark.slow) if one in SLOW else one for one in FRAMEWORKS])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    """Makes memories of one framework, closed after the test."""
    if lacking := missing(request.param):
        pytest.skip(f"{', '.join(lacking)} is not installed: pip install 'kronmem[dev]'")
    opened: list[Framework] = []

    def make(agent_id: str | Callable[[], str], url: str, timeout: float = 60) -> Framework:
        opened.append(FRAMEWORKS[request.param][0](agent_id, url, timeout))
        return opened[-1]

    yield make
    for one in opened:
        await one.close()


@pytest.fixture
def file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/memory.db"


def remember(url: str, agent_id: str, *texts: str) -> None:
    with Client(url) as client:
        for text in texts:
            client.remember(agent_id, text)


def stored(url: str, agent_id: str) -> list[str]:
    with Client(url) as client:
        return [memory.content for memory in client.memories(agent_id)]


def blocks(texts: list[str]) -> list[str]:
    return [text for text in texts if is_block(text)]


async def test_a_memory_that_fits_stands_right_before_the_question_and_in_no_history(make: Make, file: str) -> None:
    remember(file, "ada", TEA)
    seen = await make("ada", file).turn(ASKED, "Sencha.")
    (prompt,) = seen.prompts
    block, question = prompt[-2:]
    assert seen.answer == "Sencha."
    assert is_block(block)
    assert TEA in block
    assert question == ASKED
    assert len(blocks(prompt)) == 1
    assert any(ASKED in text for text in seen.history)
    assert not [text for text in seen.history if TEA in text or "<memory" in text]


async def test_without_a_memory_that_fits_the_prompt_is_what_it_would_have_been(make: Make, file: str) -> None:
    seen = await make("ada", file).turn(ASKED, "I do not know.")
    assert seen.prompts[0][-1] == ASKED
    assert blocks(seen.prompts[0]) == []
    assert not any("<memory" in text for text in seen.prompts[0])


async def test_words_of_one_turn_are_known_to_new_agents_in_the_next(make: Make, file: str) -> None:
    await make("ada", file).turn("My favourite tea is sencha from Uji, by the way.", "Noted.")
    assert "My favourite tea is sencha from Uji, by the way." in stored(file, "ada")
    seen = await make("ada", file).turn("Which tea is my favourite?", "Sencha.")
    (block,) = blocks(seen.prompts[0])
    assert "sencha from Uji" in block
    assert not [text for text in stored(file, "ada") if "<memory" in text]


async def test_words_said_again_after_they_were_forgotten_are_stored_again(make: Make, file: str) -> None:
    memory = make("ada", file)
    for _ in range(2):
        await memory.turn("My favourite tea is sencha from Uji, by the way.", "I will keep that in mind.")
        assert len(stored(file, "ada")) == 2
        await memory.turn("My favourite tea is sencha from Uji, by the way.", "I will keep that in mind.")
        assert len(stored(file, "ada")) == 2, "said again while it is known, it is one memory"
        with Client(file) as client:
            for one in list(client.memories("ada")):
                client.forget("ada", one.id)


async def test_an_older_service_answers_each_turn_with_the_memories_that_are_not_in_the_prompt(
    make: Make, older: str
) -> None:
    remember(older, "ada", TEA)
    memory = make("ada", older)
    for _ in range(2):
        (block,) = blocks((await memory.turn(ASKED, "Sencha.")).prompts[0])
        assert TEA in block
    assert ASKED not in block
    for tool in (("recall", {"query": "*"}), ("remember", {"content": "Tea at 5."})):
        assert not [text for text in (await memory.turn("Go on.", tool, "Done.")).results if UNAVAILABLE in text]
    assert "Tea at 5." in await to_thread.run_sync(stored, older, "ada")


CODES = {"ada": "4711", "bob": "9823"}
TURNS = 20


@pytest.mark.slow
async def test_captured_questions_do_not_crowd_out_the_fact_that_they_ask_for(make: Make, file: str) -> None:
    for name, code in CODES.items():
        remember(file, name, f"The door code of the office is {code}.")
    memory, without = make(current_user.get, file), 0
    for number in range(1, TURNS + 1):
        for name, code in CODES.items():
            current_user.set(name)
            words = f"{name.title()} asks in turn {number}: what is the door code?"
            seen = await memory.turn(words, f"Let me think about question {number}, please wait a moment.")
            without += not any(code in text for text in seen.prompts[0])
    asked = [text for text in stored(file, "ada") if text.endswith("what is the door code?")]
    assert len(asked) == TURNS, "questions are stored"
    # Of 40 turns 34 were without the code when questions counted as much as statements.
    assert without <= 4


async def test_the_model_remembers_and_recalls_by_itself(make: Make, file: str) -> None:
    memory = make("ada", file)
    told = await memory.turn("Please note my tea.", ("remember", {"content": TEA}), "Done.")
    assert told.answer == "Done."
    assert told.results[0].startswith("Stored (id ")
    assert TEA in stored(file, "ada")
    asked = await memory.turn(ASKED, ("recall", {"query": "favourite tea"}), "Sencha.")
    assert TEA in asked.results[-1]
    # While tools are at work it is the same turn: the same block, once.
    first, second = (blocks(prompt) for prompt in asked.prompts)
    assert len(first) == 1
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_service_at_fault_costs_the_memory_and_never_the_answer(make: Make, fault: str) -> None:
    with RawServer([FAULTS[fault]]) as server:
        memory = make("ada", server.url, 0.3)
        with anyio.fail_after(60):
            seen = await memory.turn(ASKED, ("recall", {"query": "tea"}), "I do not know.")
        assert server.requests, "the memory was asked at all"
    assert seen.answer == "I do not know."
    assert [blocks(prompt) for prompt in seen.prompts] == [[], []]
    assert seen.results == [UNAVAILABLE]


async def test_one_object_serves_many_users_at_once(make: Make, file: str) -> None:
    users = [f"user-{number}" for number in range(4)]
    for user in users:
        remember(file, user, f"The secret tea of this person is called {user}-blend")
    memory = make(current_user.get, file)
    leaks: list[str] = []

    async def talk(user: str) -> None:
        current_user.set(user)
        calls = [("remember", {"content": f"Another secret tea of this person is {user}-oolong"})]
        for call in [*calls, ("recall", {"query": "secret tea"})]:
            seen = await memory.turn("Which secret tea is it?", call, "It is a secret.")
            texts = [text for prompt in seen.prompts for text in prompt] + seen.results
            assert any(f"{user}-blend" in text for text in texts)
            leaks.extend(text for text in texts for other in users if other != user and other in text)

    await together([lambda user=user: talk(user) for user in users])  # type: ignore[misc] # bound now
    assert leaks == []
    for user in users:
        assert not [text for text in stored(file, user) for other in users if other != user and other in text]
        assert f"Another secret tea of this person is {user}-oolong" in stored(file, user)


async def together(work: list[Callable[[], Awaitable[None]]]) -> None:
    async with anyio.create_task_group() as group:
        for one in work:
            group.start_soon(one)


async def test_without_a_user_the_agent_answers_and_nothing_is_read_or_stored(make: Make, file: str) -> None:
    def nobody() -> str:
        raise LookupError("nobody is logged in")

    remember(file, "ada", TEA)
    seen = await make(nobody, file).turn(ASKED, ("recall", {"query": "tea"}), "Who are you?")
    assert seen.answer == "Who are you?"
    assert [blocks(prompt) for prompt in seen.prompts] == [[], []]
    assert seen.results[0].startswith("Not done: agent_id could not be resolved")
    with Client(file) as client:
        assert [(agent.name, agent.memory_count) for agent in client.agents()] == [("ada", 1)]


async def test_after_close_the_tools_work_as_recall_and_capture_do(make: Make, file: str) -> None:
    memory = make("ada", file)
    if isinstance(memory, Classic):
        pytest.skip("its client is the user's, who closes it for good")
    await memory.turn("Hello there.", "Hello.")
    await memory.close()
    seen = await memory.turn("Keep my ship, please.", ("remember", {"content": "The ship is called Aurora"}), "Kept.")
    assert [result.split(" (")[0] for result in seen.results] == ["Stored"]
    assert "The ship is called Aurora" in stored(file, "ada")
