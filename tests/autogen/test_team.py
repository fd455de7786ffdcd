"""register_team_memory: one memory for a group, and refusals where AutoGen would end the chat without a word."""

from __future__ import annotations

from typing import Any

import pytest

from kronmem import AgentMemory, Client, ConfigError
from kronmem.autogen import register_memory, register_team_memory
from tests.autogen.agents import assistant, contents, manager, selects, tool_names, tool_results, user
from tests.autogen.conftest import Chat
from tests.services.openai import Answer, OpenAIServer, call

BUDGET = "The budget is 40,000 euros."


def speaker(request: dict[str, Any]) -> str:
    """Whose prompt this is."""
    return str(request["messages"][0]["content"]).removeprefix("You are ").removesuffix(".")


def team_model(request: dict[str, Any]) -> Answer:
    """The researcher stores the budget, the writer looks it up, and the manager lets them speak in turn."""
    done = tool_results(request)
    if selects(request):
        return ["researcher", "writer", "writer", "writer"][min(len(done), 3)]
    if speaker(request) == "researcher":
        return "It is noted." if done else call("remember", content=BUDGET, memory_type="decision")
    found = [one for one in done if BUDGET in one]
    return f"As I read, {BUDGET} TERMINATE" if found else call("recall", query="What is the budget?")


@pytest.mark.parametrize("method", ["auto", "round_robin"])
def test_what_one_member_stores_another_recalls(memory: AgentMemory, chat: Chat, method: str) -> None:
    with OpenAIServer(team_model) as server:
        researcher, writer, ann = assistant(server, "researcher"), assistant(server, "writer"), user()
        lead = manager(server, [ann, researcher, writer], method, max_round=12)
        register_team_memory(memory, lead, executor=ann)
        chat(ann, lead, "Work out the budget.")
        assert BUDGET in contents(lead.groupchat.messages)[-1]
        assert [one.content for one in memory.memories()] == [BUDGET]
        asked = [body for body in server.bodies if selects(body)]
        assert bool(asked) == (method == "auto")
        assert not any(tool_names(body) for body in asked)


@pytest.mark.parametrize("kind", ["group", "manager", "agents"])
def test_a_team_may_be_named_in_three_ways(memory: AgentMemory, kind: str) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        one, other, ann = assistant(server, "one"), assistant(server, "other"), user()
        lead = manager(server, [ann, one, other])
        team = {"group": lead.groupchat, "manager": lead, "agents": [one, other]}[kind]
        first = register_team_memory(memory, team, executor=ann)
        assert register_team_memory(memory, team, executor=ann) is first
        assert set(ann.function_map) == {"remember", "recall", "forget"}
        assert not lead.function_map
        for agent in (one, other):
            ann.initiate_chat(agent, message="hello", silent=True)
            assert len(tool_names(server.bodies[-1])) == 3


def test_an_executor_outside_the_group_is_refused(memory: AgentMemory) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        lead = manager(server, [user(), assistant(server)])
        with pytest.raises(ConfigError, match="not in the group chat"):
            register_team_memory(memory, lead, executor=user("outsider"))


def test_a_team_without_models_is_refused(memory: AgentMemory) -> None:
    ann = user()
    with pytest.raises(ConfigError, match="no agent could call"):
        register_team_memory(memory, [ann, user("other")], executor=ann)


def test_a_group_that_hands_calls_to_whoever_is_next_is_refused(memory: AgentMemory) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        ann = user()
        lead = manager(server, [ann, assistant(server)], func_call_filter=False)
        with pytest.raises(ConfigError, match="func_call_filter"):
            register_team_memory(memory, lead, executor=ann)


def restricted(server: OpenAIServer, ann: Any, members: list[Any]) -> Any:
    """A group in which nobody may speak after the executor, and not everybody before it."""
    one, other = members
    allowed = {one: [other], other: [one, ann]}
    options = {"allowed_or_disallowed_speaker_transitions": allowed, "speaker_transitions_type": "allowed"}
    return manager(server, [one, other, ann], **options)


def test_transitions_that_would_end_the_chat_are_refused(memory: AgentMemory) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        ann, one, other = user(), assistant(server, "one"), assistant(server, "other")
        lead = restricted(server, ann, [one, other])
        with pytest.raises(ConfigError, match=r"one → user, user → anybody .*add_transitions=True"):
            register_team_memory(memory, lead, executor=ann)
        assert not ann.function_map


def test_missing_transitions_are_added_when_told_so(memory: AgentMemory, chat: Chat) -> None:
    def model(request: dict[str, Any]) -> Answer:
        return "done TERMINATE" if tool_results(request) else call("remember", content=BUDGET)

    with OpenAIServer(model) as server:
        ann, one, other = user(), assistant(server, "one"), assistant(server, "other")
        lead = restricted(server, ann, [one, other])
        register_team_memory(memory, lead, executor=ann, add_transitions=True)
        chat(other, lead, "Please note the budget.")
        assert contents(lead.groupchat.messages)[-1] == "done TERMINATE"
    assert [one.content for one in memory.memories()] == [BUDGET]


def test_a_member_that_runs_the_same_names_for_another_memory_is_refused(client: Client) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        alice, ann = assistant(server, "alice"), user()
        register_memory(client.agent("alice"), caller=alice, executor=alice)
        lead = manager(server, [ann, alice, assistant(server, "bob")])
        with pytest.raises(ConfigError, match=r"the memory of 'alice'.*prefix"):
            register_team_memory(client.agent("team"), lead, executor=ann)


def test_private_memories_stand_beside_the_shared_one(client: Client, chat: Chat) -> None:
    def model(request: dict[str, Any]) -> Answer:
        name = speaker(request)
        mine = [one for one in request["messages"] if one.get("tool_calls") and f"{name}_remember" in str(one)]
        if mine:
            return "TERMINATE" if name == "bob" else "Done."
        return [call(f"{name}_remember", content=f"a secret of {name}"), call("remember", content=f"{name} was here")]

    with OpenAIServer(model) as server:
        alice, bob, ann = assistant(server, "alice"), assistant(server, "bob"), user()
        lead = manager(server, [ann, alice, bob], max_round=12)
        register_team_memory(client.agent("team"), lead, executor=ann)
        for agent in (alice, bob):
            register_memory(client.agent(agent.name), caller=agent, executor=ann, prefix=f"{agent.name}_")
        chat(ann, lead, "Go.")
    for name in ("alice", "bob"):
        assert [one.content for one in client.memories(name)] == [f"a secret of {name}"]
    assert {one.content for one in client.memories("team")} == {"alice was here", "bob was here"}


def test_an_executor_with_a_model_of_its_own_gets_the_tools_where_it_may_speak_twice(memory: AgentMemory) -> None:
    with OpenAIServer(lambda _: "TERMINATE") as server:
        for repeats, tools in ((True, 3), (False, 0)):
            writer, other = assistant(server, "writer"), assistant(server, "other")
            lead = manager(server, [other, writer], allow_repeat_speaker=repeats)
            register_team_memory(memory, lead, executor=writer)
            other.initiate_chat(writer, message="hello", silent=True)
            assert len(tool_names(server.bodies[-1])) == tools
