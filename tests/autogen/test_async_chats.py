"""Async chats with memory: the event loop never waits for a recall or a write."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from contextvars import ContextVar
from typing import Any

import pytest

from kronmem import Client, State
from kronmem.autogen import MemoryAgent, attach_memory, persisted_chat, register_memory, unregister_memory
from tests.autogen.agents import assistant, contents, tool_results, user
from tests.services.openai import OpenAIServer, call

CHATS = 5


class Together:
    """A way to a service that answers recalls only when five are under way, and notes the threads they come from."""

    def __init__(self, inner: Client) -> None:
        self._inner = inner
        self._barrier = threading.Barrier(CHATS)
        self.threads = set[int]()

    def send(self, request: Any) -> Any:
        self.threads.add(threading.get_ident())
        if request.path.endswith(("/recall", "/inject-context")):
            self._barrier.wait(60)
        return self._inner._transport.send(request)  # type: ignore[attr-defined] # the real engine answers

    def close(self) -> None: ...


@pytest.mark.parametrize("kind", ["attached", "MemoryAgent", "MemoryAgent of many users"])
def test_five_chats_wait_for_memory_at_the_same_time_and_the_loop_for_none(kind: str) -> None:
    with Client.local(":memory:") as inner, OpenAIServer(lambda _: "Green tea it is, as ever.") as server:
        inner.remember("ann", "Ann drinks green tea.")
        way = Together(inner)
        client = Client("sqlite://", transport=way, timeout=60)

        def made(number: int) -> Any:
            if kind == "attached":
                helper = assistant(server, f"helper-{number}")
                attach_memory(client.agent("ann"), helper, timeout=60, capture="all")
                return helper
            options = {"llm_config": server.llm_config(), "human_input_mode": "NEVER"}
            memory = client.agent("ann" if kind == "MemoryAgent" else lambda: "ann")
            return MemoryAgent(f"helper-{number}", memory=memory, memory_query="tea", timeout=60, **options)

        async def main() -> int:
            chats = [
                user(f"ann-{at}").a_initiate_chat(made(at), message="Which tea?", max_turns=1) for at in range(CHATS)
            ]
            await asyncio.gather(*chats)
            return threading.get_ident()

        assert asyncio.run(main()) not in way.threads
        assert len(server.prompts) == CHATS
        for prompt in server.prompts:
            assert sum("Ann drinks green tea." in text for text in contents(prompt)) == 1


def test_the_loop_goes_on_while_a_tool_waits_for_memory_and_the_tool_knows_its_user() -> None:
    arrived, release = threading.Event(), threading.Event()
    current: ContextVar[str] = ContextVar("current")

    class Slow:
        def send(self, request: Any) -> Any:
            arrived.set()
            release.wait(60)
            return inner._transport.send(request)  # type: ignore[attr-defined] # the real engine answers

        def close(self) -> None: ...

    def model(request: Any) -> Any:
        found = tool_results(request)
        return f"{found[0]} TERMINATE" if found else call("recall", query="Which tea?")

    async def main() -> None:
        current.set("ann")
        chat = asyncio.ensure_future(ann.a_initiate_chat(helper, message="Which tea?", silent=True))
        while not arrived.is_set():
            await asyncio.sleep(0.001)
        release.set()  # by the loop that would be stuck
        await chat

    with Client.local(":memory:") as inner, OpenAIServer(model) as server:
        inner.remember("ann", "The tea of Ann is green.")
        memory = Client("sqlite://", transport=Slow()).agent(current.get)  # type: ignore[arg-type] # as much of one as is needed
        ann, helper = user("ann"), assistant(server)
        register_memory(memory, caller=helper, executor=ann)
        asyncio.run(main())
        assert "The tea of Ann is green." in ann.chat_messages[helper][-1]["content"]
        unregister_memory(memory, caller=helper, executor=ann)
        assert "a_execute_function" not in vars(ann)


@pytest.mark.slow
def test_a_store_that_hangs_stalls_neither_the_loop_nor_a_second_message() -> None:
    release = threading.Event()

    class Hanging:
        def send(self, request: Any) -> Any:
            release.wait(60)
            raise OSError

        def close(self) -> None: ...

    async def main(helper: Any, ann: Any) -> int:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                await asyncio.sleep(0.005)
                beats += 1

        beating = asyncio.ensure_future(beat())
        await ann.a_initiate_chat(helper, message="Which tea do I drink, please?", max_turns=3, silent=True)
        beating.cancel()
        return beats

    with OpenAIServer(lambda _: "Green tea it is, as ever.") as server:
        client = Client("sqlite://", transport=Hanging())  # type: ignore[arg-type] # as much of one as is needed
        helper, ann = assistant(server), user(default_auto_reply="And which tea do you drink?")
        with persisted_chat(Client.local(":memory:").state("ann"), "chat", helper, ann):
            attach_memory(client.agent("ann"), [helper, ann], timeout=0.3, capture="all")
            assert asyncio.run(main(helper, ann)) > 20, "the loop went on while memory hung"
        assert len(server.prompts) == 3
        release.set()


def test_an_async_program_resumes_and_ends_a_persisted_chat_off_the_loop() -> None:
    class Noting(State):
        """A real state that notes the threads it is called from."""

        def __init__(self, inner: State) -> None:
            self._inner, self.threads = inner, set[int]()

        def get(self, key: str, default: Any = None) -> Any:
            self.threads.add(threading.get_ident())
            return self._inner.get(key, default)

        def set(self, key: str, value: Any) -> None:
            self.threads.add(threading.get_ident())
            self._inner.set(key, value)

    with Client.local(":memory:") as client, OpenAIServer(lambda _: "Green tea it is, as ever.") as server:
        state = Noting(client.state("ann"))

        async def main() -> list[str]:
            helper, ann, stack = assistant(server), user(), ExitStack()
            await asyncio.to_thread(stack.enter_context, persisted_chat(state, "chat", ann, helper))
            await ann.a_initiate_chat(helper, message="Which tea?", max_turns=1, clear_history=False, silent=True)
            await asyncio.to_thread(stack.close)
            assert threading.get_ident() not in state.threads
            return contents(ann.chat_messages[helper])

        said = ["Which tea?", "Green tea it is, as ever."]
        assert asyncio.run(main()) == said
        assert asyncio.run(main()) == said * 2


def test_what_was_said_in_an_async_chat_is_stored_before_the_model_is_asked() -> None:
    with Client.local(":memory:") as client:
        seen = list[int]()

        def model(_: Any) -> str:
            seen.append(len(list(client.memories("ann"))))
            return "Green tea it is, as ever."

        with OpenAIServer(model) as server:
            helper, ann = assistant(server), user(default_auto_reply="And which tea do you drink?")
            attach_memory(client.agent("ann"), [helper, ann], timeout=60, capture="all")

            async def main() -> int:
                await ann.a_initiate_chat(helper, message="Which tea do I drink?", max_turns=2, silent=True)
                return len(list(client.memories("ann")))

            assert asyncio.run(main()) == 3, "the same answer twice is one memory"
            assert seen == [1, 3]
