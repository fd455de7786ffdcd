"""KronmemPlugin with real agents of AG2 1.x: what the model sees, what is stored, and for whom."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from kronmem import AsyncClient, ConfigError, InvalidInputError, Memory, extract_facts
from tests.extras import Lazy

ag2, pack, scripted = Lazy("ag2"), Lazy("kronmem.ag2"), Lazy("tests.ag2.scripted")

# Importing AG2 takes longer than these tests.
pytestmark = [pytest.mark.anyio, pytest.mark.slow]

TEA = "My favourite tea is sencha from Uji, by the way."
ASKED = "Which tea is my favourite?"
PATIENT = 60.0
current_user: ContextVar[str] = ContextVar("current_user")


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient("sqlite://") as client:
        yield client


def plugin(client: AsyncClient, agent_id: Any = "ada", **options: Any) -> Any:
    return pack.KronmemPlugin(agent_id, client=client, **{"timeout": PATIENT, "capture": "all", **options})


def agent(model: Any, *plugins: Any, **options: Any) -> Any:
    return ag2.Agent("helper", "Be brief.", config=model, plugins=plugins, **options)


async def stored(client: AsyncClient, agent_id: str = "ada") -> list[Memory]:
    return [memory async for memory in client.memories(agent_id)][::-1]


async def test_the_words_and_the_answer_are_stored_with_their_speakers(client: AsyncClient) -> None:
    await agent(scripted.Scripted("I will keep your sencha in mind."), plugin(client)).ask(TEA)
    kept = await stored(client)
    assert [one.content for one in kept] == [TEA, "I will keep your sencha in mind."]
    assert [one.role or one.metadata["role"] for one in kept] == ["user", "assistant"]
    assert {one.memory_type for one in kept} == {"interaction"}


async def test_the_words_are_stored_when_the_model_fails_and_its_answer_is_not(client: AsyncClient) -> None:
    with pytest.raises(RuntimeError, match="out of credits"):
        await agent(scripted.Scripted(RuntimeError("out of credits")), plugin(client)).ask(TEA)
    assert [one.content for one in await stored(client)] == [TEA]


async def test_each_turn_of_a_conversation_has_one_block_before_its_own_words(client: AsyncClient) -> None:
    await client.remember("ada", TEA)
    await client.remember("ada", "The harbour of Kobe closes on Friday")
    model = scripted.Scripted("Sencha.", ("recall", {"query": "harbour of Kobe"}), "On Friday.")
    reply = await agent(model, plugin(client, capture=False)).ask(ASKED)
    reply = await reply.ask("When does the harbour of Kobe close?")
    asked = "When does the harbour of Kobe close?"
    first, second, third = map(scripted.words, model.prompts)
    assert first == ["BLOCK", ASKED]
    assert second == [ASKED, "Sencha.", "BLOCK", asked]
    assert third == [*second, "ModelResponse", "ToolResultsEvent"]
    assert "harbour" in scripted.blocks(model.prompts[1])[0]
    assert scripted.blocks(model.prompts[1]) == scripted.blocks(model.prompts[2])
    events = await reply.history.get_events()
    assert not any(scripted.is_block(scripted.text(event)) for event in events)


async def test_one_recall_serves_all_model_calls_of_a_turn(client: AsyncClient) -> None:
    asked: list[str] = []

    class Counting(AsyncClient):
        def with_timeout(self, timeout: float) -> AsyncClient:
            return self

        async def recall(self, agent_id: str, query: str, *args: Any, **options: Any) -> Any:
            asked.append(query)
            return await client.recall(agent_id, query, *args, **options)

    model = scripted.Scripted(("remember", {"content": TEA}), ("remember", {"content": "More"}), "Done.")
    async with Counting("sqlite://") as counting:
        await agent(model, plugin(counting, capture=False)).ask(ASKED)
    assert len(model.prompts) == 3
    assert asked == [ASKED]


async def test_capture_may_be_off_or_keep_only_facts(client: AsyncClient) -> None:
    await agent(scripted.Scripted("Noted, as you say."), plugin(client, "off", capture=False)).ask(TEA)
    text = "It rains a lot today, does it not? I prefer green tea."
    await agent(scripted.Scripted("I see."), plugin(client, "facts", capture=extract_facts)).ask(text)
    assert await stored(client, "off") == []
    assert [(one.content, one.memory_type) for one in await stored(client, "facts")] == [
        ("I prefer green tea.", "preference")
    ]


async def test_captured_words_may_have_a_lifetime(client: AsyncClient) -> None:
    await agent(scripted.Scripted("I will keep it in mind."), plugin(client, ttl_days=3)).ask(TEA)
    assert [one.expires_at is not None for one in await stored(client)] == [True, True]
    with pytest.raises(InvalidInputError):
        plugin(client, ttl_days=-1)


async def test_two_memories_on_one_agent_have_tools_and_blocks_of_their_own(client: AsyncClient) -> None:
    await client.remember("ada", TEA)
    await client.remember("company", "The favourite tea of the company is Darjeeling")
    calls = [("team_recall", {"query": "favourite tea"}), ("recall", {"query": "favourite tea"})]
    model = scripted.Scripted(*calls, "Both.")
    shared = plugin(client, "company", prefix="team_", capture=False)
    await agent(model, plugin(client, capture=False), shared).ask(ASKED)
    assert sorted(model.tools[0]) == sorted(
        ["remember", "recall", "forget", "team_remember", "team_recall", "team_forget"]
    )
    assert len(scripted.blocks(model.prompts[0])) == 2
    theirs, own = scripted.results(model.prompts[-1])
    assert "Darjeeling" in theirs
    assert "sencha" not in theirs
    assert "sencha" in own


async def test_tools_may_be_left_out_and_say_what_their_parameters_mean(client: AsyncClient) -> None:
    model = scripted.Scripted("Fine.", "Fine.")
    await agent(model, plugin(client, tools=False)).ask(ASKED)
    await agent(model, plugin(client)).ask(ASKED)
    assert model.tools == [[], ["remember", "recall", "forget"]]
    remember = model.schemas[-1][0].function
    described = {name: one.get("description") for name, one in remember.parameters["properties"].items()}
    assert set(described) == {"content", "memory_type", "key"}
    assert all(described.values()), described


async def test_a_window_that_cuts_the_block_off_is_no_error(client: AsyncClient) -> None:
    from ag2.policies import SlidingWindowPolicy

    await client.remember("ada", TEA)
    model = scripted.Scripted("I do not know.")
    reply = await agent(model, plugin(client), assembly=[SlidingWindowPolicy(1)]).ask(ASKED)
    assert reply.body == "I do not know."
    assert scripted.words(model.prompts[0])[-1] == ASKED


async def test_one_plugin_serves_several_agents(client: AsyncClient) -> None:
    shared = plugin(client)
    await agent(scripted.Scripted("Noted, thank you very much."), shared).ask(TEA)
    model = scripted.Scripted("Sencha.")
    await ag2.Agent("writer", config=model, plugins=[shared]).ask(ASKED)
    assert "sencha" in scripted.blocks(model.prompts[0])[0]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"agent_id": "a/b"}, InvalidInputError),
        ({"limit": 0}, InvalidInputError),
        ({"timeout": 0}, ConfigError),
        ({"prefix": "a b"}, InvalidInputError),
        ({"read_from": "company"}, InvalidInputError),
        ({"url": "sqlite://"}, ConfigError),
        ({"client": AsyncClient("http://127.0.0.1:9", outbox=False)}, ConfigError),
    ],
)
async def test_a_wrong_argument_is_refused_at_once(client: AsyncClient, wrong: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        pack.KronmemPlugin(**{"agent_id": "ada", "client": client, **wrong})


@pytest.mark.parametrize("method", ["recall", "remember_later"])
async def test_a_turn_ends_although_memory_hangs_and_it_is_told_once(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Hanging(AsyncClient):
        def with_timeout(self, timeout: float) -> AsyncClient:
            return self

    async def hang(*_: Any, **__: Any) -> Any:
        await anyio.sleep_forever()

    setattr(Hanging, method, hang)
    async with Hanging("sqlite://") as held:
        memory = plugin(held, timeout=0.2, capture=method == "remember_later", tools=False)
        helper = agent(scripted.Scripted(*["It is what it is, as they say."] * 2), memory)
        with anyio.fail_after(PATIENT):
            for _ in range(2):
                assert (await helper.ask(TEA)).body == "It is what it is, as they say."
    subject = "memory of 'ada' is" if method == "recall" else "capture into the memory of 'ada' is"
    (line,) = [line for line in caplog.messages if line.startswith(subject)]
    assert "unavailable, going on without it (DeadlineError: memory did not answer within 0." in line


@pytest.mark.timeout(600)
async def test_one_plugin_serves_a_thousand_interleaved_turns_of_twenty_users_without_a_leak(
    client: AsyncClient,
) -> None:
    users = [f"user{number:02d}x" for number in range(20)]
    model = scripted.Scripted(script=answer)
    helper = agent(model, plugin(client, current_user.get))

    async def talk(user: str) -> None:
        current_user.set(user)
        for turn in range(50):
            await helper.ask(f"Turn {turn} of {user}: which secret code is mine?")

    async with anyio.create_task_group() as group:
        for user in users:
            await client.remember(user, f"The secret code of this person is {user}")
            group.start_soon(talk, user)
    assert len(model.prompts) == 3000
    assert leaks(model.prompts, users) == []
    for user in users:
        texts = [one.content for one in await stored(client, user)]
        assert not [text for text in texts for other in users if other != user and other in text]
        assert len([text for text in texts if text.startswith("Note of ")]) == 50


def asking(prompt: Any) -> list[str]:
    """The number of the turn and the user who asks in it."""
    question = next(text for text in reversed(scripted.words(prompt)) if text.startswith("Turn "))
    return [question.split()[1], question.split()[3].rstrip(":")]


def answer(events: Any) -> Any:
    """Store a note, look up the code, answer."""
    (turn, user), found = asking(events), scripted.results(events)
    if not found:
        return "remember", {"content": f"Note of {user} in turn {turn}"}
    return ("recall", {"query": "secret code"}) if len(found) == 1 else f"The code of {user} was looked up."


def leaks(prompts: Any, users: list[str]) -> list[str]:
    """Everything in a prompt that names another user than the one who asks; every prompt has to hold its block."""
    found: list[str] = []
    for prompt in prompts:
        _, user = asking(prompt)
        assert any(user in block for block in scripted.blocks(prompt))
        texts = [*map(scripted.text, prompt), *scripted.results(prompt)]
        found.extend(text for text in texts for other in users if other != user and other in text)
    return found
