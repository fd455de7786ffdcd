"""KronmemContextProvider with real agents: what the model sees, what is stored, and for whom."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import anyio
import pytest
from agent_framework import Agent, Content, InMemoryHistoryProvider, Message

from kronmem import AsyncClient, ConfigError, InvalidInputError, Memory, extract_facts
from kronmem.agent_framework import KronmemContextProvider, KronmemHistoryProvider
from tests.agent_framework.scripted import Scripted, blocks, results, words

pytestmark = pytest.mark.anyio

TEA = "My favourite tea is sencha from Uji, by the way."
ASKED = "Which tea is my favourite?"
PATIENT = 60.0
current_user: ContextVar[str] = ContextVar("current_user")


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient("sqlite://") as client:
        yield client


def provider(client: AsyncClient, agent_id: Any = "ada", **options: Any) -> KronmemContextProvider:
    return KronmemContextProvider(agent_id, client=client, **{"timeout": PATIENT, "capture": "all", **options})


def agent(model: Scripted, *providers: Any) -> Agent[Any]:
    return Agent(client=model, name="helper", context_providers=list(providers))


async def stored(client: AsyncClient, agent_id: str = "ada") -> list[Memory]:
    return [memory async for memory in client.memories(agent_id)][::-1]


async def test_the_words_and_the_answer_are_stored_with_their_speakers(client: AsyncClient) -> None:
    model = Scripted("I will keep your sencha in mind.")
    await agent(model, provider(client)).run(TEA)
    kept = await stored(client)
    assert [one.content for one in kept] == [TEA, "I will keep your sencha in mind."]
    assert [one.metadata["speaker"] for one in kept] == ["user", "helper"]
    assert [one.role or one.metadata["role"] for one in kept] == ["user", "assistant"]
    assert {one.memory_type for one in kept} == {"interaction"}


async def test_the_words_are_stored_when_the_model_fails_and_its_answer_is_not(client: AsyncClient) -> None:
    with pytest.raises(RuntimeError, match="out of credits"):
        await agent(Scripted(RuntimeError("out of credits")), provider(client)).run(TEA)
    assert [one.content for one in await stored(client)] == [TEA]


async def test_a_stream_that_is_left_early_has_stored_the_words(client: AsyncClient) -> None:
    async for _ in agent(Scripted("I will keep it in mind."), provider(client)).run(TEA, stream=True):
        break
    assert [one.content for one in await stored(client)] == [TEA]


async def test_a_streamed_run_recalls_and_stores_like_any_other(client: AsyncClient) -> None:
    await client.remember("ada", TEA)
    model = Scripted("Sencha is what you like best.")
    async for _ in agent(model, provider(client)).run(ASKED, stream=True):
        pass
    assert words(model.prompts[0]) == ["user: BLOCK", f"user: {ASKED}"]
    assert [one.content for one in await stored(client)] == [TEA, ASKED, "Sencha is what you like best."]


@pytest.mark.parametrize("listed", ["history, memory", "memory, history", "memory"])
async def test_the_block_stands_before_the_newest_question_wherever_the_history_is_listed(
    client: AsyncClient, listed: str
) -> None:
    await client.remember("ada", TEA)
    model = Scripted("Hello.", "Sencha.")
    parts = {"history": InMemoryHistoryProvider(), "memory": provider(client, capture=False)}
    helper = agent(model, *(parts[name] for name in listed.split(", ")))
    session = helper.create_session()
    await helper.run("Good morning!", session=session)
    await helper.run(ASKED, session=session)
    expected = ["user: Good morning!", "assistant: Hello.", "user: BLOCK", f"user: {ASKED}"]
    assert words(model.prompts[-1]) == expected
    assert "sencha" not in str(session.to_dict()["state"].get("kronmem", {}))


@pytest.mark.parametrize("listed", ["history, memory", "memory, history"])
async def test_a_memory_that_the_history_holds_is_not_shown_again(client: AsyncClient, listed: str) -> None:
    model = Scripted("Noted.", "Sencha.")
    parts = {"history": KronmemHistoryProvider("ada", client=client, timeout=PATIENT), "memory": provider(client)}
    helper = agent(model, *(parts[name] for name in listed.split(", ")))
    session = helper.create_session()
    await helper.run(TEA, session=session)
    await helper.run(ASKED, session=session)
    assert words(model.prompts[-1]) == [f"user: {TEA}", "assistant: Noted.", f"user: {ASKED}"]


async def test_a_whole_conversation_as_input_is_asked_and_stored_by_its_newest_words(client: AsyncClient) -> None:
    await client.remember("ada", TEA)
    model = Scripted("Sencha.")
    said = [("user", "Tell me about the harbour of Kobe."), ("assistant", "It is old."), ("user", ASKED)]
    await agent(model, provider(client)).run([Message(role, [text]) for role, text in said])
    assert len(blocks(model.prompts[0])) == 1
    assert [one.content for one in await stored(client)] == [TEA, ASKED]


async def test_input_without_words_is_neither_asked_nor_stored(client: AsyncClient) -> None:
    await client.remember("ada", TEA)
    model = Scripted("A picture.")
    picture = Message("user", [Content.from_uri("https://example.org/tea.png", media_type="image/png")])
    await agent(model, provider(client)).run([picture])
    assert blocks(model.prompts[0]) == []
    assert [one.content for one in await stored(client)] == [TEA]


async def test_capture_may_be_off_or_keep_only_facts(client: AsyncClient) -> None:
    await agent(Scripted("Noted, as you say."), provider(client, "off", capture=False)).run(TEA)
    text = "It rains a lot today, does it not? I prefer green tea."
    await agent(Scripted("I see."), provider(client, "facts", capture=extract_facts)).run(text)
    assert await stored(client, "off") == []
    assert [(one.content, one.memory_type) for one in await stored(client, "facts")] == [
        ("I prefer green tea.", "preference")
    ]


async def test_a_message_that_comes_with_an_id_and_was_forgotten_is_not_stored_again(client: AsyncClient) -> None:
    for _ in range(2):
        told = Message("user", [TEA], message_id="m-1")
        await agent(Scripted("I see."), provider(client)).run(told)
        for one in await stored(client):
            await client.forget("ada", one.id)
    assert await stored(client) == []
    again = Message("user", [TEA], message_id="m-2")
    await agent(Scripted("I see."), provider(client)).run(again)
    assert [one.content for one in await stored(client)] == [TEA]


async def test_captured_words_may_have_a_lifetime(client: AsyncClient) -> None:
    await agent(Scripted("I will keep it in mind."), provider(client, ttl_days=3)).run(TEA)
    assert all(one.expires_at is not None for one in await stored(client))
    with pytest.raises(InvalidInputError):
        provider(client, ttl_days=-1)


async def test_two_memories_on_one_agent_have_tools_and_blocks_of_their_own(client: AsyncClient) -> None:
    await client.remember("ada", TEA)
    await client.remember("company", "The favourite tea of the company is Darjeeling")
    model = Scripted(("team_recall", {"query": "favourite tea"}), ("recall", {"query": "favourite tea"}), "Both.")
    shared = provider(client, "company", prefix="team_", source_id="company", capture=False)
    await agent(model, provider(client, capture=False), shared).run(ASKED)
    assert model.tools[0] == ["remember", "recall", "forget", "team_remember", "team_recall", "team_forget"]
    assert len(blocks(model.prompts[0])) == 2
    theirs, own = results(model.prompts[-1])
    assert "Darjeeling" in theirs
    assert "sencha" not in theirs
    assert "sencha" in own


async def test_tools_may_be_left_out_and_say_what_their_parameters_mean(client: AsyncClient) -> None:
    model = Scripted(*["Fine."] * 3)
    await agent(model, provider(client, tools=False)).run(ASKED)
    await agent(model, provider(client)).run(ASKED)
    await agent(model, provider(client, tools=["recall"])).run(ASKED)
    assert model.tools == [[], ["remember", "recall", "forget"], ["recall"]]
    with pytest.raises(InvalidInputError, match="only must"):
        provider(client, tools=["search"])


async def test_further_agents_are_read_and_named(client: AsyncClient) -> None:
    await client.remember("company", "The favourite tea of the company is Darjeeling")
    model = Scripted("Darjeeling.")
    await agent(model, provider(client, read_from=["company"])).run("Which tea is the favourite of the company?")
    (block,) = blocks(model.prompts[0])
    assert "from company" in block
    assert await stored(client, "company") != []
    assert len(await stored(client, "company")) == 1


async def test_a_callable_session_limits_what_is_read_and_stored(client: AsyncClient) -> None:
    session: ContextVar[str | None] = ContextVar("session", default="monday")
    memory = provider(client, session_id=session.get)
    await agent(Scripted("Noted."), memory).run(TEA)
    session.set("tuesday")
    model = Scripted("I do not know.")
    await agent(model, memory).run(ASKED)
    assert blocks(model.prompts[0]) == []
    assert [(one.content, one.session_id) for one in await stored(client)] == [(TEA, "monday"), (ASKED, "tuesday")]


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
        KronmemContextProvider(**{"agent_id": "ada", "client": client, **wrong})


@pytest.mark.slow
@pytest.mark.parametrize("method", ["recall", "remember_later"])
async def test_a_hook_ends_by_its_timeout_and_says_so_once(
    client: AsyncClient, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Hanging(AsyncClient):
        def with_timeout(self, timeout: float) -> AsyncClient:
            return self

    async def hang(*_: Any, **__: Any) -> Any:
        await anyio.sleep_forever()

    setattr(Hanging, method, hang)
    model = Scripted(*["It is what it is, as they say."] * 2)
    async with Hanging("sqlite://") as held:
        memory = KronmemContextProvider(
            "ada", client=held, timeout=0.2, capture=method == "remember_later", tools=False
        )
        helper = agent(model, memory)
        with anyio.fail_after(PATIENT):
            for _ in range(2):
                assert (await helper.run(TEA)).text == "It is what it is, as they say."
    subject = "memory of 'ada' is" if method == "recall" else "capture into the memory of 'ada' is"
    (line,) = [line for line in caplog.messages if line.startswith(subject)]
    assert "unavailable, going on without it (DeadlineError: memory did not answer within 0." in line


async def test_cancelling_a_run_ends_it_while_memory_hangs(client: AsyncClient) -> None:
    class Hanging(AsyncClient):
        def with_timeout(self, timeout: float) -> AsyncClient:
            return self

        async def recall(self, *_: Any, **__: Any) -> Any:
            asked.set()
            await anyio.sleep_forever()

    asked = anyio.Event()
    async with Hanging("sqlite://") as hanging, anyio.create_task_group() as group:
        helper = agent(Scripted("never"), KronmemContextProvider("ada", client=hanging, timeout=3600))
        group.start_soon(helper.run, ASKED)
        await asked.wait()
        group.cancel_scope.cancel()


@pytest.mark.slow  # a thousand runs take as long as the framework takes
@pytest.mark.timeout(600)
async def test_one_provider_serves_a_thousand_interleaved_runs_of_twenty_users_without_a_leak(
    client: AsyncClient,
) -> None:
    users = [f"user{number:02d}x" for number in range(20)]
    model = Scripted(script=answer)
    helper = agent(model, provider(client, current_user.get))

    async def talk(user: str) -> None:
        current_user.set(user)
        for turn in range(50):
            await helper.run(f"Turn {turn} of {user}: which secret code is mine?")

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


def answer(messages: Any) -> Any:
    """Store a note, look up the code, answer."""
    asked = next(one.text for one in reversed(messages) if one.role == "user")
    turn, user = asked.split()[1], asked.split()[3].rstrip(":")
    found = results(messages)
    if not found:
        return "remember", {"content": f"Note of {user} in turn {turn}"}
    return ("recall", {"query": "secret code"}) if len(found) == 1 else f"The code of {user} was looked up."


def leaks(prompts: Any, users: list[str]) -> list[str]:
    """Everything in a prompt that names another user than the one who asks; every prompt has to hold its block."""
    found: list[str] = []
    for prompt in prompts:
        user = prompt[-1].text.split()[3].rstrip(":") if prompt[-1].role == "user" else None
        user = user or next(one.text.split()[3].rstrip(":") for one in reversed(prompt) if one.role == "user")
        assert any(user in block for block in blocks(prompt))
        texts = [*(one.text for one in prompt), *results(prompt)]
        found.extend(text for text in texts for other in users if other != user and other in text)
    return found
