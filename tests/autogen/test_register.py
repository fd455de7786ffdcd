"""register_memory: real tool calls through AutoGen's own registration, on every version."""

from __future__ import annotations

import asyncio
import warnings
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from autogen import ConversableAgent

from kronmem import AgentMemory, AsyncClient, Client, ConfigError, memory_tools
from kronmem.autogen import attach_memory, register_memory, register_team_memory, unregister_memory
from tests.autogen.agents import assistant, manager, tool_names, tool_results, user
from tests.autogen.conftest import Chat
from tests.services.openai import Answer, OpenAIServer, call

TEA = "Ann drinks green tea."


def remembers_then_recalls(request: dict[str, Any]) -> Answer:
    done = tool_results(request)
    steps: list[Answer] = [call("remember", content=TEA, memory_type="preference"), call("recall", query="green tea")]
    return steps[len(done)] if len(done) < len(steps) else f"Found: {done[-1]} TERMINATE"


def test_a_model_remembers_and_recalls_in_one_chat(memory: AgentMemory, chat: Chat) -> None:
    with OpenAIServer(remembers_then_recalls) as server:
        helper, ann = assistant(server), user()
        register_memory(memory, caller=helper, executor=ann)
        chat(ann, helper, "I drink green tea.")
        said = ann.chat_messages[helper][-1]["content"]
        assert TEA in said
        assert [one.memory_type for one in memory.memories()] == ["preference"]
        assert sorted(tool_names(server.bodies[0])) == ["forget", "recall", "remember"]


def test_the_model_is_told_what_every_parameter_means(memory: AgentMemory) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        helper, ann = assistant(server), user()
        register_memory(memory, caller=helper, executor=ann)
        ann.initiate_chat(helper, message="hello", silent=True)
        functions = {tool["function"]["name"]: tool["function"] for tool in server.bodies[0]["tools"]}
        for function in functions.values():
            assert function["description"]
            for parameter in function["parameters"]["properties"].values():
                assert parameter["description"]
        assert functions["remember"]["parameters"]["required"] == ["content"]


def test_nothing_is_overridden_by_registering_twice_or_for_further_callers(memory: AgentMemory) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        one, other, ann = assistant(server, "one"), assistant(server, "other"), user()
        first = register_memory(memory, caller=one, executor=ann)  # AutoGen's warning would be an error here
        assert register_memory(memory, caller=one, executor=ann) is first
        assert register_memory(memory, caller=other, executor=ann) is first
        for agent in (one, other):
            ann.initiate_chat(agent, message="hello", silent=True)
            assert sorted(tool_names(server.bodies[-1])) == ["forget", "recall", "remember"]


def test_the_same_memory_from_another_object_is_the_same_memory(client: Client) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        helper, ann = assistant(server), user()
        first = register_memory(client.agent("ann"), caller=helper, executor=ann)
        assert register_memory(client.agent("ann"), caller=helper, executor=ann) is first


