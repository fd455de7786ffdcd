"""Capture in both shells: for whom, as which memories, and never with an exception."""

from __future__ import annotations

import gc
import threading
from collections.abc import Awaitable, Iterator
from contextvars import ContextVar, copy_context
from typing import Any

import anyio
import pytest

from kronmem import AsyncClient, Client, ConfigError, InvalidInputError, extract_facts
from kronmem.packs.capture import MAX_PIECE_CHARS, AsyncCapture, Capture, CaptureRules, Utterance, capture_rules
from kronmem.packs.deadlines import LogOnce

LONG = "I prefer trains over planes, always."
current_user: ContextVar[str] = ContextVar("current_user")


def said(text: str = LONG, turn: int = 0, role: Any = "user") -> Utterance:
    return Utterance(text, "ann", role, {"chat": "c1", "turn": turn})


@pytest.fixture
def client() -> Iterator[Client]:
    with Client.local(":memory:") as client:
        yield client


ALL = CaptureRules("all")


def found(rules: CaptureRules, one: Utterance, agent_id: str = "ada", session_id: str | None = None) -> list[Any]:
    texts = rules.find(one)
    assert not isinstance(texts, Awaitable)
    return list(rules.memories(one, texts, agent_id, session_id))


def test_the_rules_say_what_is_stored_and_under_which_id() -> None:
    assert [ALL.accept(said(text)) for text in ("", "ok", LONG)] == [False, False, True]
    assert [CaptureRules().accept(said(text)) for text in ("", "ok", LONG)] == [False, True, True]
    assert [CaptureRules("user").accept(said(role=role)) for role in ("user", "assistant")] == [True, False]
    (one,) = found(ALL, said())
    assert (one.text, one.memory_type) == (LONG, "interaction")
    assert (one.metadata, one.role) == ({"speaker": "ann", "chat": "c1", "turn": 0}, "user")
    assert one.memory_id == found(ALL, said())[0].memory_id
    others = [(said(turn=1), "ada", None), (said(role="assistant"), "ada", None), (said(), "bob", None)]
    others.append((said(), "ada", "monday"))
    ids = {one.memory_id, *(found(ALL, *other)[0].memory_id for other in others)}
    assert len(ids) == 5
    assert len(found(ALL, said("x" * (2 * MAX_PIECE_CHARS + 1)))) == 3


def test_a_memory_has_the_type_of_its_statement_as_it_was_written() -> None:
    text = "I'm Ann. No bullet lists! What is new? The parcel is here."
    kinds = {one.text: one.memory_type for one in found(CaptureRules(), said(text))}
    assert kinds == {"I'm Ann.": "fact", "No bullet lists!": "preference", "The parcel is here.": "interaction"}
    assert [one.memory_type for one in found(CaptureRules(extract_facts), said("I prefer tea."))] == ["preference"]
    assert [one.memory_type for one in found(CaptureRules(str.split), said("tea"))] == ["fact"]


def test_a_function_is_given_the_role_if_it_asks_for_it() -> None:
    def keep(text: str, role: str) -> list[str]:
        return [f"{role}: {text}"]

    assert [one.text for one in found(CaptureRules(keep), said("tea", role="assistant"))] == ["assistant: tea"]


@pytest.mark.parametrize("wrong", ["some", "", None, 1.5])
def test_another_word_for_capture_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match='"auto", "user", "all", False'):
        capture_rules(wrong)