def test_the_same_file_through_another_client_is_the_same_memory(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with OpenAIServer(lambda _: "TERMINATE") as server, Client(url) as one, Client(url) as other:
        helper, ann = assistant(server), user()
        first = register_memory(one.agent("ann"), caller=helper, executor=ann)
        assert register_memory(other.agent("ann"), caller=helper, executor=ann) is first


def test_a_new_client_takes_over_from_one_that_was_closed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with OpenAIServer(lambda _: "TERMINATE") as server:
        helper, other, ann = assistant(server), assistant(server, "other"), user()
        for number in range(3):
            with Client(url) as client:
                for caller in (helper, other):
                    register_memory(client.agent("ann"), caller=caller, executor=ann)
                attach_memory(client.agent("ann"), [helper, ann], timeout=60)
                assert ann.function_map["remember"](f"Note {number} on the harbour.").startswith("Stored")
                ann.send(f"Sentence number {number} on the lighthouse.", helper, request_reply=False, silent=True)
                assert len(list(client.memories("ann"))) == 2 * (number + 1)
        assert client.closed
        with Client(url) as client:
            for caller in (helper, other):
                unregister_memory(client.agent("ann"), caller=caller, executor=ann)
                config: Any = caller.llm_config  # no dict in some versions
                assert "tools" not in config or not config["tools"]
        assert not ann.function_map


def test_one_set_of_tools_serves_the_user_of_each_call(client: Client, chat: Chat) -> None:
    current_user: ContextVar[str] = ContextVar("current_user")

    def model(request: dict[str, Any]) -> Answer:
        return "TERMINATE" if tool_results(request) else call("remember", content="likes green tea")

    with OpenAIServer(model) as server:
        helper, executor = assistant(server), user()
        tools = register_memory(client.agent(current_user.get), caller=helper, executor=executor)
        for name in ("ann", "bob"):
            token = current_user.set(name)
            chat(executor, helper, f"I am {name}")
            current_user.reset(token)
        assert tools.recall("nobody").startswith("Not done: agent_id could not be resolved")
    assert sorted(one.name for one in client.agents()) == ["ann", "bob"]
    assert [len(list(client.memories(name))) for name in ("ann", "bob")] == [1, 1]


@pytest.mark.parametrize("other", ["agent", "session", "store"])
def test_another_memory_never_takes_the_place_of_the_first(client: Client, other: str) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server, Client.local(":memory:") as elsewhere:
        helper, second, ann = assistant(server), assistant(server, "second"), user()
        memories = {
            "agent": client.agent("bob"),
            "session": client.agent("ann", session_id="monday"),
            "store": elsewhere.agent("ann"),
        }
        register_memory(client.agent("ann"), caller=helper, executor=ann)
        with pytest.raises(ConfigError, match="prefix"):
            register_memory(memories[other], caller=second, executor=ann)
        with pytest.raises(ConfigError, match="prefix"):
            register_memory(memories[other], caller=helper, executor=user("another"))


def test_a_refused_memory_is_told_the_ways_out(client: Client) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        helper, ann = assistant(server), user()
        register_memory(client.agent("ann"), caller=helper, executor=ann)
        with pytest.raises(ConfigError, match=r"prefix=.*current_user\.get.*read_from="):
            register_memory(client.agent("bob"), caller=helper, executor=ann)


def removed_by_hand(helper: Any, ann: Any) -> None:
    for name in ("remember", "recall", "forget"):
        helper.update_tool_signature(name, is_remove=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer versions warn of every function that is replaced
            ann.register_function({name: None})


@pytest.mark.parametrize("how", ["by hand", "unregistered"])
def test_removed_tools_can_be_registered_again_for_any_memory(client: Client, chat: Chat, how: str) -> None:
    with OpenAIServer(remembers_then_recalls) as server:
        helper, ann = assistant(server), user()
        for name in ("ann", "bob"):
            memory = client.agent(name)
            register_memory(memory, caller=helper, executor=ann)
            chat(ann, helper, "I drink green tea.")
            assert sorted(tool_names(server.bodies[-1])) == ["forget", "recall", "remember"]
            if how == "by hand":
                removed_by_hand(helper, ann)
            else:
                unregister_memory(memory, caller=helper, executor=ann)
                unregister_memory(memory, caller=helper, executor=ann)
            assert not ann.function_map
            server.model = lambda _: "TERMINATE"
            chat(ann, helper, "hello")
            assert tool_names(server.bodies[-1]) == []
            server.model = remembers_then_recalls
    assert [len(list(client.memories(name))) for name in ("ann", "bob")] == [1, 1]


def test_an_executor_keeps_the_tools_that_another_caller_needs(memory: AgentMemory, client: Client) -> None:
    with OpenAIServer(remembers_then_recalls) as server:
        one, other, ann = assistant(server, "one"), assistant(server, "other"), user()
        for caller in (one, other):
            register_memory(memory, caller=caller, executor=ann)
        with pytest.raises(ConfigError, match="belongs to the memory of 'ann'"):
            unregister_memory(client.agent("bob"), caller=one, executor=ann)
        unregister_memory(memory, caller=one, executor=ann)
        ann.initiate_chat(other, message="I drink green tea.", silent=True)
        assert TEA in ann.chat_messages[other][-1]["content"]
        unregister_memory(memory, caller=other, executor=ann)
        assert not ann.function_map


def test_a_function_of_the_user_is_not_replaced(memory: AgentMemory) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        ann = user(function_map={"recall": lambda: "mine"})
        with pytest.raises(ConfigError, match="a function of yours"):
            register_memory(memory, caller=assistant(server), executor=ann)
        assert ann.function_map["recall"]() == "mine"


def test_two_memories_stand_side_by_side_by_their_prefixes(client: Client, chat: Chat) -> None:
    def model(request: dict[str, Any]) -> Answer:
        if tool_results(request):
            return "TERMINATE"
        return [call("ann_remember", content="only for Ann"), call("team_remember", content="for the whole team")]

    with OpenAIServer(model) as server:
        helper, executor = assistant(server), user()
        register_memory(client.agent("ann"), caller=helper, executor=executor, prefix="ann_")
        register_memory(client.agent("team"), caller=helper, executor=executor, prefix="team_")
        chat(executor, helper, "please keep this")
    assert [one.content for one in client.memories("ann")] == ["only for Ann"]
    assert [one.content for one in client.memories("team")] == ["for the whole team"]


def test_who_has_no_model_or_only_manages_cannot_call(memory: AgentMemory) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        helper, ann = assistant(server), user()
        for caller in (user("mute"), manager(server, [helper, ann])):
            with pytest.raises(ConfigError, match="cannot call tools"):
                register_memory(memory, caller=caller, executor=ann)


def test_an_agent_may_execute_its_own_calls_in_a_second_chat_partner(memory: AgentMemory) -> None:
    with OpenAIServer(remembers_then_recalls) as server:
        helper = assistant(server)
        for name in ("first", "second"):
            ann = user(name)
            register_memory(memory, caller=helper, executor=ann)
            ann.initiate_chat(helper, message="I drink green tea.", silent=True)
            assert TEA in ann.chat_messages[helper][-1]["content"]


def test_the_tools_of_an_async_memory_are_awaited(chat: Chat) -> None:
    with OpenAIServer(remembers_then_recalls) as server:
        client = AsyncClient("sqlite://")
        helper, ann = assistant(server), user()
        register_memory(client.agent("ann"), caller=helper, executor=ann)
        chat(ann, helper, "I drink green tea.")
        assert TEA in ann.chat_messages[helper][-1]["content"]
        asyncio.run(client.close())


def test_the_old_style_by_schemas_and_function_map_works(memory: AgentMemory, chat: Chat) -> None:
    tools = memory_tools(memory)
    with OpenAIServer(remembers_then_recalls) as server:
        helper = ConversableAgent(
            "helper", llm_config=server.llm_config(tools=tools.schemas()), human_input_mode="NEVER"
        )
        ann = user(function_map=tools.function_map())
        chat(ann, helper, "I drink green tea.")
        assert TEA in ann.chat_messages[helper][-1]["content"]


@pytest.mark.slow
def test_a_tool_of_a_memory_that_is_down_answers_in_words(chat: Chat) -> None:
    def model(request: dict[str, Any]) -> Answer:
        done = tool_results(request)
        return f"{done[0]} TERMINATE" if done else call("recall", query="tea")

    with OpenAIServer(model) as server, Client("http://127.0.0.1:9", api_key="kv-none") as client:
        helper, ann = assistant(server), user()
        register_memory(client.agent("ann"), caller=helper, executor=ann)
        chat(ann, helper, "What do I drink?")
        assert "unavailable" in ann.chat_messages[helper][-1]["content"]


def test_only_some_tools_may_be_registered_and_the_others_later() -> None:
    with Client.local(":memory:") as client, OpenAIServer(lambda _: "TERMINATE") as server:
        memory, helper, ann = client.agent("ann"), assistant(server), user()
        tools = register_memory(memory, caller=helper, executor=ann, only=["recall"])
        assert [function.__name__ for function in tools.functions()] == ["recall"]
        assert set(ann.function_map) == {"recall"}
        assert {tool["function"]["name"] for tool in helper.llm_config["tools"]} == {"recall"}
        register_team_memory(memory, [helper], executor=ann, only=["recall", "remember"])
        assert set(ann.function_map) == {"recall", "remember"}
        unregister_memory(memory, caller=helper, executor=ann)
        assert not ann.function_map