def test_a_blocking_chat_takes_no_async_function(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    async def later(text: str) -> list[str]:
        return [text]

    with pytest.raises(ConfigError, match="async function"):
        capture_rules(later, awaits=False)
    capture = Capture(client.agent("ada"), CaptureRules(lambda text: later(text)), 60.0, LogOnce("capture"))
    capture.take(said)
    assert capture.flush(60.0) == 0
    assert "pass a plain function" in caplog.text
    gc.collect()


def test_a_blank_or_overlong_find_does_not_cost_the_others(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    capture = Capture(client.agent("ada"), CaptureRules(str.splitlines), 60.0, LogOnce("capture"))
    capture.take(lambda: said(f"I like tea.\n \n{'x' * (MAX_PIECE_CHARS + 1)}\nI live in Porto."))
    assert capture.flush(60.0) == 0
    kept = sorted(one.content for one in client.memories("ada"))
    assert kept == ["I like tea.", "I live in Porto.", "x", "x" * MAX_PIECE_CHARS]
    assert caplog.messages == []


def test_ids_are_those_of_earlier_versions() -> None:
    (one,) = found(ALL, said())
    assert one.memory_id == "273a4624-8437-52ba-b1a2-0852608a941c"


def test_background_capture_belongs_to_the_user_of_the_hook(client: Client) -> None:
    release = threading.Event()
    local = threading.local()
    local.user = "ada"  # of this thread: the one that stores has none

    def slow(text: str) -> list[str]:
        release.wait(60)
        return [text]

    capture = Capture(client.agent(lambda: str(local.user)), CaptureRules(slow), 5.0, LogOnce("capture"))
    capture.take(said)
    local.user = "bob"
    release.set()
    assert capture.flush(30) == 0
    assert [one.content for one in client.memories("ada")] == [LONG]
    assert list(client.memories("bob")) == []


def test_without_a_user_nothing_is_captured(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    capture = Capture(client.agent(current_user.get), CaptureRules("all"), 5.0, LogOnce("capture"))
    copy_context().run(capture.take, said)
    assert capture.flush(30) == 0
    assert client.agents() == []
    assert "InvalidInputError" in caplog.text


def test_capture_logs_once_and_goes_on(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    def moody(text: str) -> list[str]:
        if "planes" in text:
            raise KeyError(text)
        return [text]

    capture = Capture(client.agent("ada"), CaptureRules(moody), 5.0, LogOnce("capture"))
    for text in (LONG, LONG, "I live in Utrecht."):
        capture.take(lambda text=text: said(text))  # type: ignore[misc] # bound now
    assert capture.flush(30) == 0
    assert caplog.messages == ["capture is unavailable, going on without it (KeyError)", "capture is available again"]
    assert [one.content for one in client.memories("ada")] == ["I live in Utrecht."]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_awaited_capture_is_stored_when_it_returns(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> list[tuple[str, Any]]:
        async with AsyncClient("sqlite://") as client:
            capture = AsyncCapture(CaptureRules("all"), 30.0, LogOnce("capture"))
            memory = client.agent("ada", session_id="monday")
            await capture.take(memory, said())
            await capture.take(memory, said("ok"))
            await capture.take(memory, said())  # the same utterance is the same memory
            return [(one.content, one.role) async for one in memory.memories()]

    assert anyio.run(main, backend=backend) == [(LONG, "user")]
    assert caplog.messages == []


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_awaited_capture_leaves_the_event_loop_alone_while_a_function_of_the_users_thinks(backend: str) -> None:
    thinking, thought = threading.Event(), threading.Event()

    def extract(text: str) -> list[str]:
        thinking.set()
        return [f"{current_user.get()}: {text}"] if thought.wait(60) else []

    async def awaited(text: str) -> list[str]:
        await anyio.sleep(0)
        return [f"{current_user.get()} awaits: {text}"]

    async def main() -> list[str]:
        async with AsyncClient("sqlite://") as client:
            current_user.set("ann")
            memory = client.agent("ada")
            async with anyio.create_task_group() as group:
                group.start_soon(AsyncCapture(CaptureRules(extract), 60.0, LogOnce("capture")).take, memory, said())
                assert await anyio.to_thread.run_sync(thinking.wait, 60)
                thought.set()
            await AsyncCapture(CaptureRules(awaited), 60.0, LogOnce("capture")).take(memory, said())
            return [one.content async for one in memory.memories()]

    assert anyio.run(main, backend=backend) == [f"ann awaits: {LONG}", f"ann: {LONG}"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_awaited_capture_fails_in_silence_but_for_one_line(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with AsyncClient("http://127.0.0.1:9", outbox=False) as client:
            capture = AsyncCapture(CaptureRules("all"), 30.0, LogOnce("capture"))
            for turn in range(3):
                await capture.take(client.agent("ada"), said(turn=turn))

    anyio.run(main, backend=backend)
    (line,) = caplog.messages
    assert line.startswith("capture is unavailable, going on without it (ConfigError: ")
